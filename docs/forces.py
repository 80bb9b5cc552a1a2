"""Readings of forces in the joints, in the reference: `python -m docs.forces`.

The first table and the code are the declarations of the engines. The second table holds the readings against the
equations of motion, at the efforts of the same simulation.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from docs.marked_parts import with_part
from loopcheck import engines
from loopcheck.analytic.dynamics.maximal_wrenches import MaximalWrenches
from loopcheck.analytic.dynamics.recursive_wrenches import recursive_wrenches
from loopcheck.analytic.dynamics.wrenches import Wrenches, disagreement
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.configurations import normal
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.declarations import WrenchReading
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, ReadsWrenches
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.robots.size import size
from loopcheck.validation.common import sources

PAGE = Path(__file__).parent / "reference/forces.md"
ROBOTS = ("four_bar", "3prr", "3rrr", "slider_crank", "6spu")
SAMPLES = slice(20, 24)
"""Part of each motion; all bodies move."""


def readings() -> Iterator[tuple[str, WrenchReading]]:
    """Each reading with its engine; all engines must be installed."""
    for engine in engines.engine_names():
        if engines.provides(engine, "wrenches"):
            yield from ((engine, reading) for reading in engines.part(engine, "wrenches").READINGS)


def read(route: str, case: Case, motion: Motion) -> EffortHistory:
    """Efforts of a route with wrenches."""
    source = sources.load(route)
    assert isinstance(source, ReadsWrenches)
    return source.with_wrenches().compute_efforts(case, motion)


def differences(case: Case, motion: Motion, effort: Array, wrench: Array) -> Array:
    """Largest differences from the equations of what the components of a reading determine.

    Args:
        effort: Efforts of the same simulation [N or N m], shape (nt, na).
        wrench: The reading [N m, N], shape (nt, connections, 6).

    Returns:
        Over the largest sum of terms [-], shape (connections,); NaN without a reading.
    """
    mechanism, given = case.mechanism, np.isfinite(wrench)
    reference = recursive_wrenches(State(mechanism=mechanism, q=motion.q, qd=motion.qd), motion.qdd, effort)
    unique = MaximalWrenches(mechanism, motion.q).uniqueness(normal(mechanism)).among(given)
    values = Wrenches(wrench=np.where(given, wrench, reference.wrench))
    found = disagreement(reference, values, unique, size(mechanism))
    return np.asarray(np.where(given.any(axis=(0, 2)), found, np.nan))


def declarations() -> str:
    """The table of the readings."""
    rows = [
        {
            "reading": f"{engine}: `{reading.name}`",
            "of": reading.carriers,
            "point": reading.point,
            "axes": reading.axes,
            "acts on": reading.sign,
            "effort of the drive": reading.drive,
            "time": reading.time,
            "no conversion makes right": reading.fault or "-",
        }
        for engine, reading in readings()
    ]
    return str(pd.DataFrame(rows).to_markdown(index=False))


def code() -> str:
    """The lines of code of the readings."""
    return "\n\n".join(
        f"**{engine}, `{reading.name}`**\n\n```python\n{reading.code.strip()}\n```" for engine, reading in readings()
    )


def errors() -> str:
    """The table of the largest errors on some robots."""
    columns: dict[str, dict[str, str]] = {}
    for robot in ROBOTS:
        case = representative_case(load(robot))
        motion = prescribe(case)
        motion = motion.assemble(motion.t[SAMPLES])
        columns[robot] = {}
        for engine in dict.fromkeys(engine for engine, _ in readings()):
            history = read(f"{engine}/forward", case, motion)
            for name, wrench in history.wrenches.items():
                found = np.nanmax(differences(case, motion, history.effort, wrench))
                columns[robot][f"{engine}: `{name}`"] = f"{found:.0e}"
    return str(pd.DataFrame(columns).rename_axis("reading").to_markdown())


def declared(text: str) -> str:
    """The page with the declarations of the engines."""
    return with_part(with_part(text, "readings", declarations()), "code", code())


if __name__ == "__main__":
    PAGE.write_text(with_part(declared(PAGE.read_text(encoding="utf-8")), "errors", errors()), encoding="utf-8")
