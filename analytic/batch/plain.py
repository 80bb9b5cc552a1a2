"""The plain version of the batch: assembled sample by sample, efforts by `noc`. Slow, and always right or an error."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.batch.support import UNDRIVEN
from loopcheck.analytic.dynamics.noc import noc_model
from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.analytic.kinematics.continuation import (
    CLOSED,
    SOUND,
    ClosedPose,
    Tracer,
    close,
    conditioning,
    may_vanish,
)
from loopcheck.analytic.kinematics.redundancy import independent_dofs_at, independent_drives, minimum_norm
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import AnyArray, Array, EffortSeries, JointPositions, PositionSeries
from loopcheck.robots.errors import LoopClosureError, MechanismError, SingularityError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive

UNRESOLVED = 5e-4
"""Conditioning below which a dip between two samples is examined [-]; also the limit of the traced equations."""
MEETING = 1e-6
"""Largest distance of two poses that are the same, found from different sides [m or rad]."""


@dataclass(frozen=True, slots=True)
class Polyline:
    """The law through samples at the times 0, 1, 2 …, straight between them."""

    q: Array
    """Positions of the drives [m or rad], shape (nt, drives)."""

    def __call__(self, t: Array) -> Drive:
        """The law at times [-], shape (nt,)."""
        before = np.clip(t.astype(int), 0, max(len(self.q) - 2, 0))
        after = np.minimum(before + 1, len(self.q) - 1)
        slope = self.q[after] - self.q[before]
        return Drive(q=self.q[before] + slope * (t - before)[:, None], qd=slope, qdd=np.zeros_like(slope))


def redo(mechanism: Mechanism, q: Array, poses: PositionSeries, trusted: AnyArray) -> AnyArray:
    """Assemble again each run of untrusted samples of a path, from the sound sample before to the sound sample after.

    If the plain version ends a run at another pose than the path, the path has left its branch, and the run goes on.

    Args:
        q: Positions of the drives [m or rad], shape (nt, drives).
        poses: Joint positions; those of the first sample close the loops. Poses assembled again are replaced.
        trusted: Mask of the samples on the same branch and well away from singularities [-], shape (nt,).

    Returns:
        Mask of the samples assembled again [-], shape (nt,).

    Raises:
        SingularityError: If the path meets a singularity or leaves the workspace; `time` is the number of the sample.
    """
    tracer, trusted, replaced = path_tracer(mechanism, q), trusted.copy(), np.zeros(len(q), np.bool_)
    start = 0
    try:
        while not trusted[start:].all():
            first = start + int(np.argmin(trusted[start:]))
            while first > start and not (trusted[first] and _is_sound(tracer, poses[[first]])):
                first -= 1
            start = _assemble_run(tracer, poses, trusted, first)
            replaced[first:start] = trusted[first : start + 1] = True
    except SingularityError as error:
        k = min(int(error.time), len(q) - 2)
        if k >= 0 and (other := misfit(mechanism, q[k + 1], poses[k], k + 1)):
            raise other from error
        raise SingularityError(
            f"{mechanism.model.path}: the path of the batch leaves the workspace or meets a singularity at sample "
            f"{error.time:.6g} (passive closure Jacobian: ratio of smallest to largest singular value "
            f"{error.singular_value:.3g})",
            time=error.time,
            singular_value=error.singular_value,
        ) from error
    return replaced


def misfit(mechanism: Mechanism, q: Array, guess: JointPositions, sample: int) -> LoopClosureError | None:
    """The error that names a redundant drive out of place, if it is the reason for open loops.

    Args:
        q: Positions of the drives at a sample [m or rad], shape (drives,).
        sample: Number of the sample.
    """
    pose, residual = close(mechanism, guess[None], np.ones(mechanism.nv, np.bool_))
    if residual > CLOSED:
        return None
    places = _independent(mechanism, pose[0])
    pose, residual = _tracer_of(mechanism, q[None], places).close(pose, 0.0)
    if residual > CLOSED:
        return None
    driven = mechanism.values_of(mechanism.drives, pose)
    return next(misfits(mechanism, "positions", q[None], driven, np.array([sample])), None)


def _want_fitting(mechanism: Mechanism, q: PositionSeries, drive: Drive, samples: AnyArray) -> None:
    """Raise if redundant drives do not have the velocities or the accelerations given by the independent drives.

    Args:
        drive: Prescribed motion at the samples.
        samples: Their numbers [-], shape (nt,).
    """
    places = _independent(mechanism, q[len(q) // 2])
    if len(places) == len(mechanism.drives):
        return
    rates = _tracer_of(mechanism, drive.q, places).rates(q, Drive(*(x[:, places] for x in drive)))
    W_T = mechanism.rates_of(mechanism.drives).T
    for name, given, rate in zip(("velocities", "accelerations"), drive[1:], rates, strict=True):
        for error in misfits(mechanism, name, given, rate @ W_T, samples):
            raise error


def misfits(
    mechanism: Mechanism, name: str, given: Array, consistent: Array, samples: AnyArray
) -> Iterator[LoopClosureError]:
    """The error of each redundant drive out of place.

    Args:
        name: Of the quantity.
        given: Quantity of all drives [any unit], shape (nt, drives).
        consistent: The same as the independent drives determine it [any unit], shape (nt, drives).
        samples: Numbers of the samples [-], shape (nt,).
    """
    error = np.abs(given - consistent) / (1 + np.abs(given))
    for k, drive in np.argwhere(error > CLOSED):
        yield LoopClosureError(
            f"{mechanism.model.path}: {name} of redundant drives must be consistent, but at sample {samples[k]} "
            f"'{mechanism.drives[drive].name}' must have {consistent[k, drive]:.9g} to match the independent drives, "
            f"got {given[k, drive]:.9g}",
            residual=float(error[k, drive]),
            tolerance=CLOSED,
            time=float(samples[k]),
        )


def _independent(mechanism: Mechanism, q: Array) -> list[int]:
    """Places of the drives that determine the motion of all drives at a closed pose (nq,)."""
    independent = [drive.joints for drive in independent_drives(mechanism, q)]
    return [k for k, drive in enumerate(mechanism.drives) if drive.joints in independent]


def _tracer_of(mechanism: Mechanism, q: Array, places: list[int]) -> Tracer:
    """Continuation along samples (nt, drives) by some of the drives alone."""
    drives = tuple(mechanism.drives[k] for k in places)
    return Tracer(mechanism=mechanism, law=Polyline(q[:, places]), drives=drives, where=str(mechanism.model.path))


def _assemble_run(tracer: Tracer, poses: Array, trusted: AnyArray, first: int) -> int:
    """Replace poses (nt, nq) after a sample until they meet a sound pose; returns the number of its sample, or nt."""
    for k in range(first + 1, len(poses)):
        q = tracer.advance(ClosedPose(t=float(k - 1), q=poses[[k - 1]]), float(k)).q
        if trusted[k] and np.abs(q - poses[k]).max() <= MEETING and _is_sound(tracer, q):
            break
        poses[k] = q[0]
    else:
        k = len(poses)
    run = np.arange(max(first - 2, 0), min(k + 3, len(poses)))  # and two sound samples on both sides, to see a dip
    Phi_u = tracer.dependent_jacobian(poses[run])
    tracer.refuse_singularities([ClosedPose(t=float(i), q=poses[[i]]) for i in run], Phi_u)
    _refuse_unresolved(tracer.mechanism, Phi_u, run)
    return k


def _refuse_unresolved(mechanism: Mechanism, Phi_u: Array, samples: AnyArray) -> None:
    """Raise if a path comes so near to a singularity between two samples that its branch is ambiguous.

    Through samples far apart, the branches that meet there are joined to other branches, without a change of sign.
    """
    if not Phi_u.shape[-1]:
        return
    ratios = conditioning(Phi_u)[0]
    dips = np.flatnonzero(may_vanish(ratios) & (np.minimum(ratios[:-1], ratios[1:]) < UNRESOLVED))
    if dips.size:
        worst = float(ratios[dips[0] : dips[0] + 2].min())
        raise SingularityError(
            f"{mechanism.model.path}: the path passes through or near a singularity between samples "
            f"{samples[dips[0]]} and {samples[dips[0]] + 1} (passive closure Jacobian: ratio of smallest to largest "
            f"singular value {worst:.3g}). Use a finer path or avoid the singularity",
            time=float(samples[dips[0]]),
            singular_value=worst,
        )


def _is_sound(tracer: Tracer, q: Array) -> bool:
    """Whether a pose (1, nq) is on its own branch for certain."""
    Phi_u = tracer.dependent_jacobian(q)
    return not Phi_u.shape[-1] or bool(conditioning(Phi_u)[0][0] > SOUND)


def path_tracer(mechanism: Mechanism, q: Array) -> Tracer:
    """Continuation along samples, with their numbers as times.

    Args:
        q: Positions of the drives [m or rad], shape (nt, drives).
    """
    place = f"{mechanism.model.path}, batch with sample numbers as times"
    return Tracer(mechanism=mechanism, law=Polyline(q), drives=mechanism.drives, where=place)


def plain_poses(mechanism: Mechanism, q: Array, guess: PositionSeries, samples: AnyArray) -> PositionSeries:
    """Assemble independent samples, each from its own guess.

    Args:
        q: Positions of the drives [m or rad], shape (nt, drives).
        guess: Joint positions near each sample.
        samples: Indices of the samples [-], shape (n,).

    Raises:
        LoopClosureError: If a sample cannot be assembled; `time` is its number.
        MechanismError: If the actuators do not determine the motion.
    """
    tracer = path_tracer(mechanism, q)
    q_of_samples = np.zeros((len(samples), mechanism.nq))
    for row, k in enumerate(samples):
        closed, residual = tracer.close(guess[[k]], float(k))
        if residual > CLOSED:
            raise misfit(mechanism, q[k], guess[k], int(k)) or LoopClosureError(
                f"{mechanism.model.path}: the loops of sample {k} cannot be closed from its guess: loop gap must be at "
                f"most {CLOSED:g}, got {residual:.3g} (m or rad)",
                residual=residual,
                tolerance=CLOSED,
                time=float(k),
            )
        if not row:
            want_driven(tracer, closed)
        q_of_samples[row] = closed[0]
    return q_of_samples


def want_driven(tracer: Tracer, q: Array) -> None:
    """Raise if the actuators do not determine the motion.

    Args:
        q: A pose with closed loops [m or rad], shape (1, nq).

    Raises:
        MechanismError: Names the file.
    """
    if tracer.undriven(q):
        raise MechanismError(f"{tracer.mechanism.model.path}: {UNDRIVEN}")


def plain_efforts(mechanism: Mechanism, q: PositionSeries, drive: Drive, samples: AnyArray) -> EffortSeries:
    """Efforts by the natural orthogonal complement.

    Args:
        drive: Prescribed motion at the samples.
        samples: Their numbers [-], shape (nt,).

    Raises:
        LoopClosureError: If the velocities or accelerations of redundant drives contradict each other; `time` is the
            number of the sample.
        SingularityError: If a sample is singular; `time` is its number.
    """
    tracer = path_tracer(mechanism, drive.q)
    _refuse_singular(mechanism, tracer.dependent_jacobian(q), samples)
    _want_fitting(mechanism, q, drive, samples)
    qd, qdd = tracer.rates(q, drive)
    mask = independent_dofs_at(mechanism, q[len(q) // 2])
    model = noc_model(State(mechanism=mechanism, q=q, qd=qd), mask)
    force = model.force(qdd[:, mask], qd[:, mask])
    return minimum_norm(mechanism.selection @ model.L, force, mechanism.effort_scales)


def _refuse_singular(mechanism: Mechanism, Phi_u: Array, samples: AnyArray) -> None:
    """Raise if a sample is singular by Φᵘ (nt, nc, nu) [m/rad or m/m]."""
    if not Phi_u.shape[-1]:
        return
    ratios = conditioning(Phi_u)[0]
    worst = int(np.argmin(ratios))
    if ratios[worst] < RANK_TOLERANCE:
        raise SingularityError(
            f"{mechanism.model.path}: sample {samples[worst]} is singular: ratio of smallest to largest singular value "
            f"of the passive closure Jacobian must be at least {RANK_TOLERANCE:g}, got {ratios[worst]:.3g}",
            time=float(samples[worst]),
            singular_value=float(ratios[worst]),
        )
