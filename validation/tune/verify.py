"""Every claim of a certificate computed again, of the files as they are now, in the engine that is installed."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape

from loopcheck.robots.errors import HarnessError, OutputError
from loopcheck.robots.formats.model_file import file_hash, files_of
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.common.verdicts import within
from loopcheck.validation.execution.environments import engine_versions
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.report.blocks import Section, table
from loopcheck.validation.report.terminal import coloured
from loopcheck.validation.report.terminal import table as shown_table
from loopcheck.validation.tune.certificate import Certificate, checksum, hashes, settings_in
from loopcheck.validation.tune.engine import AskedTuning, LostAnswerError
from loopcheck.validation.tune.runs.judged_run import JudgedRun
from loopcheck.validation.tune.runs.purposes import (
    RANDOM,
    Purpose,
    controlled,
    given_purposes,
    names_of,
    random_purposes,
    seeds_in,
    variations,
)
from loopcheck.validation.tune.runs.tuning_runs import TuningRuns

TABLE = "certificate"
SHOWN = 12
"""Number of shown digits of a hash; all digits are compared [-]."""
LEEWAY = 0.1
"""Largest relative difference between a figure and the certificate, besides the measured noise floor [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCertificate(Study):
    """Comparison of files, engine and figures with the claims of a certificate."""

    name: ClassVar[str] = "tune.verify"
    page: ClassVar[str] = "certificate"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        TABLE: table_of(
            {
                "claim": text(),
                "unit": text(),
                "certified": text(),
                "found": text(),
                "leeway": number("as the claim"),
                "verdict": text(),
                "note": text(),
            }
        )
    }

    model: Path
    certificate: Certificate
    folder: Path
    """Folder of the certificate, which also contains an external motion."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`; figures are computed only of the files and the engine that were certified."""
        rows = list(self._identity())
        if all(row["verdict"] != "disagree" for row in rows):
            try:
                rows += self._figures(pool)
            except LostAnswerError as error:
                rows.append(_row("figures", "as certified", "none", note=str(error)))
        record = {"model": self.model.name, "badge": self._badge(rows), "accuracy": self.certificate.accuracy}
        return Computed({TABLE: self.tables[TABLE].frame(rows)}, record)

    def _identity(self) -> Iterator[dict[str, Any]]:
        """Rows on the checksum of the certificate, its files and its engine."""
        certificate = self.certificate
        whole = certificate.checksum == checksum(certificate.content)
        note = "" if whole else "its checksum does not match: an entry has been edited"
        yield _row("certificate", "as written", "as written" if whole else "edited", note=note)
        yield from self._files()
        version = engine_versions().get(certificate.engine, "not installed")
        yield _row(f"{certificate.engine} (version)", certificate.engine_version, version)

    def _files(self) -> Iterator[dict[str, Any]]:
        """Files against their hashes: those of the tuned model, or a script and its model."""
        certificate, home = self.certificate, self.model.parent
        try:
            beside = [home / file for file in files_of(self.model)]
        except HarnessError as error:
            raise OutputError(f"{self.model}: {error}") from error
        of_model = certificate.files
        names = {name: self.model.name if name == certificate.model else name for name in of_model}
        now = hashes([*beside, *(home / name for name in names.values())], home)
        for name, place in names.items():
            yield _of_file(place, of_model[name], now.get(place, "missing"))
        for name in sorted(now.keys() - set(names.values())):
            note = "the model uses a file that is not in the certificate"
            yield _row(f"file {name}", "none", now[name][:SHOWN], note=note)
        for name, content in (certificate.script | certificate.motion).items():
            yield _of_file(name, content, file_hash(self.folder / name) or "missing")

    def _figures(self, pool: WorkerPool) -> Iterator[dict[str, Any]]:
        """Settings, and every figure of the proof again."""
        certificate = self.certificate
        case = case_of(
            self.model,
            configuration=certificate.configuration,
            mode=certificate.mode,
            actuated=certificate.actuated,
            motion=next((self.folder / name for name in certificate.motion), None),
        )
        tuning = AskedTuning(engine=certificate.engine, pool=pool)
        given = replace(tuning.given(case.mechanism), bandwidth=certificate.bandwidth)
        left = settings_in(given.settings, certificate.settings)
        if certificate.script:
            (script,) = tuning.files(case.mechanism, certificate.settings).values()
            same = (self.folder / next(iter(certificate.script))).read_bytes() == script
            yield _row("calls of the script", "equal to settings", "equal to settings" if same else "different")
        else:
            for name, value in certificate.settings.items():
                yield _row(f"setting {name}", value, given.settings.get(name, "none") if name in left else value)
            left = {}
        claimed = [claim.purpose for claim in certificate.claims]
        required = self._required(case, pool)
        without = [purpose for purpose in required if purpose.name not in claimed]
        seeds = [seed for seed in seeds_in(claimed) if f"{RANDOM}{seed}" not in names_of(required)]
        others = random_purposes(case, certificate.engine, pool, required[0].motion, seeds)[0] if required else []
        by_name: dict[str, Purpose] = {purpose.name: purpose for purpose in (*required, *others)}
        runs = TuningRuns(
            case=case,
            engine=certificate.engine,
            given=given,
            pool=pool,
            include_start=certificate.includes_start,
            accuracy=certificate.accuracy,
        )
        for run in runs.on("proof", [one for one in without if one.may_lag], left):
            yield _row(run.purpose, "not followed", "followed" if run.follows else "not followed", note=run.reason)
        for name in names_of([one for one in without if not one.may_lag]):
            yield _row(name, "missing", "required", note="the certificate must contain a claim on this run")
        known = [by_name[claim.purpose] for claim in certificate.claims if claim.purpose in by_name]
        by_purpose = {run.purpose: run for run in runs.on("proof", known, left)}
        for claim in certificate.claims:
            yield from self._of_claim(claim.model_dump(), by_purpose.get(claim.purpose))

    def _required(self, case: Case, pool: WorkerPool) -> list[Purpose]:
        """Runs on which a certificate must make a claim: they follow from its files."""
        certificate = self.certificate
        shown = given_purposes(case, certificate.engine, pool)[0]
        if not shown:
            return []
        seeds = certificate.held_out_seeds
        held_out = random_purposes(case, certificate.engine, pool, shown[0].motion, seeds)[0]
        ends = [controlled(shown[-1], end, certificate.bandwidth) for end in certificate.bandwidths or ()]
        return [*shown, *variations(shown[0]), *held_out, *ends]

    def _of_claim(self, claim: Mapping[str, Any], run: JudgedRun | None) -> Iterator[dict[str, Any]]:
        """Figures of a run: each within a tenth and the measured floor; the error with its floor below the accuracy."""
        name = str(claim["purpose"])
        if run is None or run.reason:
            yield _row(name, f"{claim['error']:.3g}", "missing", note=run.reason if run else "no such motion")
            return
        statement = self.certificate
        for column, (unit, leeway) in _leeways(run).items():
            certified, figure = float(claim[column]), float(getattr(run, column))
            agrees = within(abs(figure - certified), leeway)
            row = _row(f"{name}: {column}", f"{certified:.4g}", f"{figure:.4g}", agrees=agrees)
            yield {**row, "unit": unit, "leeway": leeway}
        start = float(claim["start"]) if statement.includes_start else 0.0
        certified = max(float(claim["error"]), start) + float(claim["floor"])
        figure = run.bound(start=statement.includes_start)
        agrees = within(certified, statement.accuracy) and within(figure, statement.accuracy)
        row = _row(f"{name}: accuracy {statement.accuracy:g}", f"{certified:.3g}", f"{figure:.3g}", agrees=agrees)
        yield {**row, "unit": "-", "note": "" if agrees else "error and floor together exceed the accuracy"}

    def _badge(self, rows: list[dict[str, Any]]) -> str:
        """A line for the README of the robot."""
        certificate = self.certificate
        if any(row["verdict"] != "agree" for row in rows):
            return "loopcheck: certificate refused"
        engine = f"{certificate.engine} {certificate.engine_version}"
        ends = certificate.bandwidths
        controller = f", controller of {ends[0]:g} to {ends[1]:g} rad/s" if ends else ""
        return f"loopcheck: efforts within {100 * certificate.accuracy:g} % in {engine}{controller}"

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        return Conclusion(
            title="loopcheck: verification of a certificate",
            sections=_sections(rows, result.record),
            summary=list(_summary(rows, result.record)),
            verdicts=list(rows["verdict"]),
        )


