"""Verdicts by the accuracy of a user: effort errors against the largest effort that the motion requires.

One rule for unmodified simulations, logs, tuned settings and serial models. The tolerances of routes are limits of
round-off and belong to the scale of an effort (`compare`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.kinematics.redundancy import shared_loads
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.logs.residual import evenly
from loopcheck.robots.arrays import Array, EffortSeries
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.validation.common.limits import FLOORS
from loopcheck.validation.common.verdicts import IDLE, NO_LOAD, accuracy_divisor

CANCELLED = 0.1
"""Peak over scale below which the terms of an effort cancel [-]."""
CHANGE = 1e-3
"""Change of a mass, relative to the mass [-]; with unactuated dofs efforts are not quite linear in it."""
SAMPLES = 60
"""Largest number of samples for the effect of a mass, evenly spread [-]."""


class Verdict(NamedTuple):
    """Verdict on one actuator."""

    verdict: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Efforts that a motion requires of the actuators, as far as the accuracy depends on them."""

    actuators: Sequence[str]
    units: Sequence[str]
    peak: Array
    """Largest required effort of each actuator over the motion [N or N m], shape (na,)."""
    scale: Array
    """Scale of the errors of each actuator [N or N m], shape (na,)."""
    shared: Sequence[Sequence[int]] = ()
    """Groups of redundant actuators that share a load."""
    decisive: Mapping[int, tuple[str, float]] = field(default_factory=dict)
    """Body with the largest effect on an actuator whose terms cancel: name, and effort per relative change of its mass
    [N or N m]."""

    @property
    def divisor(self) -> Array:
        """Effort that the accuracy multiplies [N or N m], shape (na,).

        The peak, and at least a thousandth of the scale. Actuators that share a load have a common ratio of this effort
        to the scale, the largest of their peaks: how they divide the load is a choice of the controller.
        """
        divisor = accuracy_divisor(self.peak, self.scale)
        for group in map(list, self.shared):
            scale = self.scale[group]
            divisor[group] = scale * np.divide(divisor[group], scale, out=np.zeros_like(scale), where=scale > 0).max()
        return divisor

    def judged(self, actuator: int, error: float, floor: float, accuracy: float) -> Verdict:
        """Verdict on the effort error of one actuator.

        Args:
            actuator: Number of the actuator.
            error: Largest error [N or N m].
            floor: Measured noise floor of the error [N or N m].
            accuracy: Largest error that agrees, over the largest required effort [-].
        """
        divisor, peak = float(self.divisor[actuator]), float(self.peak[actuator])
        if not divisor:
            return Verdict("not comparable", NO_LOAD)
        if not np.isfinite([error, floor]).all():
            return Verdict("not comparable", f"error and noise floor must be finite, got {error:g} and {floor:g}")
        note = f"{self._figures(actuator, error, floor, accuracy)}{self._cancellation(actuator, accuracy)}"
        limit = accuracy * divisor
        if error > limit + FLOORS * floor:
            return Verdict("disagree", note)
        if error + floor <= limit:
            return Verdict("agree", note)
        if peak < floor and error <= FLOORS * floor:
            return Verdict("not comparable", f"{IDLE} {error:.3g} {self.units[actuator]}; {note}")
        return Verdict("not comparable", f"undecided by the noise floor: {note}")

    def internal_load(self, actuator: int, internal: float, accuracy: float, allowed: float) -> Verdict:
        """Verdict on the internal load of an actuator that shares a load; empty if it needs no mention.

        Args:
            actuator: Number of the actuator.
            internal: Largest internal load: the part of its effort without effect on the motion [N or N m].
            accuracy: Largest error that agrees, over the largest required effort [-].
            allowed: Largest internal load, over the largest required effort [-].
        """
        divisor = float(self.divisor[actuator])
        if not any(actuator in group for group in self.shared) or not internal > accuracy * divisor:
            return Verdict("", "")
        size = f"{internal:.3g} {self.units[actuator]}, {internal / divisor:.2g} of the largest shared peak"
        if internal > allowed * divisor:
            remedy = "state the allowed load with loopcheck judge --internal-load"
            return Verdict("not comparable", f"internal load: {size}, at most {allowed:g} is expected; {remedy}")
        return Verdict("", f"internal load of {size}")

    def _figures(self, actuator: int, error: float, floor: float, accuracy: float) -> str:
        divisor, unit = float(self.divisor[actuator]), self.units[actuator]
        base = f"the peak {divisor:.3g} {unit}"
        if divisor > self.peak[actuator]:
            base = f"a thousandth of the effort scale, {divisor:.3g} {unit}"
        for group in self.shared:
            if actuator in group:
                scales = ", ".join(f"{self.actuators[k]} {self.scale[k]:.3g} {self.units[k]}" for k in group)
                base = f"{divisor:.3g} {unit}, the largest peak of a shared load, weighted by the scales {scales}"
        return f"error {error / divisor:.2g}, noise floor {floor / divisor:.2g}, limit {accuracy:.2g} of {base}"

    def _cancellation(self, actuator: int, accuracy: float) -> str:
        if actuator not in self.decisive:
            return ""
        body, effect = self.decisive[actuator]
        change = accuracy * float(self.divisor[actuator]) / effect
        return (
            f"; terms cancel to {self.peak[actuator] / self.scale[actuator]:.1g} of their sum: "
            f"a change of {100 * change:.2g} % of the mass of '{body}' alone reaches the limit"
        )


def requirement(mechanism: Mechanism, motion: Motion, effort: EffortSeries, scale: Array | None = None) -> Requirement:
    """The requirement of a motion.

    Args:
        scale: Scale of the errors of each actuator [N or N m], shape (na,), if it is known.
    """
    scale = effort_scale(mechanism, motion).scale if scale is None else scale
    peak = np.abs(effort).max(axis=0, initial=0.0)
    cancelled = np.flatnonzero(peak < CANCELLED * scale)
    effects = _mass_sensitivities(mechanism, motion) if cancelled.size else np.zeros((0, mechanism.na))
    largest = {int(k): int(effects[:, k].argmax()) for k in cancelled}
    return Requirement(
        actuators=[actuator.name for actuator in mechanism.actuators],
        units=mechanism.actuator_units,
        peak=peak,
        scale=scale,
        shared=shared_loads(mechanism, motion),
        decisive={
            k: (mechanism.bodies[body].name, float(effects[body, k]))
            for k, body in largest.items()
            if effects[body, k] > 0
        },
    )


def _mass_sensitivities(mechanism: Mechanism, motion: Motion) -> Array:
    """Largest change over time of each effort per relative change of a single mass [N or N m], shape (bodies, na)."""
    rows = evenly(np.arange(len(motion.t)), SAMPLES)
    q, qd, qdd = motion.q[rows], motion.qd[rows], motion.qdd[rows]

    def efforts(changed: Mechanism) -> Array:
        return needed_efforts(State(mechanism=changed, q=q, qd=qd), qdd).effort

    own = efforts(mechanism)
    changes = [efforts(mechanism.with_mass(body.name, (1 + CHANGE) * body.mass)) - own for body in mechanism.bodies]
    largest: Array = np.abs(np.array(changes)).max(axis=1, initial=0.0) / CHANGE
    return largest
