"""Acceleration J̇ q̇ of the loops by MuJoCo's kinematics, independent of its solver.

The reference accelerations of its constraints lack the term for connect and weld before 3.7, and in every version the
curvature of the polynomial of a joint or tendon equality. So it is assembled here from the accelerations of MuJoCo's
bodies at zero joint accelerations, and from its compiled polynomials.
"""

from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.mujoco import tendons
from loopcheck.engines.mujoco._clock import CLOCK
from loopcheck.engines.mujoco.model import equality_rows
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, JointVelocities, cross

CONNECT, JOINT, TENDON = (int(getattr(mujoco.mjtEq, f"mjEQ_{kind}")) for kind in ("CONNECT", "JOINT", "TENDON"))
SITE, BODY = int(mujoco.mjtObj.mjOBJ_SITE), int(mujoco.mjtObj.mjOBJ_XBODY)


def closure_bias(model: Any, data: Any) -> Array:
    """J̇ q̇ in the rows of the equalities, at the positions and velocities computed in `data`.

    The rows of a weld's rotation hold for a closed weld.

    Returns:
        Accelerations [m/s² or rad/s²], shape (rows,).
    """
    without_accelerations(model, data)
    return bias_of_rows(model, data)


def without_accelerations(model: Any, data: Any) -> None:
    """Let the accelerations of bodies in `data` be those at zero joint accelerations, without gravity."""
    data.qacc[:], gravity = 0, model.opt.gravity.copy()
    model.opt.gravity[:] = 0  # MuJoCo has it in all accelerations, where it would leave its round-off
    mujoco.mj_rnePostConstraint(model, data)
    model.opt.gravity[:] = gravity


def turns_drives(model: Any) -> bool:
    """Whether a spatial tendon is held to its prescribed length."""
    return any((model.wrap_type[tendons.path_of(model, i)] != tendons.ON_JOINT).any() for i, _ in _held(model))


def forward_with_turning_drives(model: Any, data: Any) -> None:
    """The stages of `mj_forward`, with J̇ q̇ in the reference accelerations that hold prescribed lengths of tendons.

    MuJoCo has this term for connect and weld alone (known issue mujoco-tendon-turning). Equalities of the file are left
    as MuJoCo has them.
    """
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    without_accelerations(model, data)
    held = {k: i for i, k in _held(model)}
    for row in equality_rows(data):
        k = int(data.efc_id[row])
        if k in held:
            data.efc_aref[row] -= tendons.acceleration(model, data, held[k])
    mujoco.mj_fwdActuation(model, data)
    mujoco.mj_fwdAcceleration(model, data)
    mujoco.mj_fwdConstraint(model, data)


def _held(model: Any) -> list[tuple[int, int]]:
    """Tendons that are held to their prescribed lengths, and the equalities that hold them."""
    return [
        (int(model.eq_obj1id[k]), k)
        for k in np.flatnonzero(model.eq_type == TENDON).tolist()
        if model.eq_obj2id[k] >= 0 and model.tendon(int(model.eq_obj2id[k])).name == CLOCK
    ]


def tendon_bias(model: Any, data: Any, numbers: AnyArray) -> Array:
    """J̇ q̇ of the lengths of tendons, at the motion of the last `closure_bias` [m/s²], shape (tendons,).

    Args:
        model: MuJoCo's.
        data: Its data.
        numbers: Numbers of the tendons [-], shape (tendons,).
    """
    return np.array([tendons.acceleration(model, data, int(i)) for i in numbers])


def bias_of_rows(model: Any, data: Any) -> Array:
    """J̇ q̇ in the rows of the equalities, from the motions of the bodies at zero joint accelerations and loads.

    Args:
        model: MuJoCo's model.
        data: Its data with the accelerations of the bodies.

    Returns:
        Accelerations [m/s² or rad/s²], shape (rows,).
    """
    present = dict.fromkeys(data.efc_id[equality_rows(data)])  # a closure that nothing can open has no rows
    return np.concatenate([np.zeros(0), *(_of_equality(model, data, int(k)) for k in present)])


