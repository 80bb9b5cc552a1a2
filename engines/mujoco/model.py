"""MuJoCo's model of a mechanism: the MJCF in the case's gravity, without elements that every source leaves out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np
from packaging.version import Version

from loopcheck.engines.mujoco._clock import CLOCK, add_clock, add_points
from loopcheck.engines.mujoco.tendons import is_length
from loopcheck.robots.arrays import AnyArray, Array, JointPositions
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.errors import EngineError
from loopcheck.robots.formats.mjcf import compile_model
from loopcheck.robots.formats.model_file import captured_warnings
from loopcheck.robots.mechanism import Coordinate, Mechanism

_OFF = mujoco.mjtDisableBit
LEFT_OUT = _OFF.mjDSBL_CONTACT | _OFF.mjDSBL_LIMIT | _OFF.mjDSBL_FRICTIONLOSS
PARALLEL = 1e-9
"""Largest relative difference of two proportional rows [-]."""
EQUALITY_ROW = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
TORQUE_SCALE = 10
"""Indices of a weld's rotation in `eq_data`."""
DISCRETE = int(getattr(mujoco.mjtIntegrator, "mjINT_DISCRETE", -1))
"""Number of this integrator; −1 before 3.13."""
FULL_MATRIX_FROM_DATA = Version(mujoco.__version__) >= Version("3.10")
"""Since then `mj_fullM` takes the data and finds the sparse matrix itself."""


def build(mechanism: Mechanism, edit: Callable[[Any], None] | None = None) -> Any:
    """Compile the MJCF of a mechanism into an `MjModel`.

    Contacts, joint limits and dry friction are off, as in every source, gravity compensation is passive and not part of
    an actuator's effort, and a state that is not finite stays so instead of being reset. The integrator `discrete`
    becomes Euler, as its `mj_forward` finds the change of a step instead of accelerations. All other settings are those
    of the file.

    Args:
        edit: Called with the `MjSpec` before it is compiled.
    """
    model = compile_model(mechanism.model, edit)
    configure(model, mechanism.gravity)
    if model.opt.integrator == DISCRETE:
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    return model


def configure(model: Any, gravity: Array) -> None:
    """Give a model the gravity of a case, and switch off the elements that every source leaves out.

    Args:
        model: MuJoCo's model.
        gravity: Acceleration of gravity [m/s²], shape (3,).
    """
    model.opt.gravity[:] = gravity
    model.opt.disableflags |= LEFT_OUT | _OFF.mjDSBL_AUTORESET
    model.jnt_actgravcomp[:] = False


def driven(mechanism: Mechanism, drives: Sequence[Coordinate], *, timed: bool = False) -> Any:
    """Compile the model with an equality for each of some coordinates, after all of its own, to hold it to a motion.

    The file's own actuators are off. MuJoCo counts the constant of an equality from qpos0.

    Args:
        drives: Held coordinates.
        timed: Let their equalities depend on a clock, which becomes the last joint, and give the external wrenches
            their
            points of application.
    """

    def add_drives(spec: Any) -> None:
        if timed:
            add_clock(spec)
            add_points(spec, mechanism)
        for drive in drives:
            equality = spec.add_equality()
            equality.name = f"drive of {drive.name}"
            if drive.is_joint and not is_length(mechanism, drive):
                equality.type, equality.objtype = mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtObj.mjOBJ_JOINT
                equality.name1 = mechanism.joints[drive.joints[0]].name
            else:
                equality.type, equality.objtype = mujoco.mjtEq.mjEQ_TENDON, mujoco.mjtObj.mjOBJ_TENDON
                equality.name1 = drive.name
            equality.name2 = CLOCK if timed else ""

    model = build(mechanism, add_drives)
    own_actuators_off(model)
    return model


def rows_of_drives(model: Any, data: Any, drives: int) -> tuple[AnyArray, AnyArray]:
    """Indices of the rows of `efc_*` of the drives of a driven model, and of the rows of its loops."""
    rows = equality_rows(data)
    is_drive = data.efc_id[rows] >= model.neq - drives
    return rows[is_drive], rows[~is_drive]


