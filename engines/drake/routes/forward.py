"""Drake's discrete plant and its solver SAP, stepped at several step sizes and extrapolated to step zero.

Loops are Drake's constraints, drives are actuators that hold a velocity. Both are as hard as SAP lets them be: half of
how a simulation starts is forgotten in each step, however short it is, so that it starts some steps before the span.
Where the finest step still changes the extrapolated efforts, finer ones are added.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Self

import numpy as np

from engines.drake._equations import closure_jacobian
from engines.drake._plant import STRONGEST, build, guarded
from engines.drake._stepping import GAIN, Run, simulate
from engines.extrapolation import unsettled, value_at_zero
from engines.projection import drives_along, null_space
from robots.arrays import Array
from robots.efforts import EffortHistory, Refinable, Rung
from robots.mechanism import Mechanism
from robots.motion import Motion
from robots.robot import Case

LONGEST = 0.05
"""Longest time that is divided into equal steps [s]: a sample of the motion, or an equal part of a longer one."""
FARTHEST = 0.08
"""Longest time before the span [s]."""
FINER = 2
"""By what the steps are divided where something moves that nothing drives: it may vibrate on its springs [-]."""
MORE = 3
"""Most rungs that are added, each twice as fine as the last."""
KEPT = 4
"""How many of the finest rungs are extrapolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the simulations are run with.

    Steps are no finer than needed: SAP stops where what is left is a millionth of the momentum, which is more beside
    the effort of a shorter step.
    """

    parts: tuple[int, ...] = (1, 2, 4, 8)
    """Steps per sample of the motion, fewest first; if samples are more than `LONGEST` apart, per part of that time."""
    settled: float = inf
    """Finer steps are added while more than this is left in the extrapolated efforts, over their peak [-]."""
    beyond: int = 0
    """How many finer steps are taken instead of as many of the coarsest, once the efforts are settled."""
    lead: int = 30
    """Steps before the span, if they take no longer than `FARTHEST`: half of how it starts is forgotten in each."""
    strongest: float = STRONGEST
    """Largest effort of the actuators [N or N m]."""


OWN = Settings(settled=2e-6)
"""Those of the route."""


class DrakeForward(Refinable):
    """Efforts read from Drake's actuators while its own solver keeps the loops closed."""

    name = "drake/forward"

    def __init__(self, settings: Settings = OWN) -> None:
        """With the settings of the route, or with others."""
        self.settings = settings

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism, settings = case.mechanism, self.settings
        drives, undriven = _drives(mechanism, motion)
        ladder = _rungs(mechanism, motion, settings, drives, undriven=undriven)
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=_at_no_step(ladder),
            closure_drift=ladder[-1].closure_drift,
            tracking_error=ladder[-1].tracking_error,
            settings={
                "steps": ", ".join(f"{1e3 * rung.dt:g}" for rung in ladder) + " ms",
                **_in_words(settings, undriven=undriven),
            },
            ladder=tuple(ladder),
            note=_note(mechanism, drives),
        )

    def tightened(self) -> Self:
        """See `robots.efforts.Refinable.tightened`; the tolerance of SAP cannot be set from Python."""
        return type(self)(self.settings)

    def refined(self) -> Self:
        """See `robots.efforts.Refinable.refined`; the steps of its own, and one finer."""
        return type(self)(replace(self.settings, beyond=self.settings.beyond + 1))


def divided(report: float) -> float:
    """The time that is divided into equal steps [s]."""
    return float(report / np.ceil(report / LONGEST - 1e-9))


def _rungs(
    mechanism: Mechanism, motion: Motion, settings: Settings, drives: tuple[int, ...], *, undriven: bool
) -> list[Rung]:
    """The simulations, coarsest step first; finer ones are added until the efforts are settled."""

    def rung(count: int) -> Rung:
        dt = divided(motion.dt) / (count * (FINER if undriven else 1))
        lead = (
            0 if undriven else min(settings.lead, int(FARTHEST / dt))
        )  # what nothing drives cannot be led to the start
        return simulate(mechanism, motion, Run(dt=dt, lead=lead, drives=drives, strongest=settings.strongest))

    counts, ladder = list(settings.parts), [rung(count) for count in settings.parts]
    most = len(counts) + (MORE if settings.settled < inf else 0)
    while len(counts) < most and _left(ladder) > settings.settled:
        counts.append(2 * counts[-1])
        ladder.append(rung(counts[-1]))
    return [*ladder[settings.beyond :], *(rung(counts[-1] * 2**k) for k in range(1, settings.beyond + 1))]


def _left(ladder: Sequence[Rung]) -> float:
    ladder = ladder[-KEPT:]
    return unsettled([rung.dt for rung in ladder], [rung.effort for rung in ladder])


def _at_no_step(ladder: Sequence[Rung]) -> Array:
    ladder = ladder[-KEPT:]
    return value_at_zero([rung.dt for rung in ladder], [rung.effort for rung in ladder])


def _in_words(settings: Settings, *, undriven: bool) -> dict[str, str]:
    """Every setting that matters, as text."""
    return {
        "extrapolation": f"Richardson: value at step zero of the polynomial through the finest {KEPT} steps"
        + (f"; up to {MORE} finer ones are added while {settings.settled:g} is left" if settings.settled < inf else ""),
        "pre-roll": f"{0 if undriven else settings.lead} steps before the span, {FARTHEST:g} s at most, started "
        "with the velocities of half a step earlier",
        "loops": "AddBallConstraint, AddWeldConstraint and AddCouplerConstraint",
        "solver": "discrete plant with SAP as it comes, whose tolerance cannot be set",
        "drives": f"actuators with controller gains p 1e-9 and d {GAIN:g}, desired velocity (x(t+dt) - x)/dt, "
        f"effort at most {settings.strongest:g}; read by the net actuation port",
        "loads": "springs as force elements, external wrenches and gravity compensation as applied spatial forces",
    }


def _drives(mechanism: Mechanism, motion: Motion) -> tuple[tuple[int, ...], bool]:
    """Which driven coordinates are held, all unless redundantly actuated; whether something moves undriven."""
    with guarded(DrakeForward.name):
        drake = build(mechanism)

        def jacobian(q: Array) -> Array:
            drake.put(q, np.zeros(mechanism.nv))
            return closure_jacobian(drake, q)

        drives = drives_along(jacobian, motion.q, mechanism.rates_of(mechanism.drives))
        dof = null_space(jacobian(motion.q[len(motion.t) // 2])).shape[1]
    return tuple(drives), dof > len(drives)


def _note(mechanism: Mechanism, drives: tuple[int, ...]) -> str:
    carried = [drive.name for k, drive in enumerate(mechanism.drives) if k not in drives]
    notes = ["first-order steps, extrapolated to step zero; drift and tracking error are of the finest step"]
    if carried:
        notes.append(f"{', '.join(carried)} not driven, as the others move the robot: compare projected efforts")
    return "; ".join(notes)
