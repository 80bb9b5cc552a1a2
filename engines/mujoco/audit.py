"""MuJoCo's compiled model and its terms: read from `MjModel` and `MjData`."""

from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.mujoco import tendons
from loopcheck.engines.mujoco.loops import closure_bias
from loopcheck.engines.mujoco.model import (
    apply_wrenches,
    build,
    constraint_jacobian,
    equality_rows,
    guarded,
    opening,
    own_actuators_off,
    transmission,
    tree_terms,
)
from loopcheck.robots.arrays import Array, JointForces, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.formats.mujoco_compat import CompatibleModel, names_of_actuators
from loopcheck.robots.inventory import FREEDOM, Inventory, Matrices, off_axis
from loopcheck.robots.mechanism import Mechanism

_OFF = mujoco.mjtDisableBit
KINDS = {int(getattr(mujoco.mjtJoint, f"mjJNT_{kind.upper()}")): kind for kind in FREEDOM}
"""Kind of a joint by MuJoCo's number."""


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    model = build(mechanism)
    data = mujoco.MjData(model)
    data.qpos[:] = q[: model.nq]  # lengths of tendons follow
    with guarded("mujoco"):
        apply_wrenches(mechanism, model, data)
        _, bias, passive = tree_terms(mechanism, model, data)
    return inventory(model, data, bias - passive)


def inventory(model: Any, data: Any, rest_force: JointForces) -> Inventory:
    """Contents of a model.

    Args:
        model: MuJoCo's model.
        data: Its state, computed, with the external wrenches in `xfrc_applied`.
        rest_force: Force on each dof that holds the tree at rest there [N or N m], shape (nv,).
    """
    rows = equality_rows(data)
    kinds, axes, anchors = _joints(model, data)
    scalar = np.array([kind in ("hinge", "slide") for kind in kinds], dtype=bool)
    of_actuators = CompatibleModel(model)
    stiffness = np.where(_on(model, _OFF.mjDSBL_SPRING), model.jnt_stiffness, 0.0)
    mass, weight = model.body_mass[1:], _gravity(model) * model.body_mass[1:, None]  # body 0 is the world
    R = data.ximat[1:].reshape(-1, 3, 3)
    joints = [model.joint(i).name or f"joint{i}" for i in range(model.njnt)]
    return Inventory(
        bodies=tuple(model.body(i).name or f"body{i}" for i in range(1, model.nbody)),
        joints=tuple(joints),
        dofs=tuple(joints[i] for i in model.dof_jntid),
        actuators=names_of_actuators(model),
        mass=mass,
        total_mass=float(model.body_mass.sum()),
        center=data.xipos[1:],
        moments=np.sort(model.body_inertia[1:], axis=1),
        inertia=np.einsum("bij,bj,bkj->bik", R, model.body_inertia[1:], R),
        freedom=np.array([FREEDOM[kind] for kind in kinds]).reshape(-1, 2),
        axis=axes,
        anchor=anchors,
        armature=_on_joints(model, data, model.dof_armature, model.tendon_armature, of_actuators.actuator_armature),
        damping=_on_joints(model, data, model.dof_damping, model.tendon_damping, of_actuators.actuator_damping)
        * _on(model, _OFF.mjDSBL_DAMPER),
        friction=np.where(_on(model, _OFF.mjDSBL_FRICTIONLOSS), model.dof_frictionloss, 0.0),
        stiffness=stiffness,
        spring_reference=np.where((stiffness != 0) & scalar, model.qpos_spring[model.jnt_qposadr], 0.0),
        gravity=_gravity(model),
        force=data.xfrc_applied[1:, :3] - model.body_gravcomp[1:, None] * weight,
        moment=data.xfrc_applied[1:, 3:],
        rest_force=rest_force,
        J=constraint_jacobian(model, data)[rows],
        opening=opening(model, data, rows).largest,
        transmission=transmission(model, data),
    )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    model = build(mechanism)
    own_actuators_off(model)
    data, of_states = mujoco.MjData(model), []
    with guarded("mujoco"):
        for positions, velocities in zip(q, qd, strict=True):
            data.qpos[:], data.qvel[:] = positions[: model.nq], velocities[: model.nv]
            of_states.append(_at_state(mechanism, model, data))
    names = ("M", "bias", "passive", "J", "closure_bias", "solver_bias")
    return Matrices(
        **{name: np.array(values) for name, values in zip(names, zip(*of_states, strict=True), strict=True)}
    )


def _at_state(mechanism: Mechanism, model: Any, data: Any) -> tuple[Array, ...]:
    """The entries of `Matrices` at the state in `data`."""
    M, bias, passive = tree_terms(mechanism, model, data)
    mujoco.mj_referenceConstraint(model, data)
    rows = equality_rows(data)
    K, B, impedance, _ = data.efc_KBIP[rows].T
    # MuJoCo wants the acceleration −J̇q̇ − B J q̇ − K r of a constraint that is violated by r.
    solver_bias = -data.efc_aref[rows] - B * data.efc_vel[rows] - K * impedance * data.efc_pos[rows]
    return M, bias, passive, constraint_jacobian(model, data)[rows], closure_bias(model, data), solver_bias


def _joints(model: Any, data: Any) -> tuple[list[str], Array, Array]:
    """Kind, axis [-], shape (nj, 3), and anchor [m], shape (nj, 3), of each joint, as `Inventory` has them."""
    kinds = [KINDS[int(number)] for number in model.jnt_type]
    axes, anchors = np.zeros((model.njnt, 3)), np.zeros((model.njnt, 3))
    for i, kind in enumerate(kinds):
        if kind in ("hinge", "slide"):
            axes[i] = data.xaxis[i]
        if kind in ("hinge", "ball"):
            anchors[i] = off_axis(data.xanchor[i], axes[i])
    return kinds, axes, anchors


def _on_joints(model: Any, data: Any, of_dofs: Array, of_tendons: Array, of_actuators: Array) -> Array:
    """Armature or damping of joints, tendons and actuators as a matrix on the joint velocities, shape (nv, nv)."""
    T, S = tendons.jacobian(model, data), transmission(model, data)
    return np.diag(of_dofs) + T.T @ (of_tendons[:, None] * T) + S.T @ (of_actuators[:, None] * S)


def _gravity(model: Any) -> Array:
    return model.opt.gravity * _on(model, _OFF.mjDSBL_GRAVITY)


def _on(model: Any, bit: Any) -> bool:
    return not model.opt.disableflags & bit
