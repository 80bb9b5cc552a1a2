"""Movies of spatial robots, drawn by MuJoCo in worker processes; no other result depends on them."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from loopcheck.engines.mujoco.renderer import render
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.comparison.verdicts import Key
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool
from loopcheck.validation.report.geometry import TRACE, is_planar, paths, steps_shown

QUALITY = 40
"""Of the WebP pictures, 0 to 100; a movie of 60 has about 300 kB."""


TIME_LIMIT = 120.0
"""How long the drawing of a movie may take [s]; without a graphics card it takes a few seconds."""


class Movies(NamedTuple):
    """Movies of robots, and reasons for missing movies."""

    frames: Sequence[Mapping[str, Any]]
    """Rows of the table of that name."""
    missing: Mapping[str, str]
    """Why there is no movie, by robot and mode, as `6spu, home`."""


NO_MOVIES = Movies((), {})


def movies(cases: Sequence[Case], motions: Mapping[Key, Any], pool: WorkerPool) -> Movies:
    """Draw each mode of each spatial robot, in its first variant.

    Args:
        motions: The motion of each case, or the reason for its absence.
        pool: Worker processes; a lost worker costs only its movie.
    """
    moving = [(case, motions[case.key]) for case in _first(cases, motions)]
    spatial = [(case, motion) for case, motion in moving if _leaves_its_plane(case, motion)]
    if not spatial:
        return NO_MOVIES
    tasks = [
        Task(draw, (case.mechanism, case.robot.trace, motion.q[steps_shown(len(motion.t))])) for case, motion in spatial
    ]
    drawn = pool.limited(TIME_LIMIT).results(tasks, "movies")  # no run waits for a movie
    rows, missing = [], {}
    for (case, motion), result in zip(spatial, drawn, strict=True):
        if isinstance(result, list):
            shown = zip(motion.t[steps_shown(len(motion.t))], result, strict=True)
            rows += [{"robot": case.robot.name, "mode": case.mode, "t": t, "image": image} for t, image in shown]
        else:
            missing[f"{case.robot.name}, {case.mode}"] = result.reason if isinstance(result, WorkerFailure) else result
    return Movies(rows, missing)


def _first(cases: Sequence[Case], motions: Mapping[Key, Any]) -> list[Case]:
    """The first case of each mode of each robot that has a motion."""
    cases_of_modes = {
        (case.robot.name, case.mode): case for case in reversed(cases) if isinstance(motions[case.key], Motion)
    }
    return list(cases_of_modes.values())[::-1]


def _leaves_its_plane(case: Case, motion: Motion) -> bool:
    return not is_planar(np.concatenate(list(paths(case.mechanism, motion.q, case.robot.trace).values())))


def draw(mechanism: Mechanism, trace: str | None, q: Array) -> list[str] | str:
    """Draw a mechanism in some poses, as WebP in base64, or return the reason for a failure.

    Args:
        trace: Site with a drawn path, or None.
        q: Joint positions [m or rad], shape (frames, nq).
    """
    of_names = dict(paths(mechanism, q, trace))
    path = of_names.pop(TRACE, np.zeros((1, 0, 3)))[0]
    bodies = {"world": WORLD, **{body.name: k for k, body in enumerate(mechanism.bodies)}}
    try:
        pictures = render(mechanism, q, {bodies[name]: points for name, points in of_names.items()}, path)
    except HarnessError as error:
        return str(error)
    return [_compressed(picture) for picture in pictures]


def _compressed(picture: AnyArray) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, "WEBP", quality=QUALITY)
    return base64.b64encode(file.getvalue()).decode()