def loop_jacobian(model: Any, data: Any, q: JointPositions) -> Array:
    """The engine's Jacobian of its equalities [m/rad or m/m], shape (rows, nv).

    Args:
        model: MuJoCo's.
        data: Its state, with computed position-dependent quantities.
    """
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    return constraint_jacobian(model, data)[equality_rows(data)]


def opening(model: Any, data: Any, rows: AnyArray) -> Deviation:
    """Gap of the widest of some equalities at the last computed positions.

    Args:
        model: MuJoCo's model.
        data: Its data.
        rows: Indices of all rows of these equalities in `efc_*` [-], shape (rows,).
    """
    return widest_opening(model, data.efc_id[rows], data.efc_pos[rows][None])


def widest_opening(model: Any, equalities: AnyArray, gaps: Array) -> Deviation:
    """Gap of the widest of some equalities at any of several times.

    Args:
        model: MuJoCo's model.
        equalities: Equality of each of their rows [-], shape (rows,).
        gaps: Residuals of the rows, as in `efc_pos` [m or rad], shape (nt, rows).
    """
    widest = Deviation()
    for equality in np.unique(equalities):
        gap = gaps[:, equalities == equality]
        first = float(np.linalg.norm(gap[:, :3], axis=1).max())
        widest = widest.or_worse(Deviation(angle=first) if holds_angle(model, equality) else Deviation(length=first))
        if gap.shape[1] > 3:  # a weld's other rows are the sine of half its turn, times its torque scale
            sine = np.linalg.norm(gap[:, 3:], axis=1).max() / model.eq_data[equality, TORQUE_SCALE]
            widest = widest.or_worse(Deviation(angle=float(2 * np.arcsin(np.minimum(sine, 1.0)))))
    return widest


def widest_of(model: Any, gaps: Mapping[bytes, Sequence[Array]]) -> Deviation:
    """Gap of the widest equality at any of several times, at which different rows may be left out.

    Args:
        model: MuJoCo's model.
        gaps: Residuals of the rows at each time [m or rad], (rows,) each, by the equalities of these rows.
    """
    of_rows = (
        widest_opening(model, np.frombuffer(equalities, dtype=np.int32), np.array(each))
        for equalities, each in gaps.items()
    )
    return Deviation().or_worse(*of_rows)


def holds_angle(model: Any, equality: int) -> bool:
    """Whether the first rows of an equality are angles: it holds a hinge, or a tendon of hinges alone.

    Args:
        model: MuJoCo's model.
        equality: Its number.
    """
    kind, first = model.eq_type[equality], model.eq_obj1id[equality]
    if kind == mujoco.mjtEq.mjEQ_TENDON:
        wraps = slice(model.tendon_adr[first], model.tendon_adr[first] + model.tendon_num[first])
        is_fixed = model.wrap_type[wraps] == mujoco.mjtWrap.mjWRAP_JOINT
        return bool(is_fixed.all() and (model.jnt_type[model.wrap_objid[wraps]] == mujoco.mjtJoint.mjJNT_HINGE).all())
    return bool(kind == mujoco.mjtEq.mjEQ_JOINT and model.jnt_type[first] == mujoco.mjtJoint.mjJNT_HINGE)


def gearing(model: Any, drives: int) -> Array:
    """The engine's own actuator velocities per rate of the drives of a driven model [-], shape (nu, drives).

    An actuator acts on the coordinate of a drive if its moments are those of the drive's row, up to a factor, its gear.
    Both are the same in all poses.

    Args:
        model: Result of `driven`.
        drives: Number of its drives.
    """
    data = mujoco.MjData(model)
    mujoco.mj_fwdPosition(model, data)
    S = transmission(model, data)
    rows = constraint_jacobian(model, data)[rows_of_drives(model, data, drives)[0]]
    J = np.where(S.any(axis=0), rows, 0.0)  # not the clock, on which a row of a timed drive depends as well
    factor = S @ J.T / np.maximum((J**2).sum(axis=1), np.finfo(float).tiny)
    alike = np.isclose(S[:, None], factor[..., None] * J, rtol=PARALLEL, atol=0).all(axis=2)
    return np.where(alike, factor, 0.0)


