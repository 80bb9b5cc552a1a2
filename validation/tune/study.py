"""The cheapest settings of an unmodified simulation for an accuracy, with a certificate."""

import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from loopcheck import engines
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.kinematics.mobility import open_start
from loopcheck.analytic.motion.laws import AUTOMATIC, RECORDED
from loopcheck.engines.as_is import BANDWIDTHS
from loopcheck.engines.declarations import Settings
from loopcheck.robots.errors import ToleranceError
from loopcheck.robots.formats.mjcf import varying_forces
from loopcheck.robots.formats.model_file import ModelFile, file_hash, files_of
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, MotionSpec
from loopcheck.validation.common import sources
from loopcheck.validation.common.verdicts import verdict_of_figure
from loopcheck.validation.execution.environments import engine_versions
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, flag, number, table_of, text, to_csv
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult, cpu_model
from loopcheck.validation.tune.bandwidths import Bandwidths, bandwidths
from loopcheck.validation.tune.budget import budget, missing
from loopcheck.validation.tune.certificate import (
    FILE,
    Certificate,
    Claim,
    MadeBy,
    Statement,
    hashes,
    held_out_seeds,
)
from loopcheck.validation.tune.engine import AskedTuning, LostAnswerError, want_known_settings, want_tunable
from loopcheck.validation.tune.obstacle import obstacle, refined
from loopcheck.validation.tune.report import part_sections, part_summary, sections, summary
from loopcheck.validation.tune.runs.judged_run import JudgedRun
from loopcheck.validation.tune.runs.purposes import (
    Purpose,
    controlled,
    given_purposes,
    names_of,
    random_purposes,
    variations,
)
from loopcheck.validation.tune.runs.tuning_runs import FINER, SOUGHT, STEP, TuningRuns
from loopcheck.validation.tune.search import Scored, choice
from loopcheck.validation.tune.writing import write_tuned

