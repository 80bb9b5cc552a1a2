"""Computes the cases of a study that a folder does not hold yet, in worker processes here or on a cluster."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from joblib import cpu_count

import engines
from analytic.noc import Noc
from robots.errors import MechanismError, NotFoundError, OutputError
from validation import sources
from validation.sweep import motions, pool
from validation.sweep.cases import Study, compute_cases, lost_cases, nominal
from validation.sweep.dataset import chunks, missing, part, write_part
from validation.sweep.statistics import Statistics, gather

DIED = "its worker process died: an engine crashed, or memory ran out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that the page is made from."""

    study: Study
    statistics: Statistics
    record: Mapping[str, Any]


def run_study(
    study: Study,
    folder: Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    command: Sequence[str] = (),
) -> Findings:
    """Compute all cases of a study that a folder does not hold yet, and gather its statistics.

    Args:
        study: What to compute.
        folder: Where the data set grows, a chunk at a time: an interrupted study goes on from there.
        jobs: Number of worker processes; by default one for each core.
        scheduler: Address of a Dask scheduler whose workers compute instead.
        command: The command line, to be recorded.

    Raises:
        HarnessError: If a name is unknown, the robot has no motion, or the scheduler is not there.
        OutputError: If the folder cannot be written, or holds another study.
    """
    start = datetime.now(UTC)
    _want_known(study)
    held = _held(study)
    _settle(folder, held)
    parts = chunks(study.cases)
    lacking = missing(folder, parts, len(study.every_source))
    numbers = {parts[chunk]: chunk for chunk in lacking}
    with pool.shown("cases", sum(map(len, parts))) as done:
        done(study.cases - sum(map(len, numbers)))
        for cases, rows in pool.calls(partial(compute_cases, study), list(numbers), jobs=jobs, scheduler=scheduler):
            write_part(_one_by_one(study, cases) if rows is None else rows, part(folder, numbers[cases]))
            done(len(cases))
    record = {
        "command": list(command),
        "start": start.isoformat(timespec="seconds"),
        "duration_s": (datetime.now(UTC) - start).total_seconds(),
        "workers": f"Dask, {scheduler}" if scheduler else jobs or cpu_count(),
        "cases computed now": sum(map(len, numbers)),
        **held,
    }
    return Findings(study=study, statistics=gather(study, folder, len(parts), nominal_efforts(study)), record=record)


def nominal_efforts(study: Study) -> dict[str, float]:
    """Root mean square effort of each actuator of the nominal robot in its own motion [N or N m]."""
    of = nominal(study)
    history = Noc().compute_efforts(of.case, of.scene.own)
    rms = np.sqrt((history.effort**2).mean(axis=0))
    return {name: float(value) for name, value in zip(history.actuators, rms, strict=True)}


def _one_by_one(study: Study, cases: Sequence[int]) -> pa.Table:
    """Rows of cases over which a worker died; those that do it again are lost, the others are not."""
    rows = pool.alone(partial(compute_cases, study), [(case,) for case in cases])
    return pa.concat_tables([lost_cases(study, case, DIED) if found is None else found for case, found in rows])


def _want_known(study: Study) -> None:
    sources.want_known(study.sources)
    for name in study.sources:
        sources.load(name)
    for kind in study.motions:
        if kind not in motions.KINDS:
            raise NotFoundError("kind of motion", kind, motions.KINDS)
    if study.motions == ():
        raise MechanismError("want a kind of motion")


def _held(study: Study) -> Mapping[str, Any]:
    """What all rows of a data set share."""
    case = nominal(study).case
    settled = asdict(study) | {"mode": case.mode, "configuration": case.configuration}
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in settled.items()},
        "sources": list(study.every_source),
        "versions": pool.versions() | dict(engines.versions()),
        "model": hashlib.sha256(case.mechanism.model.path.read_bytes()).hexdigest(),
    }


def _settle(folder: Path, held: Mapping[str, Any]) -> None:
    """See that a folder is for this study, and note so.

    Raises:
        OutputError: If it holds another, or cannot be written.
    """
    path = folder / "sweep.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            before = json.loads(path.read_text(encoding="utf-8"))
            other = [f"{name} {before.get(name)}" for name in held if before.get(name) != held[name]]
        else:
            other = []
            draft = path.with_suffix(".writing")
            draft.write_text(json.dumps(held, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            draft.replace(path)
    except (OSError, ValueError, AttributeError) as error:
        raise OutputError(f"{folder}: want a folder for the study, or one of an earlier one: {error}") from error
    if other:
        raise OutputError(f"{folder}: holds a study with another {', '.join(other)}; want another folder")