def own_actuators_off(model: Any) -> None:
    """Switch the file's actuators off, servos included: the route measures the effort."""
    model.opt.disableflags |= _OFF.mjDSBL_ACTUATION


@contextmanager
def guarded(route: str) -> Iterator[None]:
    """Turn MuJoCo's warnings and errors into an `EngineError`."""
    try:
        with captured_warnings() as warnings:
            yield
    except (mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise EngineError(f"{route}: {error}") from error
    if warnings:
        raise EngineError(f"{route}: MuJoCo warned: {' '.join(warnings[0].split())}")


def apply_wrenches(mechanism: Mechanism, model: Any, data: Any) -> None:
    """Let the constant external wrenches act in the next forward computation or step, at the position in `data`."""
    if not mechanism.wrenches:
        return
    mujoco.mj_kinematics(model, data)
    data.xfrc_applied[:] = 0
    moment = np.zeros(3)
    for load in mechanism.wrenches:
        body_id = load.body + 1  # MuJoCo counts the world as body 0, and wants the wrench about the mass centre
        arm = data.xpos[body_id] + data.xmat[body_id].reshape(3, 3) @ load.point - data.xipos[body_id]
        data.xfrc_applied[body_id, :3] += load.force
        mujoco.mju_cross(moment, arm, load.force)  # numpy's takes as long as the step
        data.xfrc_applied[body_id, 3:] += load.moment + moment


def wrench_forces(mechanism: Mechanism, model: Any, data: Any) -> Array:
    """Generalized force of the external wrenches at the computed position in `data` [N or N m], shape (nv,)."""
    force = np.zeros(model.nv)
    for load in mechanism.wrenches:
        body_id = load.body + 1  # MuJoCo counts the world as body 0
        point = data.xpos[body_id] + data.xmat[body_id].reshape(3, 3) @ load.point
        mujoco.mj_applyFT(model, data, load.force, load.moment, point, body_id, force)
    return force


def tree_terms(mechanism: Mechanism, model: Any, data: Any) -> tuple[Array, Array, Array]:
    """The engine's terms of the spanning tree's equations of motion at the computed state in `data`.

    Returns:
        Inertia matrix [kg, kg m or kg m²], shape (nv, nv); velocity terms and weights; springs, dampers, gravity
        compensation and external wrenches [N or N m], shape (nv,) each.
    """
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    return inertia_matrix(model, data), data.qfrc_bias.copy(), data.qfrc_passive + wrench_forces(mechanism, model, data)


def equality_rows(data: Any) -> AnyArray:
    """Indices of the rows of `efc_*` that are equalities."""
    return np.flatnonzero(data.efc_type[: data.nefc] == EQUALITY_ROW)


def constraint_jacobian(model: Any, data: Any) -> Array:
    """The engine's Jacobian of all its constraints [m/rad or m/m], shape (rows, nv)."""
    if not mujoco.mj_isSparse(model):
        return np.array(data.efc_J).reshape(-1, model.nv)[: data.nefc].copy()
    J = np.zeros((data.nefc, model.nv))
    mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    return J


def transmission(model: Any, data: Any) -> Array:
    """The engine's actuator velocities per joint velocity, gears included [-], shape (force outputs, nv)."""
    S = np.zeros((len(data.moment_rownnz), model.nv))
    mujoco.mju_sparse2dense(S, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind)
    return S


def actuator_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Names of the actuators in the order of efforts."""
    return tuple(actuator.name for actuator in mechanism.actuators)


def inertia_matrix(model: Any, data: Any) -> Array:
    """Inertia matrix of the spanning tree at the computed position in `data` [kg, kg m or kg m²], shape (nv, nv)."""
    M = np.zeros((model.nv, model.nv))
    if FULL_MATRIX_FROM_DATA:
        mujoco.mj_fullM(model, data, M)
    else:
        mujoco.mj_fullM(model, M, data.qM)
    return M
