"""Computes the cases of a study that a folder does not hold yet, in worker processes here or on a cluster."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analytic.noc import Noc
from robots.errors import MechanismError, NotFoundError, OutputError
from validation import sources
from validation.execution.cluster import cluster, versions
from validation.execution.workers import ALL_CORES, Call, Lost, Workers, crew
from validation.studies.sweep import motions
from validation.studies.sweep.cases import Study, compute_cases, lost_cases, nominal
from validation.studies.sweep.dataset import chunks, missing, part, write_part
from validation.studies.sweep.statistics import Statistics, gather
from validation.tables import drafts


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
    workers: Workers = ALL_CORES,
    scheduler: str | None = None,
    command: Sequence[str] = (),
) -> Findings:
    """Compute all cases of a study that a folder does not hold yet, and gather its statistics.

    Args:
        study: What to compute.
        folder: Where the data set grows, a chunk at a time: an interrupted study goes on from there.
        workers: Worker processes; by default one for each core. Cases that are computed together and are lost, because
            their process died or ran out of time, are computed again one at a time, each with that time.
        scheduler: Address of a Dask scheduler whose workers compute instead, but for such cases.
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
    lacking = [(chunk, parts[chunk]) for chunk in missing(folder, parts, len(study.every_source))]
    calls = [Call(compute_cases, (study, cases)) for _, cases in lacking]
    lost = []
    with cluster(scheduler) if scheduler else crew(workers) as staff:
        for k, rows in staff.results(calls, "cases, some at a time"):
            if isinstance(rows, Lost):
                lost.append(lacking[k])
            else:
                write_part(rows, part(folder, lacking[k][0]))
    for chunk, rows in _one_by_one(study, lost, workers):
        write_part(rows, part(folder, chunk))
    record = {
        "command": list(command),
        "start": start.isoformat(timespec="seconds"),
        "duration_s": (datetime.now(UTC) - start).total_seconds(),
        "workers": f"Dask, {scheduler}" if scheduler else workers.count,
        "cases computed now": sum(len(cases) for _, cases in lacking),
        **held,
    }
    return Findings(study=study, statistics=gather(study, folder, len(parts), nominal_efforts(study)), record=record)


def nominal_efforts(study: Study) -> dict[str, float]:
    """Root mean square effort of each actuator of the nominal robot in its own motion [N or N m]."""
    of = nominal(study)
    history = Noc().compute_efforts(of.case, of.scene.own)
    rms = np.sqrt((history.effort**2).mean(axis=0))
    return {name: float(value) for name, value in zip(history.actuators, rms, strict=True)}


def _one_by_one(study: Study, lost: Sequence[tuple[int, range]], workers: Workers) -> Iterator[tuple[int, pa.Table]]:
    """Rows of chunks that were lost, each once all of its cases have come to an end; those lost again say why."""
    if not lost:
        return
    cases = [(chunk, case) for chunk, of_chunk in lost for case in of_chunk]
    numbers = dict(lost)
    found: dict[int, dict[int, pa.Table]] = {chunk: {} for chunk in numbers}
    with crew(workers) as staff:
        calls = [Call(compute_cases, (study, (case,))) for _, case in cases]
        for k, rows in staff.results(calls, "cases, one at a time"):
            chunk, case = cases[k]
            found[chunk][case] = lost_cases(study, (case,), rows.reason) if isinstance(rows, Lost) else rows
            if len(found[chunk]) == len(numbers[chunk]):
                of_chunk = found.pop(chunk)
                yield chunk, pa.concat_tables([of_chunk[case] for case in numbers[chunk]])


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
        "versions": versions(),
        "model": hashlib.sha256(case.mechanism.model.path.read_bytes()).hexdigest(),
    }


def _settle(folder: Path, held: Mapping[str, Any]) -> None:
    """See that a folder is for this study, and note so.

    Raises:
        OutputError: If it holds another, or cannot be written.
    """
    path = folder / "sweep.json"
    try:
        if path.exists():
            before = json.loads(path.read_text(encoding="utf-8"))
            other = [f"{name} {before.get(name)}" for name in held if before.get(name) != held[name]]
        else:
            other = []
            with drafts(folder) as draft:
                text = json.dumps(held, indent=2, ensure_ascii=False) + "\n"
                (draft / path.name).write_text(text, encoding="utf-8")
    except (OSError, ValueError, AttributeError) as error:
        raise OutputError(f"{folder}: want a folder for the study, or one of an earlier one: {error}") from error
    if other:
        raise OutputError(f"{folder}: holds a study with another {', '.join(other)}; want another folder")
