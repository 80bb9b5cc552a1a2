"""`from loopcheck import matrices`: the dynamic model of a robot in chosen coordinates, for controllers and papers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from loopcheck.analytic.dynamics.matrices import Matrices, dynamic_model
from loopcheck.analytic.kinematics.mobility import mobility
from loopcheck.analytic.kinematics.redundancy import undriven_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.batched_assembly import assemble_batch
from loopcheck.analytic.motion.start import closed_pose
from loopcheck.robots.arrays import Array, Times, frozen
from loopcheck.robots.errors import ShapeError
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import passive_case_of


def matrices(  # noqa: PLR0913
    target: str | Path,
    q: ArrayLike,
    qd: ArrayLike,
    *,
    configuration: str = "",
    mode: str = "",
    actuated: str = "",
    coordinates: Sequence[str] = (),
) -> Matrices:
    """M, C, D, G, A and L of M ÿ + C ẏ + D ẏ + G = Aᵀτ with the loops closed (Kordjazi and Akbarzadeh 2011, (12)).

    With redundant drives A has more rows than columns; the columns of coordinates that no drive moves are zero.

    Args:
        target: Name of a catalogue robot, path of a model file, or folder with a `robot.toml`.
        q: Positions of all joints with closed loops, in the order of the file, or of the drives alone: the loops are
            then closed on the branch of the mode [m or rad], shape (nt, nq) or (nt, drives), or of a single sample.
        qd: Velocities of all dofs, or of the drives [m/s or rad/s], shape (nt, nv) or (nt, drives).
        configuration: Direction of gravity; by default as in the file.
        mode: Keyframe of the branch; by default the first.
        actuated: Actuated joints, for example J1,J2, instead of the actuators of the file.
        coordinates: Names of the coordinates, as many as there are degrees of freedom: joints, drives, or single dofs
            as `base.wx`. By default independent drives, as far as they determine the motion well, then other dofs; one
            choice for all samples.

    Raises:
        HarnessError: If the target is bad, a shape does not fit, the loops are open, or the coordinates do not
            determine the motion at a sample: in one line with the requirement, the value and its place.
    """
    case = passive_case_of(target, configuration=configuration, mode=mode, actuated=actuated)
    state = _state(case, np.asarray(q, float), np.asarray(qd, float))
    regular = closed_pose(case.mechanism, state.q[len(state.q) // 2])
    return dynamic_model(state, coordinates, rank=mobility(case.mechanism, regular).rank)


def _state(case: Case, q: Array, qd: Array) -> State:
    mechanism, drives = case.mechanism, len(case.mechanism.drives)
    q, qd = frozen(np.atleast_2d(q), (None, None), name="q"), frozen(np.atleast_2d(qd), (None, None), name="qd")
    if (q.shape[1], qd.shape[1]) == (mechanism.nq, mechanism.nv) and len(q) == len(qd) > 0:
        state = State(mechanism=mechanism, q=q, qd=qd)
        state.want_closed()
        return state
    if (q.shape[1], qd.shape[1]) != (drives, drives) or len(q) != len(qd) or not len(q):
        raise ShapeError(
            f"{mechanism.model.path}: q and qd must have columns for all joints, {mechanism.nq} and {mechanism.nv}, or "
            f"for the drives, {drives} and {drives}, and as many rows, got {q.shape} and {qd.shape}"
        )
    if undriven_dofs(mechanism, case.guess):
        raise ShapeError(
            f"{mechanism.model.path}: q must have columns for all joints, {mechanism.nq}, because no drive moves some "
            f"degrees of freedom, got {q.shape}"
        )

    def law(t: Times) -> Drive:
        return Drive(q=q, qd=qd, qdd=np.zeros_like(qd))

    motion = assemble_batch(
        mechanism, law, case.guess[None], np.arange(float(len(q))), drives=mechanism.drives, where=case.robot.name
    )
    return State(mechanism=mechanism, q=motion.q, qd=motion.qd)
