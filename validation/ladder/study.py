"""Climbs the ladders of all routes in worker processes, and keeps what is done in a table."""

import hashlib
import importlib.metadata
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa
from pandera.errors import SchemaError

import engines
from analytic.assembly import prescribe
from analytic.noc import Noc
from analytic.powers import effort_scale
from engines import ladder as declared
from engines.extrapolation import value_at_zero
from engines.ladder import Ladder, Trial
from robots.arrays import Array
from robots.errors import NotFoundError, OutputError
from robots.motion import Motion
from robots.robot import DEFAULT, Case, load, regular_modes
from robots.robot import names as robot_names
from validation import statuses
from validation.compare import relative_error
from validation.evaluate import outcome_of
from validation.ladder.analysis import RICHARDSON, refinements
from validation.run import Selection, plan
from validation.statuses import INTERNAL
from validation.tables import drafts, read_csv, write_csv
from validation.workers import ALL_CORES, Call, Lost, Workers, crew, or_raise

TABLE = "ladder_rungs"
KEY = ["robot", "mode", "configuration", "route", "base"]
"""What is climbed at a time, and what tells it from all others."""
_NUMBER = pa.Column(float, nullable=True)
RUNGS = pa.DataFrameSchema(
    {
        # `base` is the ladder that was simulated, `ladder` the same or one extrapolated from its rungs
        **{name: pa.Column(str) for name in (*KEY, "ladder", "refined")},
        "theory": _NUMBER,  # [-]
        "value": pa.Column(float),  # of what is refined
        "dt": pa.Column(float),  # [s]
        "runs": pa.Column(int),
        "plain": pa.Column(bool),
        "settings": pa.Column(str),
        # error, change and grid-convergence index over the actuator's scale [-], observed order [-], times [s]
        **dict.fromkeys(("relative_error", "change", "order", "index", "wall_time"), _NUMBER),
        "span": pa.Column(float),
        "own": pa.Column(bool),
        "note": pa.Column(str),
    },
    strict=True,
    ordered=True,
    coerce=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is measured; an empty tuple means what the comment says."""

    robots: tuple[str, ...] = ()
    """By default all."""
    configurations: tuple[str, ...] = ()
    """By default all."""
    modes: tuple[str, ...] = ()
    """By default the first of each robot that meets no singularity."""
    sources: tuple[str, ...] = ()
    """Routes; by default all that have ladders and are installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A case, its motion and the reference."""

    case: Case
    motion: Motion
    reference: Array
    """Efforts [N or N m], shape (nt, na)."""
    scale: Array
    """What errors of each actuator are divided by [N or N m], shape (na,)."""

    @property
    def where(self) -> Mapping[str, str]:
        """Robot, mode and configuration."""
        return {"robot": self.case.robot.name, "mode": self.case.mode, "configuration": self.case.configuration}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that the page is made from."""

    rungs: pd.DataFrame
    record: Mapping[str, Any]


def run_study(study: Study, folder: Path, *, workers: Workers = ALL_CORES, command: Sequence[str] = ()) -> Findings:
    """Climb all ladders that a folder does not hold yet.

    Args:
        study: What to measure.
        folder: Where `ladder_rungs.csv` grows, a ladder at a time: an interrupted study goes on from there.
        workers: Worker processes; by default one for each core.
        command: The command line, to be recorded.

    Raises:
        HarnessError: If a name is unknown or a motion cannot be assembled.
        OutputError: If the folder cannot be written, or holds a study of other versions or models.
    """
    start = datetime.now(UTC)
    cases = _cases(study)
    held = _held(cases)
    known = _known_rungs(folder, held)
    with crew(workers) as staff:
        motions = dict(staff.results([Call(_scene, (case,)) for case in cases], "motions"))
        scenes = [or_raise(f"motion of {case.robot.name}", motions[k]) for k, case in enumerate(cases)]
        wanted = [(scene, ladder) for scene in scenes for ladder in _ladders(study, scene)]
        missing = [(scene, ladder) for scene, ladder in wanted if not _is_known(known, scene, ladder)]
        rungs, fallen = _without(known, missing), []
        for k, rows in staff.results([Call(climb, task) for task in missing], "ladders"):
            if isinstance(rows, Lost):
                fallen.append(_fallen(*missing[k], rows.reason))
                continue
            rungs = pd.concat([rungs, rows]) if len(rungs) else rows
            write_csv(folder, {TABLE: rungs.sort_values(KEY, kind="stable")})
    record = {
        "command": list(command),
        "start": start.isoformat(timespec="seconds"),
        "duration_s": (datetime.now(UTC) - start).total_seconds(),
        "jobs": workers.count,
        "ladders climbed now": len(missing),
        "ladders lost": len(fallen),
        **held,
    }
    return Findings(rungs=_in_order(pd.concat([rungs, *fallen]), wanted), record=record)


def exit_status(found: Findings) -> int:
    """Exit status, as `statuses.exit_status` says: nothing is judged, but a ladder may be lost."""
    internal = int(found.rungs["note"].str.startswith(INTERNAL).sum())
    return statuses.exit_status({"agree": len(found.rungs), "not run": found.record["ladders lost"]}, internal)


def climb(scene: Scene, ladder: Ladder) -> pd.DataFrame:
    """Run all rungs of a ladder, extrapolate from them, and hold both against the reference."""
    rungs = []
    for trial in ladder.trials:
        compute = partial(trial.source.compute_efforts, scene.case, scene.motion)
        outcome = outcome_of(scene.case, scene.motion, ladder.route, compute)
        history = outcome.compared
        took = sum(rung.wall_time for rung in history.ladder) if history else float("nan")
        effort, note = (history.effort, "") if history else (None, outcome.note)
        rungs.append(_Rung(*_about(trial), effort=effort, wall_time=took, note=note))
    rows = [_rows(scene, ladder, ladder.name, ladder.order, rungs)]
    for count in ladder.extrapolated:
        groups = [rungs[k - count : k] for k in range(count, len(rungs) + 1)]
        name = f"{ladder.name}{RICHARDSON}{count}"
        rows.append(_rows(scene, ladder, name, float(count), [_extrapolated(group) for group in groups]))
    return RUNGS.validate(pd.concat(rows, ignore_index=True))


class _Rung(NamedTuple):
    value: float
    dt: float
    runs: int
    plain: bool
    settings: str
    effort: Array | None
    wall_time: float
    note: str


def _about(trial: Trial) -> tuple[float, float, int, bool, str]:
    return trial.value, trial.dt, trial.runs, trial.plain, trial.settings


def _fallen(scene: Scene, ladder: Ladder, reason: str) -> pd.DataFrame:
    """The rungs of a ladder that took its process down; not kept, so that it is climbed again."""
    rungs = [_Rung(*_about(trial), effort=None, wall_time=np.nan, note=reason) for trial in ladder.trials]
    return RUNGS.validate(_rows(scene, ladder, ladder.name, ladder.order, rungs))


def _extrapolated(group: Sequence[_Rung]) -> _Rung:
    """The value at zero of the polynomial through the efforts of the rungs."""
    efforts = [rung.effort for rung in group if rung.effort is not None]
    finest = group[-1]
    return finest._replace(
        runs=sum(rung.runs for rung in group),
        plain=False,
        effort=value_at_zero([rung.value for rung in group], efforts) if len(efforts) == len(group) else None,
        wall_time=sum(rung.wall_time for rung in group),
        note=next((rung.note for rung in group if rung.note), ""),
    )


def _rows(scene: Scene, ladder: Ladder, name: str, theory: float, rungs: Sequence[_Rung]) -> pd.DataFrame:
    values = [rung.value for rung in rungs]
    efforts = [rung.effort for rung in rungs]
    count = round(theory) if name != ladder.name else 1
    rows = [
        {
            **scene.where,
            "route": ladder.route,
            "base": ladder.name,
            "ladder": name,
            "refined": ladder.refined,
            "theory": theory,
            **{field: getattr(rung, field) for field in ("value", "dt", "runs", "plain", "settings")},
            "relative_error": _error(rung.effort, scene),
            "wall_time": rung.wall_time,
            "span": float(scene.motion.t[-1] - scene.motion.t[0]),
            "own": ladder.own[0] == count and bool(np.isclose(ladder.own[1], rung.value, rtol=1e-9)),
            "note": rung.note,
        }
        for rung in rungs
    ]
    table = pd.concat([pd.DataFrame(rows), refinements(values, efforts, scene.scale, theory)], axis=1)
    return table[list(RUNGS.columns)]


def _error(effort: Array | None, scene: Scene) -> float:
    return np.nan if effort is None else relative_error(effort, scene.reference, scene.scale)


def _cases(study: Study) -> list[Case]:
    """The cases of a study, in the default variant."""
    _want_known(study.sources)
    cases = []
    for name in study.robots or robot_names():
        modes = study.modes or regular_modes(load(name))[:1]
        cases += plan(Selection(robots=(name,), variants=(DEFAULT,), modes=modes, configurations=study.configurations))
    return cases


def _want_known(sources: Sequence[str]) -> None:
    known = tuple(name for name in engines.names() if name.endswith("/forward"))
    for name in sources:
        if name not in known:
            raise NotFoundError("route with ladders", name, known)
        engines.load(name)


def _scene(case: Case) -> Scene:
    motion = prescribe(case)
    reference, scale = Noc().compute_efforts(case, motion).effort, effort_scale(case.mechanism, motion).scale
    return Scene(case=case, motion=motion, reference=reference, scale=scale)


def _ladders(study: Study, scene: Scene) -> Iterator[Ladder]:
    """The ladders of the routes that are asked for, but those that the robot goes without."""

    def wanted(route: str) -> bool:
        return route in study.sources if study.sources else not engines.on_request(route.split("/")[0])

    for ladder in declared.ladders(scene.motion):
        if wanted(ladder.route) and ladder.route not in scene.case.robot.without:
            yield ladder


def _held(cases: Sequence[Case]) -> Mapping[str, Any]:
    """What rungs must share to be shown together."""
    files = {case.robot.name: case.mechanism.model.path for case in cases}
    return {
        "versions": {"loopcheck": importlib.metadata.version("loopcheck"), **engines.versions()},
        "models": {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()},
    }


def _known_rungs(folder: Path, held: Mapping[str, Any]) -> pd.DataFrame:
    """The rungs that a folder holds, if they are of the same versions and models; notes down those of this study."""
    settings, table = folder / "ladder.json", folder / f"{TABLE}.csv"
    try:
        before = json.loads(settings.read_text(encoding="utf-8")) if table.exists() else {"versions": {}, "models": {}}
        rungs = read(table) if table.exists() else pd.DataFrame(columns=list(RUNGS.columns))
        other = [
            f"{kind} of {name}" for kind in held for name in held[kind] if _differs(before[kind], held[kind], name)
        ]
        if not other:
            now = {kind: {**before[kind], **held[kind]} for kind in held}
            with drafts(folder) as draft:
                text = json.dumps(now, indent=2, ensure_ascii=False) + "\n"
                (draft / settings.name).write_text(text, encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError, SchemaError) as error:
        raise OutputError(f"{folder}: want a folder for the study, or one of an earlier one: {error}") from error
    if other:
        raise OutputError(f"{folder}: holds a study with another {', '.join(other)}; want another folder")
    return rungs


def _differs(before: Mapping[str, str], now: Mapping[str, str], name: str) -> bool:
    return before.get(name, now[name]) != now[name]


def read(table: Path) -> pd.DataFrame:
    """The table of rungs as it was written."""
    numbers = {name: [""] for name, column in RUNGS.columns.items() if column.nullable}
    return RUNGS.validate(read_csv(table, keep_default_na=False, na_values=numbers, dtype={"robot": str}))


def _is_known(rungs: pd.DataFrame, scene: Scene, ladder: Ladder) -> bool:
    """Whether the table holds every rung of a ladder, with the same settings."""
    rows = rungs[(rungs[KEY] == _key(scene, ladder)).all(axis=1) & (rungs["ladder"] == ladder.name)]
    return list(zip(rows["value"], rows["settings"], strict=True)) == [(t.value, t.settings) for t in ladder.trials]


def _key(scene: Scene, ladder: Ladder) -> list[str]:
    return [*scene.where.values(), ladder.route, ladder.name]


def _without(rungs: pd.DataFrame, climbed_again: Sequence[tuple[Scene, Ladder]]) -> pd.DataFrame:
    keys = [tuple(_key(*task)) for task in climbed_again]
    return rungs[[key not in keys for key in rungs[KEY].itertuples(index=False, name=None)]]


def _in_order(rungs: pd.DataFrame, wanted: Sequence[tuple[Scene, Ladder]]) -> pd.DataFrame:
    """The rungs of a study, in its order."""
    ranks = {tuple(_key(*task)): rank for rank, task in enumerate(wanted)}
    rank = pd.Series([ranks.get(key, -1) for key in rungs[KEY].itertuples(index=False, name=None)], index=rungs.index)
    return (
        rungs.assign(rank=rank)[rank >= 0]
        .sort_values("rank", kind="stable")
        .drop(columns="rank")
        .reset_index(drop=True)
    )
