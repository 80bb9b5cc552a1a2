"""Plans the runs of the study, computes them in worker processes, and keeps what is done in a table."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
from pandera.errors import SchemaError

from analytic.papers import zubizarreta2010 as paper
from robots.errors import NoResultError, NotFoundError, OutputError
from robots.robot import Case, load, make_case
from validation.ctc.classical import ClassicalCtc
from validation.ctc.controller import Controller, Gains
from validation.ctc.engine_plant import engine_plant
from validation.ctc.extended import ExtendedCtc
from validation.ctc.perturbation import KINDS, Kind, make_templates, perturb
from validation.ctc.plant import ExactPlant
from validation.ctc.simulate import Runs, Task, references, simulate
from validation.ctc.task_space import TaskSpaceCtc
from validation.tables import drafts, read_csv, write_csv
from validation.workers import ALL_CORES, Call, Lost, Workers, crew, or_raise

CONTROLLERS: Mapping[str, type[Controller]] = {c.name: c for c in (ClassicalCtc, ExtendedCtc, TaskSpaceCtc)}
EXACT = "exact"
PLANTS = (EXACT, "mujoco", "pybullet")
"""The exact dynamics, and engines that rebuild the robots."""
REGULAR = ("pmp", "mpm", "ppp", "ppm")
"""Modes that meet no singularity on the circle."""
INDICES = ("ISE", "IAE", "ITAE")
KEY = ["plant", "mode", "seed", "kind", "controller", "level", "template"]
"""What tells a run from all others."""
HISTORY_STEP = 10
"""Every so many control actions of a history are kept."""

RUNS = pa.DataFrameSchema(
    {
        **{name: pa.Column(str) for name in ("plant", "mode")},
        "seed": pa.Column(int),
        **{name: pa.Column(str) for name in ("kind", "controller")},
        "level": pa.Column(float),  # [%]
        "template": pa.Column(int),
        # ISE [m² s], IAE [m s], ITAE [m s²], largest error [m], time of divergence [s]
        **{name: pa.Column(float, nullable=True) for name in (*INDICES, "max_error", "diverged_at")},
    },
    strict=True,
    ordered=True,
    coerce=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is varied, and what is held."""

    plants: tuple[str, ...] = (EXACT,)
    modes: tuple[str, ...] = ("pmp",)
    seeds: tuple[int, ...] = (0,)
    kinds: tuple[Kind, ...] = KINDS
    levels: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    """How far the parameters of the plant are off [%]."""
    templates: int = 10
    """Plants for each level."""
    configuration: str = "vertical"
    overshoot: float = 0.1
    """Overshoot that the gains are tuned to [-]."""
    peak_time: float = 0.1
    """Time of its peak [s]."""
    task: Task = field(default_factory=Task)

    @property
    def gains(self) -> Gains:
        """The gains of all controllers."""
        return Gains.from_response(overshoot=self.overshoot, peak_time=self.peak_time)

    @property
    def held(self) -> Mapping[str, Any]:
        """What every run of the study shares."""
        return {
            "configuration": self.configuration,
            "overshoot [-]": self.overshoot,
            "peak time [s]": self.peak_time,
            "Kp [1/s²]": self.gains.Kp,
            "Kv [1/s]": self.gains.Kv,
            **{f"task: {name}": value for name, value in asdict(self.task).items()},
            "model": hashlib.sha256(_case(self, REGULAR[0]).mechanism.model.path.read_bytes()).hexdigest(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that the report is made from."""

    runs: pd.DataFrame
    histories: pd.DataFrame
    record: Mapping[str, Any]


def run_study(study: Study, folder: Path, *, workers: Workers = ALL_CORES, command: Sequence[str] = ()) -> Findings:
    """Compute all runs of a study that a folder does not hold yet.

    Args:
        study: What to run.
        folder: Where `ctc_runs.csv` grows, a batch at a time: an interrupted study goes on from there.
        workers: Worker processes; by default one for each core.
        command: The command line, to be recorded.

    Raises:
        NotFoundError: If a mode, plant or kind is unknown.
        OutputError: If the folder cannot be written, or holds a study with other settings.
        NoResultError: If runs crashed or did not come to an end; all others are in the folder then.
    """
    start = datetime.now(UTC)
    _want_known(study)
    runs = _known_runs(study, folder)
    missing = _missing(study, runs)
    lost = []
    with crew(workers) as staff:
        for k, rows in staff.results([Call(run_batch, (study, batch)) for batch in missing], "batches of runs"):
            if isinstance(rows, Lost):
                lost.append(f"{', '.join(map(str, missing[k].iloc[0][KEY[:5]]))}: {rows.reason}")
                continue
            runs = pd.concat([runs, rows]) if len(runs) else rows
            write_csv(folder, {"ctc_runs": runs.sort_values(KEY)})
        histories = _known_histories(study, folder)
        if histories.empty:
            shown = staff.results([Call(_history, (study, name)) for name in CONTROLLERS], "histories")
            histories = pd.concat([or_raise("a history", rows) for _, rows in shown])
            histories = histories.sort_values(["controller", "t"])
            write_csv(folder, {"ctc_histories": histories})
    if lost:
        raise NoResultError(
            f"{len(lost)} of {len(missing)} batches of runs are lost, the next ctc tries again: {lost[0]}"
        )
    order = [study.plants, study.modes, study.seeds, study.kinds, tuple(CONTROLLERS)]
    wanted = runs[_in_study(study, runs)]
    ranks = {name: dict(zip(values, range(len(values)), strict=True)) for name, values in zip(KEY, order, strict=False)}
    wanted = wanted.sort_values(KEY, key=lambda column: column.map(ranks.get(str(column.name), lambda value: value)))
    record = {
        "command": list(command),
        "start": start.isoformat(timespec="seconds"),
        "duration_s": (datetime.now(UTC) - start).total_seconds(),
        "computed_now": sum(map(len, missing)),
        "varied": {name: list(getattr(study, name)) for name in ("plants", "modes", "seeds", "kinds", "levels")}
        | {"templates": study.templates, "controllers": list(CONTROLLERS)},
        "held": dict(study.held),
    }
    return Findings(runs=wanted.reset_index(drop=True), histories=histories, record=record)


def run_batch(study: Study, batch: pd.DataFrame) -> pd.DataFrame:
    """Run robots that share plant, mode, seed, kind and controller; rows of `KEY` in, rows of the table out."""
    first = batch.iloc[0]
    templates = make_templates(study.templates, np.random.default_rng(int(first["seed"])))
    nominal = paper.parameters(_case(study, str(first["mode"])).mechanism)
    robots = [
        perturb(nominal, templates[template], level / 100, first["kind"])
        for level, template in zip(batch["level"], batch["template"], strict=True)
    ]
    found = _runs(study, str(first["plant"]), str(first["mode"]), str(first["controller"]), robots)
    indices = {name: getattr(found, name) for name in INDICES}
    with np.errstate(invalid="ignore"):
        peaks = found.error.max(axis=0)
    return RUNS.validate(batch.assign(**indices, max_error=peaks, diverged_at=found.diverged_at))


def _runs(study: Study, plant: str, mode: str, controller: str, robots: Sequence[paper.Parameters]) -> Runs:
    case = _case(study, mode)
    nominal, elbow = paper.parameters(case.mechanism), np.sign(np.sin(paper.passive_guess(case)))
    g = -float(case.mechanism.gravity[1])
    x, xd, _ = study.task.pose()
    start = (np.repeat(x[:1], len(robots), axis=0), np.repeat(xd[:1], len(robots), axis=0))
    exact = ExactPlant(robots, elbow, *start, g=g)
    control, wanted = CONTROLLERS[controller](nominal, study.gains, g=g), references(nominal, elbow, study.task)
    if plant == EXACT:
        return simulate(control, exact, wanted, study.task)
    with engine_plant(plant, case, robots, start[0], exact) as rebuilt:
        return simulate(control, rebuilt, wanted, study.task)


def _history(study: Study, controller: str) -> pd.DataFrame:
    """Error, pose and joints over time of the first template at the highest level, on the exact plant."""
    about = _about_history(study)
    case = _case(study, str(about["mode"]))
    nominal, elbow = paper.parameters(case.mechanism), np.sign(np.sin(paper.passive_guess(case)))
    template = make_templates(1, np.random.default_rng(study.seeds[0]))[0]
    robot = perturb(nominal, template, float(about["level"]) / 100, "all")
    found = _runs(study, EXACT, case.mode, controller, [robot])
    every = slice(None, None, HISTORY_STEP)
    names = ["x", "y", "theta", *(f"{kind}{i}" for kind in ("qa", "qp") for i in (1, 2, 3))]
    wanted = [[*now.x, *now.q] for now in references(nominal, elbow, study.task)[every]]
    got = np.concatenate([found.x[every, 0], found.q[every, 0]], axis=1)
    columns = {"controller": controller, **about, "t": study.task.t[every], "error": found.error[every, 0]}
    reference = pd.DataFrame(wanted, columns=[f"{name}_ref" for name in names])
    return pd.concat([pd.DataFrame(columns), pd.DataFrame(got, columns=names), reference], axis=1)


def _about_history(study: Study) -> Mapping[str, str | int | float]:
    return {"mode": study.modes[0], "seed": study.seeds[0], "level": max(study.levels)}


def _known_histories(study: Study, folder: Path) -> pd.DataFrame:
    """The histories that a folder holds, if they are those of this study; else none."""
    path = folder / "ctc_histories.csv"
    if not path.exists():
        return pd.DataFrame()
    histories = read_csv(path)
    about = _about_history(study)
    same = set(about) <= set(histories) and all((histories[name] == value).all() for name, value in about.items())
    return histories if same and set(histories["controller"]) == set(CONTROLLERS) else pd.DataFrame()


def _case(study: Study, mode: str) -> Case:
    return make_case(load("3rrr"), variant="default", mode=mode, configuration=study.configuration)


def _want_known(study: Study) -> None:
    for kind, names, known in (
        ("plant of the study", study.plants, PLANTS),
        ("mode of the study", study.modes, REGULAR),
        ("kind of perturbation", study.kinds, KINDS),
    ):
        for name in names:
            if name not in known:
                raise NotFoundError(kind, name, known)


def _known_runs(study: Study, folder: Path) -> pd.DataFrame:
    """The runs that a folder holds, if they are of this study."""
    settings, table = folder / "ctc.json", folder / "ctc_runs.csv"
    held = json.loads(json.dumps(study.held))
    try:
        if not table.exists():
            with drafts(folder) as draft:
                text = json.dumps({"held": held}, indent=2, ensure_ascii=False) + "\n"
                (draft / settings.name).write_text(text, encoding="utf-8")
            return pd.DataFrame(columns=list(RUNS.columns))
        before = json.loads(settings.read_text(encoding="utf-8"))["held"]
        runs = RUNS.validate(read_csv(table))
    except (OSError, ValueError, KeyError, SchemaError) as error:
        raise OutputError(f"{folder}: want a folder for the study, or one of an earlier one: {error}") from error
    if before != held:
        other = [name for name in held if before.get(name) != held[name]]
        raise OutputError(f"{folder}: holds a study with another {', '.join(other)}; want another folder")
    return runs


def _missing(study: Study, runs: pd.DataFrame) -> list[pd.DataFrame]:
    """Batches of runs that are not there yet."""
    values = (study.plants, study.modes, study.seeds, study.kinds, CONTROLLERS, study.levels, range(study.templates))
    done = set(runs[KEY].itertuples(index=False, name=None))
    rows = pd.DataFrame([row for row in product(*values) if row not in done], columns=KEY)
    return [batch for _, batch in rows.groupby(KEY[:5], sort=False)]


def _in_study(study: Study, runs: pd.DataFrame) -> pd.Series:
    wanted = (study.plants, study.modes, study.seeds, study.kinds, CONTROLLERS, study.levels, range(study.templates))
    inside = pd.Series(True, index=runs.index)
    for name, values in zip(KEY, wanted, strict=True):
        inside &= runs[name].isin(list(values))
    return inside
