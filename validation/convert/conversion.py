"""Proof of a conversion: the converted mechanism against the original, on the closed loops at random states."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.dynamics.powers import powers_along, scale_of, tree_inertia
from loopcheck.analytic.kinematics.closing import allowed
from loopcheck.analytic.kinematics.continuation import close_batch
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.random_states import RandomStates
from loopcheck.robots.arrays import AccelerationSeries, Array
from loopcheck.robots.formats.losses import Loss
from loopcheck.robots.mechanism import Mechanism

LIMIT = 1e-11
"""Largest error of a converted quantity relative to its scale [-]: files have 17 digits, the rest is round-off."""
GAP = 1e-9
"""Largest growth of the loop gap in the poses of the original [m or rad]."""
CLOSED_BY_OTHERS = 1e-6
"""Largest gap in the poses of the carried part at which the original is compared [m or rad]."""
AGREE, DISAGREE, MISSING, INFORMATIONAL = "agree", "disagree", "not comparable", "informational"


class Row(NamedTuple):
    """A compared quantity."""

    quantity: str
    error: float
    """Largest error over the states, relative to the scale; of the loop gap in m or rad."""
    limit: float
    verdict: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The comparison of a converted mechanism with the original."""

    rows: tuple[Row, ...]
    losses: tuple[Loss, ...]
    """Elements of the original that the target does not carry."""
    effect: Row
    """Effect of the losses on the efforts."""

    @property
    def status(self) -> int:
        """Exit status: 1 for a quantity that disagrees, 3 for a loss other than a setting, 0 otherwise."""
        if any(row.verdict == DISAGREE for row in self.rows):
            return 1
        incomplete = any(row.verdict == MISSING for row in self.rows) or self.effect.verdict != AGREE
        return 3 if incomplete or any(loss.kind != "setting" for loss in self.losses) else 0


def proof(
    original: Mechanism,
    carried: Mechanism,
    converted: Mechanism,
    states: RandomStates,
    losses: Sequence[Loss],
    limit: float = LIMIT,
) -> Proof:
    """Compare a converted mechanism with the part of the original that its format carries.

    Args:
        original: The mechanism before the conversion.
        carried: The part of it that the format carries.
        converted: The mechanism that was read back.
        states: Closed states of `carried`.
        losses: Elements of the original that are not carried.
        limit: Largest error of a quantity relative to its scale, and growth of the loop gap if above `GAP` [-].
            Above `LIMIT`, the scale is the largest over the states.
    """
    converted = in_order_of(carried, converted)
    rows = [*_names(carried, converted), *_limits(carried, converted, limit)]
    if all(row.verdict == AGREE for row in rows[:1]):
        rows += _dynamics(carried, converted, states, limit)
    else:
        rows += [Row(name, float("nan"), limit, MISSING, "joints differ") for name in QUANTITIES]
    return Proof(rows=tuple(rows), losses=tuple(losses), effect=_effect(original, carried, states))


def in_order_of(carried: Mechanism, converted: Mechanism) -> Mechanism:
    """The converted mechanism with its actuators in the order of the original, if they have the same names.

    Formats that state motors at their joints lose the order; it has no effect on the dynamics.
    """
    by_name = {actuator.name: actuator for actuator in converted.actuators}
    names = [actuator.name for actuator in carried.actuators]
    if sorted(names) != sorted(actuator.name for actuator in converted.actuators):
        return converted
    return replace(converted, actuators=tuple(by_name[name] for name in names))


def _dynamics(carried: Mechanism, converted: Mechanism, states: RandomStates, limit: float) -> Iterator[Row]:
    mine = State(mechanism=carried, q=states.q, qd=states.qd)
    moved = _states_in(converted, carried, states)
    before, open_by = (float(np.abs(state.gap).max(initial=0.0)) for state in (mine, State.at_rest(converted, moved.q)))
    q, after = close_batch(converted, moved.q, np.ones(converted.nv, dtype=bool))
    note = f"{before:.1e} in the input, {float(after.max(initial=0.0)):.1e} after closing again"
    if not states.N.shape[2]:
        note += "; the loops leave no motion to compare"
    most = max(GAP, limit) + before
    if carried.closures or converted.closures:
        yield Row("loop gap", open_by, most, AGREE if open_by <= most else DISAGREE, note)
    theirs = State(mechanism=converted, q=q, qd=moved.qd)
    pairs = ((mine, states.qdd, states.N), (theirs, moved.qdd, moved.N))
    for name, quantity in QUANTITIES.items():
        (left, scale), (right, _) = (quantity(*pair) for pair in pairs)
        if not left.size:
            continue
        if left.shape != right.shape:
            yield Row(name, float("nan"), limit, DISAGREE, f"{left.shape[1:]} and {right.shape[1:]} entries")
            continue
        if limit > LIMIT and scale.ndim > 1:  # rounding does not shrink where terms cancel
            scale = scale.max(axis=0, keepdims=True)
        yield _row(name, left, right, scale, limit)


def _row(name: str, left: Array, right: Array, scale: Array, limit: float = LIMIT) -> Row:
    error = float(np.max(np.abs(left - right) / np.maximum(scale, np.finfo(float).tiny), initial=0.0))
    return Row(name, error, limit, AGREE if error <= limit else DISAGREE)


def _reduced_inertia(state: State, _: AccelerationSeries, N: Array) -> tuple[Array, Array]:
    M = N.swapaxes(1, 2) @ tree_inertia(state) @ N
    return M, np.abs(M).max(axis=(1, 2), keepdims=True, initial=0.0)