TABLE, BUDGET = "tune", "budget"
AS_IS, PROOF, CONTROLLER = "as it is", "proof", "controller"
UNSTABLE = 2.0
"""Highest tried bandwidth of the controller times the step; runs diverged from 1 on [-]."""
UNPROVEN = "unproven"
"""Folder of the best settings so far, in the folder of the study."""
CPU_PER_BODY, FEWEST_BODIES = 12.0, 10
"""Largest CPU time of the runs: for each body, and the smallest number of bodies that it is computed for [s, -]."""
ROUNDS = 4
"""Largest number of searches, if motions outside of the search exceed the accuracy."""
MARGIN = 0.9
"""Target error of the next search, relative to the requested accuracy [-]."""
LOWERED = 0.4
"""Smallest target error of the next search, relative to the target of the previous [-].
A larger excess in a proof is a fault of these settings alone, which the next search leaves out."""
MOTION = "motion.csv"
SLOWER = "name a motion that its actuators can follow with --motion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tune(Study):
    """Settings searched on the user's motion and a random motion, and proven on held-out motions."""

    name: ClassVar[str] = "tune"
    page: ClassVar[str] = "tune"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("phase", "purpose", "method")},
                "step": number("s"),
                "settings": text(),
                **{name: number("-") for name in ("error", "rms", "start", "floor")},
                "window": number("s"),
                "gap": number("m or rad"),
                "cost": number("1/s"),
                "actuator": text(),
                "chosen": flag(),
                "reason": text(),
            }
        ),
        BUDGET: table_of(
            {
                **{name: text() for name in ("robot", "variant", "mode", "configuration", "source")},
                **{name: text() for name in ("actuator", "unit", "part")},
                **{name: number("that of the actuator") for name in ("scale", "rms", "largest")},
                **{name: number("-") for name in ("share", "uncertainty")},
                **{name: text() for name in ("setting", "note")},
            }
        ),
    }
    shown: ClassVar[Sequence[str]] = (TABLE, BUDGET)

    case: Case
    accuracy: float
    """Largest settled residual over the peak effort [-]; 0 searches no settings."""
    explains: bool = False
    """Whether to split the error of the unmodified simulation into parts."""
    engine: str = "mujoco"
    include_start: bool = False
    """Whether the initial transient counts too."""
    budget: float = np.inf
    """Largest wall time of a simulated second [s]."""
    kept: tuple[str, ...] = ()
    """Names of settings that remain as the user has them."""
    cpu_limit: float | None = None
    """Largest CPU time of all runs [s], by default 12 s for each body, at least 120 s."""
    seed: int = 0
    """First seed of the random motions."""

    def __post_init__(self) -> None:
        if not (0 < self.accuracy < np.inf or (self.explains and self.accuracy == 0)):
            raise ToleranceError(f"accuracy must be positive and finite, for example 0.001, got {self.accuracy:g}")
        if not self.budget > 0:
            raise ToleranceError(f"--max-cost must be positive, got {1e3 * self.budget:g} µs per simulated ms")
        want_tunable(self.engine)

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        record: dict[str, Any] = {
            "model": self.case.mechanism.model.path.name,
            "engine": self.engine,
            "loops": len(self.case.mechanism.closures),
            "accuracy": self.accuracy,
            "includes_start": self.include_start,
            "budget_s": self.budget if np.isfinite(self.budget) else None,
            "kept": list(self.kept),
            "mode": self.case.mode,
            "configuration": self.case.configuration,
            "controller_rad_s": None,
            "notes": [],
            "settings": {},
            "before": {},
        }
        rows: list[dict[str, Any]] = []
        statements: list[str] = []
        if self.accuracy:
            try:
                record |= self._searched(pool, folder, rows)
            except LostAnswerError as error:
                record |= {"verdict": "not comparable", "answer": str(error)}
                statements.append(str(error))
        parts = self._budget(pool) if self.explains else []
        tables = {TABLE: self.tables[TABLE].frame(rows), BUDGET: self.tables[BUDGET].frame(parts)}
        return Computed(tables, record, statements)

    def _budget(self, pool: WorkerPool) -> list[Mapping[str, Any]]:
        """Rows of the parts of the error of the unmodified simulation."""
        key = (self.case, f"{self.engine}/{engines.engine(self.engine).taken_apart}")
        (rows,) = pool.results([Task(budget, key, partial(missing, *key), engine=self.engine)], "error budget")
        return list(rows)

    def _searched(self, pool: WorkerPool, folder: Path, rows: list[dict[str, Any]]) -> Mapping[str, Any]:
        """The answer and its record; a row is added for each run."""
        tuning = AskedTuning(engine=self.engine, pool=pool)
        given = tuning.given(self.case.mechanism)
        want_known_settings(self.kept, self.engine, given)
        tuning.files(self.case.mechanism, given.settings)  # refuses a file that cannot have other settings
        shown, notes = given_purposes(self.case, self.engine, pool)
        opening = open_start(self.case.mechanism, self.case.guess)
        runs = TuningRuns(
            case=self.case,
            engine=self.engine,
            given=given,
            pool=pool,
            include_start=self.include_start,
            accuracy=self.accuracy,
            rows=rows,
            kept=self.kept,
            cpu_limit=self.cpu_limit or CPU_PER_BODY * max(len(self.case.mechanism.bodies), FEWEST_BODIES),
        )
        base, width = (
            _unmodified(runs, shown[0])
            if shown
            else (JudgedRun(purpose="", settings={}, reason=notes[0]), given.bandwidth)
        )
        about: dict[str, Any] = {
            "controller_rad_s": given.bandwidth,
            "controller_before_rad_s": width,
            "notes": [*([opening] if opening else []), *notes],
            "before": {**given.settings, **_times(self, tuning, {})},
        }
        if not shown:
            return {**about, "verdict": "not comparable", "answer": base.reason}
        if base.too_weak and (methods := runs.too_weak(shown[0])):
            words = f"at {1e3 * given.step:g} ms unmodified and at {1e3 * given.step / FINER:g} ms with {methods}"
            return {
                **about,
                "verdict": "not comparable",
                "answer": f"no settings remove the cause, {words}: {base.reason}; {SLOWER}",
            }
        study = self._with_motion_file(shown[0].motion, folder)
        answer = study._tuned(runs, base, shown, pool, folder)
        is_of_mujoco = self.engine == "mujoco" and bool(answer.get("files"))
        reported = reported_forces(folder / answer["files"][0]) if is_of_mujoco else []
        return {**about, **answer, "notes": [*about["notes"], *reported]}

    def _with_motion_file(self, motion: Motion, folder: Path) -> "Tune":
        """The same with the motion of a law in a file, as a certificate has no `robot.toml`."""
        if self.case.robot.motion.law == AUTOMATIC or self.case.robot.motion_file:
            return self
        path, at = folder.absolute() / MOTION, motion.law(motion.t)
        rates = {"q": at.q, "qd": at.qd, "qdd": at.qdd}
        columns = {
            f"{drive.name}.{rate}": values[:, k]
            for k, drive in enumerate(self.case.mechanism.drives)
            for rate, values in rates.items()
        }
        to_csv(pd.DataFrame({"t": motion.t, **columns}), path)
        spec = MotionSpec(law=RECORDED, parameters={"file": str(path)})
        return replace(self, case=replace(self.case, robot=self.case.robot.model_copy(update={"motion": spec})))

    def _tuned(
        self, runs: TuningRuns, base: JudgedRun, shown: Sequence[Purpose], pool: WorkerPool, folder: Path
    ) -> Mapping[str, Any]:
        """Search and prove, until held-out motions stay below the accuracy too."""
        # A search fits the motions that it has seen, so settings that just reach the accuracy there miss it elsewhere:
        # the search aims at a target that falls below the accuracy each time a proof fails.
        target, missed = self.accuracy, dict[str, str]()
        searched = [*shown, *self._random(shown, pool, [self.seed])]
        for attempt in range(ROUNDS):
            tried = self._tried(runs, searched, target, pool)
            best = choice(tried, target) or choice(tried, self.accuracy)  # the target may have been lowered too far
            if best is None and not np.isfinite([one.error for one in tried]).any():
                words = f"no settings can be judged; unmodified: {base.reason}"
                return {"verdict": "not comparable", "answer": words}
            if runs.is_over:
                return self._unproven(runs, best or min(tried, key=lambda one: one.error), {}, folder)
            if best is None:
                return obstacle(runs, searched, tried, self._wish())
            settings = best.candidate.settings
            # Their seeds follow from the settings: nobody, and no search, could have chosen settings for them.
            held_out = self._random(shown, pool, self._held_out_seeds(settings, pool))
            others = [one for one in (*held_out, *variations(shown[0])) if one.name not in names_of(searched)]
            proof, lagging = self._proof((searched, others), runs, settings)
            bounds = {run.purpose: run.bound(start=self.include_start) for run in proof}
            missed = {
                run.purpose: run.reason or f"{run.error:.2g}" for run in proof if bounds[run.purpose] > self.accuracy
            }
            if not missed:
                runs.choose(settings)
                unseen = [name for name in names_of(held_out) if name not in names_of(searched)]
                certified = self._certified(runs, base, best, (proof, unseen), (shown[-1], folder))
                left_out = "".join(f"; no claim on {run.purpose}: {run.reason}" for run in lagging)
                return {**certified, "answer": f"{certified['answer']}{left_out}"}
            if runs.is_over:
                return self._unproven(runs, best, missed, folder)
            # A miss on a motion that the search has not seen is repaired by showing it that motion; only a miss on a
            # motion that it has seen, or a second one, means that the target was too high.
            names = set(names_of(searched))
            searched = [*(one for one in others if one.name in missed), *searched]
            if (attempt or missed.keys() & names) and np.isfinite(worst := max(bounds.values())):
                target *= max(MARGIN * self.accuracy / worst, LOWERED)
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missed.items())
        return {"verdict": "disagree", "answer": f"the settings fail on motions outside of the search: {reasons}"}

    def _tried(self, runs: TuningRuns, searched: Sequence[Purpose], target: float, pool: WorkerPool) -> list[Scored]:
        """All tried candidates for an error, and refinements of the best candidate if the search fails."""
        finest = self._finest_steps(pool)
        tried = runs.search(searched, target, finest)
        if choice(tried, target) or runs.is_over or not np.isfinite([one.error for one in tried]).any():
            return tried
        return [*tried, *refined(runs, searched, tried, runs.reach(searched, finest))]

    def _proof(
        self, stages: Sequence[Sequence[Purpose]], runs: TuningRuns, settings: Settings
    ) -> tuple[list[JudgedRun], list[JudgedRun]]:
        """Runs of a proof, and runs that show nothing about the settings: a slower controller leaves the motion.

        Args:
            stages: Motions; settings that fail on some of a stage are tried on no further stage.
        """
        proof, lagging = list[JudgedRun](), list[JudgedRun]()
        for purposes in stages:
            for purpose, run in zip(purposes, runs.on(PROOF, purposes, settings), strict=True):
                (lagging if purpose.may_lag and not run.follows else proof).append(run)
            if any(run.bound(start=self.include_start) > self.accuracy for run in proof):
                break
        return proof, lagging

    def _random(self, shown: Sequence[Purpose], pool: WorkerPool, seeds: Sequence[int]) -> list[Purpose]:
        """Random motions, as far and as fast as the first that is given."""
        return random_purposes(self.case, self.engine, pool, shown[0].motion, seeds)[0]

    def _held_out_seeds(self, settings: Settings, pool: WorkerPool) -> list[int]:
        """Seeds of the random motions of a proof, from the contents of the files that it certifies."""
        changed = AskedTuning(engine=self.engine, pool=pool).files(self.case.mechanism, settings)
        new = {path.absolute(): hashlib.sha256(content).hexdigest() for path, content in changed.items()}
        parts = {path.absolute(): file_hash(path) for path in files_of(self.case.mechanism.model.path)}
        motion = [self.case.motion_hash] if self.case.robot.motion_file else []
        return held_out_seeds([*filter(None, (parts | new).values()), *motion])

    def _wish(self) -> str:
        """The wanted accuracy, in words."""
        limit = f" within {1e3 * self.budget:.4g} µs per simulated millisecond" if np.isfinite(self.budget) else ""
        kept = f" with {', '.join(self.kept)} kept" if self.kept else ""
        return f"{self.accuracy:.3g}{limit}{kept}"

    def _finest_steps(self, pool: WorkerPool) -> dict[str, float]:
        """Finest step that the budget leaves to each method [s]."""
        if not np.isfinite(self.budget):
            return {}
        tuning, mechanism = AskedTuning(engine=self.engine, pool=pool), self.case.mechanism
        firsts = {family.method: family for family in reversed(list(tuning.families(mechanism)))}
        return {
            name: tuning.seconds_per_step(mechanism, self.case.guess, family.fixed) / self.budget
            for name, family in firsts.items()
        }

    def _unproven(self, runs: TuningRuns, best: Scored, missed: Mapping[str, str], folder: Path) -> Mapping[str, Any]:
        """Write the files of the best settings so far, without a certificate."""
        tuning = AskedTuning(engine=self.engine, pool=runs.pool)
        settings = best.candidate.settings
        main, lines = write_tuned(self.case, tuning.files(self.case.mechanism, settings), folder / UNPROVEN)
        runs.choose(settings)
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missed.items())
        failed = f"; the last proof failed ({reasons})" if missed else ""
        following = f", the next settings would take about {runs.left_out:.2g} s" if runs.left_out else ""
        took = f"the runs took {runs.cpu:.0f} s of CPU time{following}, the limit is {runs.cpu_limit:g} s"
        return {
            "verdict": "not comparable",
            "answer": f"unproven: {took}; the best settings so far have an error of {best.error:.2g} "
            f"on the motions of the search{failed}",
            "settings": dict(settings),
            "after": {**settings, **_times(self, tuning, settings)},
            "difference": lines,
            "unproven": main.relative_to(folder).as_posix(),
            "cpu_limit_s": runs.cpu_limit,
        }

    def _bandwidths(
        self, runs: TuningRuns, settings: Settings, purpose: Purpose
    ) -> tuple[Bandwidths | None, list[JudgedRun]]:
        """Range of bandwidths within the accuracy on a motion, and the runs at its ends; None if no time is left."""
        usual, known = runs.given.bandwidth, dict[float, JudgedRun]()
        purpose = runs.with_derivatives(purpose)

        def holds(widths: Sequence[float]) -> list[bool]:
            results = runs.on(CONTROLLER, [controlled(purpose, width, usual) for width in widths], settings)
            known.update(zip(widths, results, strict=True))
            return [run.bound(start=self.include_start) <= self.accuracy for run in results]

        if runs.is_over:
            return None, []
        t, step = purpose.motion.t, float(settings.get(STEP, runs.given.step))
        found = bandwidths(holds, usual, (1 / float(t[-1] - t[0]), UNSTABLE / step))
        return found, [known[end] for end in dict.fromkeys(found[:2])] if found else []

    def _certified(
        self,
        runs: TuningRuns,
        base: JudgedRun,
        best: Scored,
        proven: tuple[Sequence[JudgedRun], list[str]],
        place: tuple[Purpose, Path],
    ) -> Mapping[str, Any]:
        """Write the tuned files and their certificate."""
        (proof, held_out), (made, folder) = proven, place
        tuning = AskedTuning(engine=self.engine, pool=runs.pool)
        settings = best.candidate.settings
        is_controlled = not any(run.by_servos for run in proof)
        widths, at_ends = self._bandwidths(runs, settings, made) if is_controlled else (None, list[JudgedRun]())
        main, lines = write_tuned(self.case, tuning.files(self.case.mechanism, settings), folder)
        model = self.case.mechanism.model.path
        tuned = tuned_case(self.case, main if main.suffix == ".xml" else model)
        difference = inertial_difference(self.case, tuned, made.motion)
        if motion_file := self.case.robot.motion_file:
            main.with_name(MOTION).write_bytes(motion_file.read_bytes())
        certified = tuned.mechanism.model.path
        after = _times(self, tuning, settings)
        certificate = Certificate(
            **self._statement(settings).model_dump(),
            engine_version=engine_versions()[self.engine],
            model=certified.name,
            files=hashes(files_of(certified), certified.parent),
            script={} if main.suffix == ".xml" else hashes([main], main.parent),
            bandwidth=runs.given.bandwidth,
            bandwidths=widths[:2] if widths else None,
            claims=[Claim.from_run(run) for run in (*proof, *at_ends)],
            made_by=MadeBy(
                loopcheck=importlib.metadata.version("loopcheck"),
                date=datetime.now(UTC).isoformat(timespec="seconds"),
                cpu=cpu_model(),
                seconds_per_simulated_second=after["seconds_per_simulated_second"],
                original=hashes(files_of(model), model.parent),
                inertial=difference,
            ),
        ).with_checksum()
        ended = ""
        if runs.ended_early:
            ended = f"; cheaper settings were not sought after {SOUGHT:.0%} of the {runs.cpu_limit:g} s of CPU time"
        path = main.with_name(FILE)
        path.write_text(certificate.model_dump_json(indent=2, by_alias=True) + "\n", encoding="utf-8")
        return {
            "verdict": "agree",
            "answer": f"{main.name} stays below {self.accuracy:g} on all {len(proof)} runs of its proof, "
            f"{len(held_out)} of them on motions outside of the search{ended}",
            "already": self._already(base, best, made.name),
            "settings": dict(settings),
            "after": {**settings, **after},
            "difference": lines,
            "inertial": difference,
            "held_out": held_out,
            "bandwidths": widths._asdict() | {"motion": made.name} if widths else None,
            "files": [main.relative_to(folder).as_posix(), path.relative_to(folder).as_posix()],
            "checked": main.name if main.suffix == ".xml" else model.name,
        }

    def _already(self, base: JudgedRun, best: Scored, motion: str) -> str:
        """Answer for a file that is within the accuracy as it is; empty for others."""
        bound = base.bound(start=self.include_start)
        if bound > self.accuracy:
            return ""
        cheaper = (
            "no cheaper settings found" if not best.candidate.settings else "settings for all motions of the proof"
        )
        if best.cost < base.cost:
            cheaper = f"cheaper settings, at {best.cost / base.cost:.2g} of the cost"
        return (
            f"already within {100 * self.accuracy:g} % on its {base.purpose or motion} (error {bound:.2g}); {cheaper}:"
        )

    def _statement(self, settings: Settings) -> Statement:
        """Conditions of the claims on some settings."""
        return Statement(
            engine=self.engine,
            mode=self.case.mode,
            configuration=self.case.configuration,
            actuated=",".join(self.case.robot.actuated),
            motion={MOTION: self.case.motion_hash} if self.case.robot.motion_file else {},
            accuracy=self.accuracy,
            includes_start=self.include_start,
            settings=dict(settings),
        )

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows, parts, record = result.tables[TABLE], result.tables[BUDGET], result.record
        is_searched = bool(record["accuracy"])
        sizes = zip(parts["part"].fillna(""), parts["rms"].fillna(parts["largest"]), strict=True)
        return Conclusion(
            title="loopcheck: settings for an accuracy",
            sections=chain(sections(rows, record) if is_searched else (), part_sections(parts)),
            summary=[*part_summary(parts), *(summary(rows, record, result.folder) if is_searched else ())],
            verdicts=[
                *([record["verdict"]] if is_searched else ()),
                *(verdict_of_figure(size) if part else "not comparable" for part, size in sizes),
            ],
        )