def curvature(model: Any, k: int, q: JointPositions, qd: JointVelocities, lengths: Array, rates: Array) -> float:
    """Acceleration of a joint or tendon equality by the second derivative of its polynomial.

    Args:
        model: MuJoCo's.
        k: The equality.
        lengths: Lengths of the tendons [m or rad], shape (ntendon,).
        rates: Their rates [m/s or rad/s], shape (ntendon,).

    Returns:
        −p″ ẋ² of the leader x [m/s² or rad/s²].
    """
    leader = int(model.eq_obj2id[k])
    if leader < 0:
        return 0.0
    if model.eq_type[k] == JOINT:
        place = model.jnt_qposadr[leader]
        offset, rate = q[place] - model.qpos0[place], qd[model.jnt_dofadr[leader]]
    else:
        offset, rate = lengths[leader] - model.tendon_length0[leader], rates[leader]
    return -float(np.polynomial.Polynomial(model.eq_data[k, :5]).deriv(2)(offset) * rate**2)


def _of_equality(model: Any, data: Any, k: int) -> Array:
    if model.eq_type[k] in (JOINT, TENDON):
        rates = tendons.jacobian(model, data) @ data.qvel
        return np.array([curvature(model, k, data.qpos, data.qvel, data.ten_length, rates) + _of_paths(model, data, k)])
    (linear1, angular1, _), (linear2, angular2, R2) = (_of_end(model, data, k, end) for end in (0, 1))
    if model.eq_type[k] == CONNECT:
        return linear1 - linear2
    half = (
        _sense(model, data, k) * model.eq_data[k, 10] / 2
    )  # its error is the vector of a quaternion, times this scale
    return np.concatenate([linear1 - linear2, half * R2.T @ (angular1 - angular2)])


def _of_paths(model: Any, data: Any, k: int) -> float:
    """Acceleration of a tendon equality by the turning of the straight parts of its tendons [m/s² or rad/s²]."""
    if model.eq_type[k] == JOINT:
        return 0.0
    first, second = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    bias = tendons.acceleration(model, data, first)
    if second >= 0:
        offset = data.ten_length[second] - model.tendon_length0[second]
        slope = float(np.polynomial.Polynomial(model.eq_data[k, :5]).deriv()(offset))
        bias -= slope * tendons.acceleration(model, data, second)
    return bias


def _sense(model: Any, data: Any, k: int) -> float:
    """Sign of the quaternion between the ends of a weld, 1 or −1 [-]: the same turn, and MuJoCo takes either."""
    quaternions = []
    for end, number in enumerate((int(model.eq_obj1id[k]), int(model.eq_obj2id[k]))):
        if model.eq_objtype[k] == SITE:
            body, local = int(model.site_bodyid[number]), model.site_quat[number]
        else:
            body, local = number, (model.eq_data[k, 6:10] if end == 0 else np.array([1.0, 0.0, 0.0, 0.0]))
        product = np.zeros(4)
        mujoco.mju_mulQuat(product, data.xquat[body], local)
        quaternions.append(product)
    return float(np.copysign(1.0, quaternions[0] @ quaternions[1]))


def _of_end(model: Any, data: Any, k: int, end: int) -> tuple[Array, Array, Array]:
    """Linear [m/s²] and angular acceleration [rad/s²] of an end of an equality, and its axes [-]: world axes."""
    number, jacobian = int((model.eq_obj1id, model.eq_obj2id)[end][k]), np.zeros((6, 1))
    if model.eq_objtype[k] == SITE:
        mujoco.mj_objectAcceleration(model, data, SITE, number, jacobian, 0)
        return jacobian[3:, 0], jacobian[:3, 0], data.site_xmat[number].reshape(3, 3)
    mujoco.mj_objectAcceleration(model, data, BODY, number, jacobian, 0)
    velocity, R = np.zeros((6, 1)), data.xmat[number].reshape(3, 3)
    mujoco.mj_objectVelocity(model, data, BODY, number, velocity, 0)
    anchor = end if model.eq_type[k] == CONNECT else 1 - end  # a weld has that of its second body first
    arm, (w, a) = R @ model.eq_data[k, 3 * anchor : 3 * anchor + 3], (velocity[:3, 0], jacobian[:3, 0])
    return jacobian[3:, 0] + cross(a, arm) + cross(w, cross(w, arm)), a, R
