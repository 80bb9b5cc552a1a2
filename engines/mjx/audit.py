"""MJX's model and terms on the device, in double precision: read from its own model and state."""

from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.mjx._model import compiled, guarded, opening, put, terms
from loopcheck.engines.mujoco.audit import KINDS
from loopcheck.robots.arrays import AnyArray, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.formats.mujoco_compat import names_of_actuators
from loopcheck.robots.inventory import FREEDOM, Inventory, Matrices, off_axis
from loopcheck.robots.mechanism import Mechanism

_OFF = mujoco.mjtDisableBit


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    names = compiled(mechanism)  # MJX keeps no names
    with guarded("mjx", double=True):
        model, _ = put(names)
        samples = terms(mechanism, names, q[None], np.zeros((1, mechanism.nv)))
        sample = samples._replace(**{name: value[0] for name, value in samples._asdict().items()})
        mass, gravity = _read(model.body_mass)[1:], _read(model.opt.gravity) * _on(model, _OFF.mjDSBL_GRAVITY)
        kinds = [KINDS[int(number)] for number in model.jnt_type]
        scalar = np.array([kind in ("hinge", "slide") for kind in kinds], dtype=bool)
        axes = np.where(scalar[:, None], sample.axis, 0.0)
        turns = [kind in ("hinge", "ball") for kind in kinds]
        anchors = [turn * off_axis(p, axis) for turn, p, axis in zip(turns, sample.anchor, axes, strict=True)]
        stiffness = _read(model.jnt_stiffness) * _on(model, _OFF.mjDSBL_SPRING)
        rest = _read(model.qpos_spring)[model.jnt_qposadr]
        moments, T = _read(model.body_inertia)[1:], sample.tendons
        damping = np.diag(_read(model.dof_damping)) + T.T @ (_read(model.tendon_damping)[:, None] * T)
        joints = [names.joint(i).name or f"joint{i}" for i in range(model.njnt)]
        return Inventory(
            bodies=tuple(names.body(i).name or f"body{i}" for i in range(1, model.nbody)),
            joints=tuple(joints),
            dofs=tuple(joints[i] for i in model.dof_jntid),
            actuators=names_of_actuators(names),
            mass=mass,
            total_mass=float(mass.sum()),
            center=sample.center[1:],
            moments=np.sort(moments, axis=1),
            inertia=np.einsum("bij,bj,bkj->bik", sample.R[1:], moments, sample.R[1:]),
            freedom=np.array([FREEDOM[kind] for kind in kinds]).reshape(-1, 2),
            axis=axes,
            anchor=np.array(anchors).reshape(-1, 3),
            armature=np.diag(_read(model.dof_armature)) + T.T @ (_read(model.tendon_armature)[:, None] * T),
            damping=damping * _on(model, _OFF.mjDSBL_DAMPER),
            friction=_read(model.dof_frictionloss) * _on(model, _OFF.mjDSBL_FRICTIONLOSS),
            stiffness=stiffness,
            spring_reference=np.where((stiffness != 0) & scalar, rest, 0.0),
            gravity=gravity,
            force=sample.wrench[1:, :3] - _read(model.body_gravcomp)[1:, None] * mass[:, None] * gravity,
            moment=sample.wrench[1:, 3:],
            rest_force=sample.bias - sample.passive,
            J=sample.J,
            opening=opening(model, sample.opening).largest,
            transmission=sample.transmission,
        )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    with guarded("mjx", double=True):
        engine_terms = terms(mechanism, compiled(mechanism), q, qd)
    names = ("M", "bias", "passive", "J", "closure_bias", "solver_bias")
    return Matrices(**{name: getattr(engine_terms, name) for name in names})


def _read(field: Any) -> AnyArray:
    return np.asarray(field, float)


def _on(model: Any, bit: Any) -> bool:
    return not int(model.opt.disableflags) & int(bit)