STUDY = Tune


def _unmodified(runs: TuningRuns, purpose: Purpose) -> tuple[JudgedRun, float]:
    """The unmodified simulation on a motion, and the largest bandwidth at which it follows it [rad/s]."""
    usual = runs.given.bandwidth
    (first,) = runs.on(AS_IS, [purpose], {})
    if first.too_weak or (first.ended and first.follows):  # no controller makes motors stronger
        return first, usual
    for part in BANDWIDTHS[1:]:
        (slower,) = runs.on(AS_IS, [controlled(purpose, part * usual, usual)], {})
        if slower.ended and slower.follows:
            return slower, part * usual
    return first, usual


def tuned_case(case: Case, path: Path) -> Case:
    """The same case with another file."""
    robot = case.robot.model_copy(update={"folder": path.parent.absolute(), "mjcf": path.name})
    model = ModelFile(path=path.absolute(), overrides=case.mechanism.model.overrides, actuated=robot.actuated)
    return replace(case, robot=robot, mechanism=replace(case.mechanism, model=model))


def inertial_difference(case: Case, tuned: Case, motion: Motion) -> float:
    """Difference of the inertial efforts of tuned files from those of the original, over their scale [-].

    Args:
        tuned: The case with the tuned files.
        motion: A motion of both.
    """
    first, second = (sources.load("mujoco/kkt").compute_efforts(one, motion).effort for one in (case, tuned))
    scale = effort_scale(case.mechanism, motion).scale
    return float((np.abs(first - second).max(axis=0) / np.maximum(scale, np.finfo(float).tiny)).max())


def reported_forces(path: Path) -> list[str]:
    """Warning that the readings of actuators in a tuned MJCF are not the efforts that act; empty if they are.

    Args:
        path: The file.
    """
    varying = list(varying_forces(ModelFile(path=path)).values())
    if not varying:
        return []
    integrator = f"integrator {varying[0].integrator}"
    return [f"with {integrator}, actuator_force is not the effort that acts: log loopcheck.acted_effort(...).effort"]


def _times(study: Tune, tuning: AskedTuning, settings: Settings) -> dict[str, float]:
    """Computing time of a simulated second on this machine [s]."""
    mechanism = study.case.mechanism
    step = float(settings.get("timestep", tuning.given(mechanism).step))
    return {"seconds_per_simulated_second": tuning.seconds_per_step(mechanism, study.case.guess, settings) / step}
