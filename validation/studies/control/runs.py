"""Runs of robots with wrong parameters under a controller, and the history of one robot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from loopcheck.analytic.papers import zubizarreta2010 as paper
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.execution.tables import integer, number, table_of, text
from loopcheck.validation.studies.control.controllers import ClassicalCtc, Controller, ExtendedCtc, Gains, TaskSpaceCtc
from loopcheck.validation.studies.control.engine_plant import engine_plant
from loopcheck.validation.studies.control.perturbation import Kind, make_templates, perturb
from loopcheck.validation.studies.control.plant import ExactPlant
from loopcheck.validation.studies.control.simulate import Circle, ControlledRuns, references, simulate

CONTROLLERS: Mapping[str, type[Controller]] = {c.name: c for c in (ClassicalCtc, ExtendedCtc, TaskSpaceCtc)}
EXACT = "exact"
PLANTS = (EXACT, "mujoco", "pybullet")
"""The exact dynamics, and engines that rebuild the robots."""
REGULAR = ("pmp", "mpm", "ppp", "ppm")
"""Modes without a singularity on the circle."""
INDICES = ("ISE", "IAE", "ITAE")
KEY = ["plant", "mode", "seed", "kind", "controller", "level", "template"]
"""Columns that identify a run."""
HISTORY_STEP = 10
"""Control actions per stored sample of a history."""

RUNS = table_of(
    {
        **{name: text() for name in ("plant", "mode")},
        "seed": integer(),
        **{name: text() for name in ("kind", "controller")},
        "level": number("%"),
        "template": integer(),
        "ISE": number("m² s"),
        "IAE": number("m s"),
        "ITAE": number("m s²"),
        "max_error": number("m"),
        "diverged_at": number("s"),
        "note": text(),
    }
)
POSE = {"x": "m", "y": "m", "theta": "rad", **{f"{kind}{i}": "rad" for kind in ("qa", "qp") for i in (1, 2, 3)}}
"""Task coordinates and joints, with their units."""
HISTORIES = table_of(
    {
        **{name: text() for name in ("controller", "mode")},
        "seed": integer(),
        "level": number("%"),
        "t": number("s"),
        "error": number("m"),
        **{name: number(unit) for name, unit in POSE.items()},
        **{f"{name}_ref": number(unit) for name, unit in POSE.items()},
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """Common settings of all runs."""

    configuration: str = "vertical"
    overshoot: float = 0.1
    """Overshoot, a target of the tuned gains [-]."""
    peak_time: float = 0.1
    """Time of its peak [s]."""
    task: Circle = field(default_factory=Circle)

    @property
    def gains(self) -> Gains:
        """The gains of all controllers."""
        return Gains.from_response(overshoot=self.overshoot, peak_time=self.peak_time)

    def case(self, mode: str) -> Case:
        """The robot in a mode."""
        return make_case(load("3rrr"), variant="default", mode=mode, configuration=self.configuration)


class RunGroup(NamedTuple):
    """Runs that are computed together."""

    plant: str
    mode: str
    seed: int
    """Of the templates."""
    kind: Kind
    controller: str
    levels: tuple[float, ...]
    """Errors of the parameters of the plant [%]."""
    templates: int
    """Number of plants per level."""

    @property
    def rows(self) -> pd.DataFrame:
        """Columns that identify each run."""
        return pd.DataFrame(
            [(*self[:5], level, template) for level in self.levels for template in range(self.templates)], columns=KEY
        )


def run_batch(settings: ControlSettings, batch: RunGroup) -> pd.DataFrame:
    """Rows of the table of runs."""
    templates = make_templates(batch.templates, np.random.default_rng(batch.seed))
    nominal, rows = paper.parameters(settings.case(batch.mode).mechanism), batch.rows
    robots = [
        perturb(nominal, templates[template], level / 100, batch.kind)
        for level, template in zip(rows["level"], rows["template"], strict=True)
    ]
    runs = _runs(settings, batch.plant, batch.mode, batch.controller, robots)
    indices = {name: getattr(runs, name) for name in INDICES}
    with np.errstate(invalid="ignore"):
        peaks = runs.error.max(axis=0)
    return RUNS.frame(rows.assign(**indices, max_error=peaks, diverged_at=runs.diverged_at, note=""))


def not_run(batch: RunGroup, reason: str) -> pd.DataFrame:
    """Rows of runs that were not computed."""
    blank = dict.fromkeys((*INDICES, "max_error", "diverged_at"), np.nan)
    return RUNS.frame(batch.rows.assign(**blank, note=reason))


def _runs(
    settings: ControlSettings, plant: str, mode: str, controller: str, robots: Sequence[paper.Parameters]
) -> ControlledRuns:
    case = settings.case(mode)
    nominal, elbow = paper.parameters(case.mechanism), np.sign(np.sin(paper.passive_guess(case)))
    g = -float(case.mechanism.gravity[1])
    x, xd, _ = settings.task.pose()
    start = (np.repeat(x[:1], len(robots), axis=0), np.repeat(xd[:1], len(robots), axis=0))
    exact = ExactPlant(robots, elbow, *start, g=g)
    control, path = CONTROLLERS[controller](nominal, settings.gains, g=g), references(nominal, elbow, settings.task)
    if plant == EXACT:
        return simulate(control, exact, path, settings.task)
    with engine_plant(plant, case, robots, start[0], exact) as rebuilt:
        return simulate(control, rebuilt, path, settings.task)


def history(settings: ControlSettings, controller: str, mode: str, seed: int, level: float) -> pd.DataFrame:
    """Error, pose and joints over time of the first template of a seed, on the exact plant.

    Args:
        settings: Common settings of all runs.
        mode: Working mode.
        seed: Seed of the templates.
        level: Relative error of the plant's parameters [%].
    """
    case = settings.case(mode)
    nominal, elbow = paper.parameters(case.mechanism), np.sign(np.sin(paper.passive_guess(case)))
    template = make_templates(1, np.random.default_rng(seed))[0]
    runs = _runs(settings, EXACT, mode, controller, [perturb(nominal, template, level / 100, "all")])
    every = slice(None, None, HISTORY_STEP)
    columns = {
        "controller": controller,
        **{"mode": mode, "seed": seed, "level": level},
        "t": settings.task.t[every],
        "error": runs.error[every, 0],
    }
    poses = np.concatenate([runs.x[every, 0], runs.q[every, 0]], axis=1)
    path = [[*now.x, *now.q] for now in references(nominal, elbow, settings.task)[every]]
    reference = pd.DataFrame(path, columns=[f"{name}_ref" for name in POSE])
    return HISTORIES.frame(
        pd.concat([pd.DataFrame(columns), pd.DataFrame(poses, columns=list(POSE)), reference], axis=1)
    )
