"""Random closed states of a mechanism, away from singular poses."""

from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE, closure_jacobian_at, row_factors, solve_dependent
from loopcheck.analytic.kinematics.continuation import CLOSED, Tracer, close_batch
from loopcheck.analytic.kinematics.redundancy import drive_motions, free_motions
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.motion.start import regular_start
from loopcheck.robots.arrays import AccelerationSeries, AnyArray, Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.errors import SingularityError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import unit_rates

REACH = 0.3
"""Largest distance of a joint from the start before the loops are closed [rad, or sizes of the robot]."""
DISTANCE = 0.1
"""Smallest conditioning of a pose, relative to the start."""
BATCHES = 20
"""Number of tries, each with as many poses as are wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomStates:
    """States that keep the loops closed."""

    q: PositionSeries
    """Poses with closed loops."""
    qd: VelocitySeries
    """Velocities that keep them closed."""
    qdd: AccelerationSeries
    """Accelerations that keep them closed."""
    N: Array
    """Motions that keep them closed, a column each, orthonormal in unit rates [m or rad], shape (nt, nv, dof)."""
    start: JointPositions
    """The closed pose around which the poses lie, shape (nq,)."""
    distance: float
    """Smallest singular value of the closures and of the actuation that counts, over all states [-]."""


def random_states(mechanism: Mechanism, guess: JointPositions, *, count: int, seed: int) -> RandomStates:
    """Random closed states around the regular pose nearest to a guess, by Newton's method from random open poses.

    Args:
        count: Number of states.
        seed: Seed of the random numbers.

    Raises:
        LoopClosureError: If the loops cannot be closed.
        MechanismError: If the mechanism cannot move.
        SingularityError: If too few regular poses are found.
    """
    random, units = np.random.default_rng(seed), unit_rates(mechanism)
    where = str(mechanism.model.path)
    start = _start(mechanism, guess, where)
    rank, reference = (values[0] for values in _conditioning(mechanism, start[None]))
    found, distances = np.zeros((0, mechanism.nq)), np.zeros(0)
    for _ in range(BATCHES):
        steps = random.uniform(-REACH, REACH, (count, mechanism.nv)) * units
        near = retract(mechanism, np.tile(start, (count, 1)), steps)
        q, residual = close_batch(mechanism, near, np.ones(mechanism.nv, dtype=bool))
        q = q[residual <= CLOSED]
        ranks, conditioning = _conditioning(mechanism, q)
        sound = (conditioning >= DISTANCE * reference) & (ranks == rank)
        found, distances = np.concatenate([found, q[sound]]), np.concatenate([distances, conditioning[sound]])
        if len(found) >= count:
            break
    else:
        raise SingularityError(
            f"{where}: must have {count} regular poses near its start, found {len(found)}",
            time=float("nan"),
            singular_value=float("nan"),
        )
    q = found[:count]
    N = np.stack([units[:, None] * free_motions(mechanism, pose) for pose in q])
    rates, accelerations = random.normal(size=(2, count, N.shape[2]))
    qd = (N @ rates[..., None])[..., 0]
    state = State(mechanism=mechanism, q=q, qd=qd)
    bias = solve_dependent(state.Phi * units, state.Phi_dot @ qd[..., None])[..., 0] * units
    qdd = bias + (N @ accelerations[..., None])[..., 0]
    return RandomStates(q=q, qd=qd, qdd=qdd, N=N, start=start, distance=float(distances[:count].min()))


def _start(mechanism: Mechanism, guess: Array, where: str) -> Array:
    """A closed pose (nq,) near a guess, regular if the mechanism has actuators."""
    free = Tracer.free(mechanism, where)
    return regular_start(free, guess).q if mechanism.actuators else free.start(guess, 0.0).q[0]


def _conditioning(mechanism: Mechanism, q: Array) -> tuple[AnyArray, Array]:
    """Ranks of closures and actuation, as a complex number, and their smallest singular value that counts; (nt,)."""
    Phi = closure_jacobian_at(mechanism, q) * unit_rates(mechanism)
    of_closures = np.linalg.svd(row_factors(Phi) * Phi, compute_uv=False)
    of_drives = np.linalg.svd(drive_motions(mechanism, q), compute_uv=False)
    every = np.concatenate([of_closures, of_drives], axis=1)
    smallest = np.where(every > RANK_TOLERANCE, every, 1.0).min(axis=1, initial=1.0)
    ranks = [(values > RANK_TOLERANCE).sum(axis=1) for values in (of_closures, of_drives)]
    return ranks[0] + 1j * ranks[1], smallest
