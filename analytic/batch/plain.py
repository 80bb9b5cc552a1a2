"""The plain version of the batch: assembled sample by sample, efforts by `noc`. Slow, and always right or an error."""

from dataclasses import dataclass

import numpy as np

from analytic.continuation import CLOSED, State, Tracer
from analytic.noc import noc_model
from analytic.redundancy import independent_dofs_at, minimum_norm
from robots.arrays import AnyArray, Array
from robots.errors import LoopClosureError, SingularityError
from robots.mechanism import Mechanism
from robots.motion import Drive


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


def redo(mechanism: Mechanism, q: Array, found: Array, known: AnyArray) -> None:
    """Assemble the samples of a path that are not known, each from the one before.

    Args:
        mechanism: Robot.
        q: Positions of the drives [m or rad], shape (nt, drives).
        found: Joint positions, those not known to be filled in [m or rad], shape (nt, nq).
        known: Which samples are known, the first among them [-], shape (nt,).

    Raises:
        SingularityError: If the path meets a singularity or leaves the workspace; `time` is the number of the sample.
    """
    tracer = path_tracer(mechanism, q)
    try:
        for k in np.flatnonzero(~known):
            found[k] = tracer.advance(State(t=float(k - 1), q=found[[k - 1]]), float(k)).q[0]
        near = np.flatnonzero(~(known & np.roll(known, 1) & np.roll(known, -1)))
        for run in np.split(near, np.flatnonzero(np.diff(near) > 1) + 1):
            states = [State(t=float(k), q=found[[k]]) for k in run]
            if states:
                tracer.refuse_singularities(states, tracer.dependent_jacobian(found[run]))
    except SingularityError as error:
        raise SingularityError(
            f"{mechanism.model.path}: the path of the batch leaves the workspace or meets a singularity at sample "
            f"{error.time:.6g}: smallest singular value of the passive closure Jacobian {error.singular_value:.3g} of "
            "the largest",
            time=error.time,
            singular_value=error.singular_value,
        ) from error


def path_tracer(mechanism: Mechanism, q: Array) -> Tracer:
    """Continuation along samples, whose numbers are its times.

    Args:
        mechanism: Robot.
        q: Positions of the drives [m or rad], shape (nt, drives).
    """
    where = f"{mechanism.model.path}, batch with sample numbers as times"
    return Tracer(mechanism=mechanism, law=Polyline(q), drives=mechanism.drives, where=where)


def plain_poses(mechanism: Mechanism, q: Array, guess: Array, samples: AnyArray) -> Array:
    """Assemble samples that have nothing to do with each other, each from its own guess.

    Args:
        mechanism: Robot.
        q: Positions of the drives [m or rad], shape (nt, drives).
        guess: Joint positions near each sample [m or rad], shape (nt, nq).
        samples: Which of them [-], shape (n,).

    Returns:
        Joint positions [m or rad], shape (n, nq).

    Raises:
        LoopClosureError: If one cannot be assembled; `time` is its number.
    """
    tracer = path_tracer(mechanism, q)
    found = np.zeros((len(samples), mechanism.nq))
    for row, k in enumerate(samples):
        closed, residual = tracer.close(guess[[k]], float(k))
        if residual > CLOSED:
            raise LoopClosureError(
                f"{mechanism.model.path}: the loops of sample {k} cannot be closed from its guess: want a gap of at "
                f"most {CLOSED:g}, got {residual:.3g} (m or rad)",
                residual=residual,
                tolerance=CLOSED,
                time=float(k),
            )
        found[row] = closed[0]
    return found


def plain_efforts(mechanism: Mechanism, q: Array, drive: Drive) -> Array:
    """Efforts by the natural orthogonal complement.

    Args:
        mechanism: Robot.
        q: Joint positions that close the loops [m or rad], shape (nt, nq).
        drive: What is prescribed there.

    Returns:
        Efforts [N or N m], shape (nt, na).
    """
    qd, qdd = path_tracer(mechanism, drive.q).rates(q, drive)
    mask = independent_dofs_at(mechanism, q[len(q) // 2])
    model = noc_model(mechanism, q, qd, mask)
    force = (model.M @ qdd[:, mask, None] + model.C @ qd[:, mask, None])[..., 0] + model.G
    return minimum_norm(mechanism.selection @ model.L, force, mechanism.effort_scales)