STUDY = VerifiedCertificate


def _leeways(run: JudgedRun) -> dict[str, tuple[str, float]]:
    """Unit and largest difference of each figure of a claim, all from the run of the verifier."""
    by_noise = {name: ("-", LEEWAY * getattr(run, name) + run.floor) for name in ("error", "rms", "start", "floor")}
    others = {"window": "s", "gap": "m or rad", "cost": "1/s"}
    return {**by_noise, **{name: (unit, LEEWAY * getattr(run, name)) for name, unit in others.items()}}


def _of_file(name: str, certified: str, result: str) -> dict[str, Any]:
    """The row of a file, by its hashes."""
    return _row(f"file {name}", certified[:SHOWN], result[:SHOWN], agrees=certified == result)


def _row(
    claim: str,
    certified: str,
    result: str,
    *,
    agrees: bool | None = None,
    note: str = "",
) -> dict[str, Any]:
    """A row; by default its claim holds if both texts are equal."""
    agreeing = certified == result if agrees is None else agrees
    verdict = "agree" if agreeing else "disagree"
    return {
        "claim": claim,
        "unit": "",
        "certified": certified,
        "found": result,
        "leeway": math.nan,
        "verdict": verdict,
        "note": note,
    }


def _summary(rows: pd.DataFrame, record: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Failed claims, or identity and errors if all hold, and the badge."""
    refused = rows[rows["verdict"] != "agree"]
    minor = rows["claim"].str.contains(": (?:rms|gap|start|floor|window|cost|accuracy .*)$")
    shown = refused if len(refused) else rows[~minor]
    columns = [name for name in ("claim", "unit", "certified", "found", "verdict", "note") if shown[name].any()]
    lines = [
        [coloured(cell, cell) if name == "verdict" else escape(str(cell)) for name, cell in row.items()]
        for row in shown[columns].to_dict("records")
    ]
    title = f"{record['model']}: {len(rows)} claims, {len(refused)} do not hold"
    yield shown_table(columns, lines, title=title, splits=False)
    yield record["badge"]


def _sections(rows: pd.DataFrame, record: Mapping[str, Any]) -> Iterator[Section]:
    verdict = "agree" if (rows["verdict"] == "agree").all() else "disagree"
    blocks = [record["badge"], table(rows.rename(columns={"leeway": "leeway [as the claim]"}))]
    yield Section(title=record["model"], anchor="certificate", verdict=verdict, blocks=blocks)
