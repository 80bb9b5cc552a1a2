"""Lengths of spatial tendons that are slides of the mechanism: MuJoCo has no joints for them.

In the state of a mechanism these slides follow the joints of the file. MuJoCo's own state is the part before them; the
lengths and their rates are MuJoCo's.
"""

from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.boundary import of_paths, want_representable
from loopcheck.robots.arrays import AnyArray, Array, JointPositions
from loopcheck.robots.mechanism import WORLD, Coordinate, Mechanism

SITE = int(mujoco.mjtObj.mjOBJ_SITE)
ON_JOINT, ON_SITE, PULLEY = (int(getattr(mujoco.mjtWrap, f"mjWRAP_{kind}")) for kind in ("JOINT", "SITE", "PULLEY"))
"""Parts of tendons."""


def path_of(model: Any, i: int) -> slice:
    """Place in `wrap_*` of the parts of a tendon."""
    return slice(model.tendon_adr[i], model.tendon_adr[i] + model.tendon_num[i])


def is_length(mechanism: Mechanism, coordinate: Coordinate) -> bool:
    """Whether a coordinate is the length of a spatial tendon."""
    return mechanism.joints[coordinate.joints[0]].body == WORLD


def with_slides(mechanism: Mechanism, model: Any) -> AnyArray:
    """Numbers of the tendons of the slides, in their order [-], shape (slides,)."""
    lengths = [tendon.length for tendon in mechanism.tendons if is_length(mechanism, tendon.length)]
    by_slide = {length.joints[0]: model.tendon(length.name).id for length in lengths}
    return np.array([by_slide[j] for j in sorted(by_slide)], dtype=int)


def state_of(mechanism: Mechanism, model: Any, data: Any) -> tuple[Array, Array]:
    """Joint positions and velocities of the mechanism at the state in `data`, of shape (nq,) and (nv,).

    MuJoCo's kinematics in `data` become those of this state: after a step they are those of its beginning.
    """
    q, qd = np.array(data.qpos[: mechanism.spanning_tree[0]]), np.array(data.qvel[: mechanism.spanning_tree[1]])
    slides = with_slides(mechanism, model)
    if not len(slides):
        return q, qd
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_tendon(model, data)
    rates = jacobian(model, data)[slides] @ data.qvel
    return np.concatenate([q, data.ten_length[slides]]), np.concatenate([qd, rates])


def with_lengths(mechanism: Mechanism, model: Any, data: Any, J: Array) -> Array:
    """Rows over MuJoCo's dofs as rows over all dofs, and behind them those that tie the slides to the lengths.

    Args:
        J: Rows [any unit], shape (rows, MuJoCo's nv).

    Returns:
        Shape (rows + slides, nv).
    """
    slides = with_slides(mechanism, model)
    rows = np.concatenate([J, jacobian(model, data)[slides]])
    return np.block([rows, np.eye(len(rows), len(slides), -len(J)) * -1.0])


def want_no_slides(mechanism: Mechanism) -> None:
    """Refuse lengths of tendons that are coordinates, for functions that exchange states without them.

    Raises:
        NotRepresentableError: If there are any.
    """
    want_representable("mujoco", of_paths(mechanism, only_slides=True))


def jacobian(model: Any, data: Any) -> Array:
    """The engine's rates of the lengths of tendons per joint velocity [-, or m per rad], shape (ntendon, nv)."""
    T = np.zeros((model.ntendon, model.nv))
    if model.ntendon:
        mujoco.mju_sparse2dense(T, data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind)
    return T


def acceleration(model: Any, data: Any, i: int) -> float:
    """Second derivative of the length of a tendon at zero joint accelerations, by the motions of its sites [m/s²].

    Args:
        model: MuJoCo's.
        data: Its data with the accelerations of the bodies at zero joint accelerations, without gravity.
        i: Number of the tendon.
    """
    path = path_of(model, i)
    kinds, ids, divisors = model.wrap_type[path], model.wrap_objid[path], model.wrap_prm[path]
    total, divisor = 0.0, 1.0
    for k in range(len(kinds)):
        if kinds[k] == PULLEY:
            divisor = float(divisors[k])
        elif k and kinds[k - 1] == ON_SITE:
            (p1, v1, a1), (p2, v2, a2) = (_site(model, data, int(site)) for site in ids[k - 1 : k + 1])
            d, v = p2 - p1, v2 - v1
            length = float(np.linalg.norm(d))
            if length:
                u = d / length
                total += float(u @ (a2 - a1) + (v @ v - (u @ v) ** 2) / length) / divisor
    return total


def _site(model: Any, data: Any, site: int) -> tuple[Array, Array, Array]:
    """Position [m], velocity [m/s] and acceleration [m/s²] of a site, world axes, shape (3,) each."""
    rates = np.zeros((2, 6, 1))
    mujoco.mj_objectVelocity(model, data, SITE, site, rates[0], 0)
    mujoco.mj_objectAcceleration(model, data, SITE, site, rates[1], 0)
    return data.site_xpos[site], rates[0, 3:, 0], rates[1, 3:, 0]


def gaps(mechanism: Mechanism, model: Any, data: Any, q: JointPositions) -> Array:
    """Lengths of tendons in `data`, less those in a state of the mechanism [m], shape (slides,)."""
    return data.ten_length[with_slides(mechanism, model)] - q[mechanism.spanning_tree[0] :]