def _gravity(state: State, qdd: AccelerationSeries, N: Array) -> tuple[Array, Array]:
    return _force(State.at_rest(state.mechanism, state.q), np.zeros_like(qdd), N)


def _bias(state: State, qdd: AccelerationSeries, N: Array) -> tuple[Array, Array]:
    """Force along the motions that keep the loops closed, at the states' accelerations."""
    return _force(state, qdd, N)


def _force(state: State, qdd: Array, N: Array) -> tuple[Array, Array]:
    powers = powers_along(state, qdd, N)
    signed, magnitude = np.abs(powers.signed).sum(1), powers.magnitude.sum(1)
    return powers.signed.sum(1), np.maximum(signed, 1e-3 * magnitude).max(axis=1, keepdims=True, initial=0.0)


def _efforts(state: State, qdd: AccelerationSeries, _: Array) -> tuple[Array, Array]:
    if not state.mechanism.actuators:
        return np.zeros((len(qdd), 0)), np.zeros(0)
    return needed_efforts(state, qdd).effort, scale_of(state, qdd).scale


QUANTITIES: Mapping[str, Callable[[State, AccelerationSeries, Array], tuple[Array, Array]]] = {
    "reduced inertia": _reduced_inertia,
    "gravity": _gravity,
    "bias and inertia forces": _bias,
    "efforts": _efforts,
}
"""Value and scale of each quantity: of a state, its accelerations and the motions that keep the loops closed."""


def _states_in(other: Mechanism, mechanism: Mechanism, states: RandomStates) -> RandomStates:
    """States of a mechanism as states of another with the same joints."""
    names = [joint.name for joint in mechanism.joints]
    order = [names.index(joint.name) for joint in other.joints]
    of_q, of_dofs = (
        np.concatenate([np.arange(slices[j].start, slices[j].stop) for j in order]) if order else np.zeros(0, dtype=int)
        for slices in (mechanism.q_slices, mechanism.dof_slices)
    )
    return RandomStates(
        q=states.q[:, of_q],
        qd=states.qd[:, of_dofs],
        qdd=states.qdd[:, of_dofs],
        N=states.N[:, of_dofs],
        start=states.start[of_q],
        distance=states.distance,
    )


def _names(carried: Mechanism, converted: Mechanism) -> Iterator[Row]:
    for what, of in (
        ("joints", lambda m: {(joint.name, joint.kind) for joint in m.joints}),
        ("actuators", lambda m: list(zip((a.name for a in m.actuators), m.actuator_units, strict=True))),
        ("loops", lambda m: [len(m.rigid_closures), len(m.coordinate_closures)]),
    ):
        left, right = of(carried), of(converted)
        missing = {body.name for body in carried.bodies} - {body.name for body in converted.bodies}
        note = "" if left == right else f"{left} and {right}"
        if what == "joints" and missing:
            note = f"{note} bodies that are missing: {', '.join(sorted(missing))}".strip()
        yield Row(f"names and kinds of {what}", 0.0, 0.0, DISAGREE if note else AGREE, note)


def _limits(carried: Mechanism, converted: Mechanism, limit: float) -> Iterator[Row]:
    for what, of in (
        ("limits of joints", _joint_limits),
        ("limits of actuators", _effort_limits),
        ("friction of joints", _friction),
    ):
        left, right = of(carried), of(converted)
        differing = [
            name
            for name in {*left, *right}
            if not np.allclose(left.get(name, (np.nan,)), right.get(name, (np.nan,)), rtol=limit, atol=0)
        ]
        yield Row(what, 0.0, limit, DISAGREE if differing else AGREE, ", ".join(sorted(differing)))


def _joint_limits(mechanism: Mechanism) -> dict[str, tuple[float, float]]:
    return {joint.name: joint.limits for joint in mechanism.joints if joint.limits is not None}


def _friction(mechanism: Mechanism) -> dict[str, tuple[float]]:
    return {joint.name: (joint.friction,) for joint in mechanism.joints if joint.friction}


def _effort_limits(mechanism: Mechanism) -> dict[str, tuple[float, float]]:
    """Narrowest range of each actuator with limits."""
    return {
        actuator.name: (max(limit.low for limit in actuator.limits), min(limit.high for limit in actuator.limits))
        for actuator in mechanism.actuators
        if actuator.limits
    }


def _effect(original: Mechanism, carried: Mechanism, states: RandomStates) -> Row:
    """Largest difference of the efforts of original and carried part at the same states."""
    name = "effect of the losses on the efforts"
    if original is carried:
        return Row(name, 0.0, LIMIT, AGREE, "nothing is lost")
    if original.nq != carried.nq:
        return Row(name, float("nan"), LIMIT, MISSING, "lengths of tendons are lost")
    same = [a.name for a in original.actuators] == [a.name for a in carried.actuators]
    gaps = [float(np.abs(State.at_rest(m, states.q).gap).max(initial=0.0)) for m in (original, carried)]
    if not same or gaps[0] > CLOSED_BY_OTHERS + gaps[1] or len(original.closures) != len(carried.closures):
        return Row(name, float("nan"), LIMIT, MISSING, "loops or actuators are lost")
    mine, theirs = (State(mechanism=m, q=states.q, qd=states.qd) for m in (carried, original))
    (left, _), (right, scale) = (_efforts(state, states.qdd, states.N) for state in (mine, theirs))
    row = _row(name, left, right, scale, allowed(LIMIT, original)) if left.size else Row(name, 0.0, LIMIT, AGREE)
    return row if row.verdict == AGREE else row._replace(verdict=MISSING)
