"""The actuators of a file as MuJoCo computes them: motors, servos and the like, whose force is affine.

The force of an actuator of length l is gain * input + bias, with gain = g0 + g1 l + g2 l' and bias = b0 + b1 l + b2 l';
the input is its control, or its activation where it has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from loopcheck.robots.arrays import AnyArray, Array, Efforts, EffortSeries
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.formats.mujoco_compat import CompatibleModel, names_of_actuators

GAINS = {int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE)}
BIASES = {int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)}
DC_MOTOR = int(getattr(mujoco.mjtGain, "mjGAIN_DCMOTOR", -1))
"""Not in every version. Without inductance, heat, cogging or a controller its force is (K/R)(voltage − K l')."""
NONE, INTEGRATOR, FILTER, EXACT = (
    int(getattr(mujoco.mjtDyn, f"mjDYN_{kind}")) for kind in ("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT")
)
AT_LIMIT = 1e-12
"""How close to its limit a force counts as clipped [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuators:
    """The affine actuators of a compiled model."""

    names: tuple[str, ...]
    gain: Array
    """Force per input, its change with length and with velocity, shape (na, 3)."""
    bias: Array
    """Force without input, its change with length and with velocity, shape (na, 3)."""
    dynamics: AnyArray
    """Numbers of the kinds of activation dynamics [-], shape (na,)."""
    activation: AnyArray
    """Indices of their activations, −1 without an activation [-], shape (na,)."""
    ctrl_range: Array
    """Least and largest control, infinite if unlimited, shape (na, 2)."""
    force_range: Array
    """Least and largest force [N or N m], by the actuator and by its joint, infinite if unlimited, shape (na, 2)."""

    electric: AnyArray
    """Whether the actuator is a motor with a back-EMF as bias [-], shape (na,)."""

    @property
    def servo(self) -> AnyArray:
        """Mask of the actuators that hold a length or a velocity by themselves [-], shape (na,)."""
        holds_velocity = (self.bias[:, 2] != 0) & (self.gain[:, 0] == -self.bias[:, 2]) & ~self.electric
        return (self.bias[:, 1] != 0) | holds_velocity

    def input_for(self, effort: Efforts, length: Array, velocity: Array) -> Array:
        """The input for given forces of the actuators, shape (na,).

        Args:
            effort: The forces [N or N m], shape (na,).
            length: Their lengths [m or rad, times their gears], shape (na,).
            velocity: Their velocities [of those per s], shape (na,).
        """
        return (effort - _affine(self.bias, length, velocity)) / _affine(self.gain, length, velocity)

    def input_of_servo(self, length: Array, velocity: Array) -> Array:
        """The input of servos at rest in the desired state, shape (..., na).

        A servo without a length, as `velocity`, is at rest at its desired velocity.

        Args:
            length: Desired lengths [m or rad, times their gears], shape (..., na).
            velocity: Desired velocities [of those per s], shape (..., na).
        """
        by_length = -(self.bias[:, 0] + self.bias[:, 1] * length)
        by_velocity = -(self.bias[:, 0] + self.bias[:, 2] * velocity)
        return np.where(self.bias[:, 1] != 0, by_length, by_velocity) / self.gain[:, 0]

    def control_for(self, force: Array, rate: Array) -> Array:
        """Controls for inputs: the inputs themselves, or their rates if an activation integrates them.

        Args:
            force: Inputs [N or N m per gain], shape (na,).
            rate: Their rates [1/s], shape (na,).
        """
        return np.where(self.dynamics == INTEGRATOR, rate, force)

    def inputs(self, ctrl: Array, act: Array) -> Array:
        """The inputs that act: controls as far as they are in their range, or activations, shape (..., na).

        Args:
            ctrl: Controls [N or N m per gain], shape (..., na).
            act: Activations [N or N m per gain], shape (..., activations).
        """
        clipped = np.clip(ctrl, *self.ctrl_range.T)
        has_activation = self.activation >= 0
        clipped[..., has_activation] = act[..., self.activation[has_activation]]
        return clipped

    def force(self, inputs: Array, length: Array, velocity: Array) -> Array:
        """Forces of actuators [N or N m], shape (..., na).

        Args:
            inputs: Their inputs [N or N m per gain], shape (..., na).
            length: Their lengths [m or rad, times their gears], shape (..., na).
            velocity: Their velocities [of those per s], shape (..., na).
        """
        force = _affine(self.gain, length, velocity) * inputs + _affine(self.bias, length, velocity)
        return np.clip(force, *self.force_range.T)

    def change(self, force: Array, inputs: Array, ahead: tuple[Array, Array], *, clips: bool = True) -> Array:
        """Change of the forces by a motion of the actuators, to first order [N or N m], shape (..., na).

        Args:
            force: Forces before [N or N m], shape (..., na).
            inputs: Inputs [N or N m per gain], shape (..., na).
            ahead: Changes of lengths and velocities, each of shape (..., na).
            clips: Whether a clipped force stays clipped.
        """
        by_length, by_velocity = (self.bias[:, k] + self.gain[:, k] * inputs for k in (1, 2))
        return np.where(clips & self._clipped(force), 0.0, by_length * ahead[0] + by_velocity * ahead[1])

    def at_limits(self, ctrl: Array, force: EffortSeries) -> dict[str, int]:
        """Number of steps at the end of the control or force range for each actuator that reached it, by name.

        Args:
            ctrl: Controls, before they are clipped [N or N m per gain], shape (nt, na).
            force: Forces [N or N m], shape (nt, na).
        """
        ends = (ctrl < self.ctrl_range[:, 0]) | (ctrl > self.ctrl_range[:, 1]) | self._clipped(force)
        return {name: int(count) for name, count in zip(self.names, ends.sum(axis=0), strict=True) if count}

    def _clipped(self, force: Array) -> AnyArray:
        low, high = (1 - AT_LIMIT) * self.force_range.T
        return (force <= low) | (force >= high)


def actuators(model: Any) -> Actuators:
    """The actuators of a model.

    Args:
        model: MuJoCo's model.

    Raises:
        NotRepresentableError: If a force is not affine, as a muscle's, or does not depend on the control at rest.
    """
    fields, names = CompatibleModel(model), names_of_actuators(model)
    electric = _electric(model)
    for i, name in enumerate(names):
        known = model.actuator_gaintype[i] in GAINS and model.actuator_biastype[i] in BIASES
        if electric[i]:
            continue
        if not known or model.actuator_dyntype[i] not in (NONE, INTEGRATOR, FILTER, EXACT):
            raise NotRepresentableError(
                f"mujoco/as_is: actuator '{name}': force must be affine in length and velocity (motor, position, "
                "velocity or general actuator, or dcmotor without inductance, heat, cogging or controller), got "
                f"{_in_words(model, i)}"
            )
        if not model.actuator_gainprm[i, 0]:  # as of a damper: no control gives it a force
            raise NotRepresentableError(
                f"mujoco/as_is: actuator '{name}': must have a force at rest that depends on its control, got gainprm "
                f"{' '.join(f'{value:g}' for value in model.actuator_gainprm[i, :3])}"
            )
    has_bias = np.isin(model.actuator_biastype, int(mujoco.mjtBias.mjBIAS_AFFINE))
    is_affine = np.isin(model.actuator_gaintype, int(mujoco.mjtGain.mjGAIN_AFFINE))
    gain = np.array(model.actuator_gainprm[:, :3])
    gain[~is_affine, 1:] = 0
    bias = np.where(has_bias[:, None], model.actuator_biasprm[:, :3], 0.0)
    resistance, constant = model.actuator_gainprm[electric, :2].T
    gain[electric, 0], bias[electric, 2] = constant / resistance, -(constant**2) / resistance
    clamped = not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL
    return Actuators(
        names=names,
        gain=gain,
        bias=bias,
        electric=electric,
        dynamics=np.where(electric, NONE, model.actuator_dyntype),
        activation=np.array(fields.actuator_actadr),
        ctrl_range=_range(np.array(model.actuator_ctrllimited, dtype=bool) & clamped, model.actuator_ctrlrange),
        force_range=_narrower(
            _range(np.array(model.actuator_forcelimited, dtype=bool), model.actuator_forcerange),
            _ranges_on_joints(model, names),
        ),
    )


def _electric(model: Any) -> AnyArray:
    """Mask of the DC motors of a voltage alone, (na,)."""
    fields = CompatibleModel(model)
    plain = [
        kind == DC_MOTOR and controls == 1 and place < 0 and not (gain[2:].any() or bias.any() or dynamics.any())
        for kind, controls, place, gain, bias, dynamics in zip(
            model.actuator_gaintype,
            fields.actuator_ctrlnum,
            fields.actuator_actadr,
            model.actuator_gainprm,
            model.actuator_biasprm,
            model.actuator_dynprm,
            strict=True,
        )
    ]
    return np.array(plain, dtype=bool)


def _in_words(model: Any, actuator: int) -> str:
    """Kinds of gain, bias and dynamics of an actuator, by MuJoCo's names."""
    kinds = (
        (mujoco.mjtGain, model.actuator_gaintype),
        (mujoco.mjtBias, model.actuator_biastype),
        (mujoco.mjtDyn, model.actuator_dyntype),
    )
    return ", ".join(enum(int(values[actuator])).name.removeprefix("mj").lower() for enum, values in kinds)


def _affine(coefficients: Array, length: Array, velocity: Array) -> Array:
    return coefficients[:, 0] + coefficients[:, 1] * length + coefficients[:, 2] * velocity


def _ranges_on_joints(model: Any, names: Sequence[str]) -> Array:
    """Force range of each actuator from its joint, (na, 2), which no reading of it shows."""
    on_joint = np.isin(model.actuator_trntype, (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)))
    ranges = np.tile([-np.inf, np.inf], (len(names), 1))
    joints = np.where(on_joint, model.actuator_trnid[:, 0], -1)
    for i in np.flatnonzero(on_joint):
        if not model.jnt_actfrclimited[joints[i]]:
            continue
        if (joints == joints[i]).sum() > 1:
            others = [name for name, joint in zip(names, joints, strict=True) if joint == joints[i]]
            raise NotRepresentableError(
                f"mujoco/as_is: joint '{model.joint(joints[i]).name}': must have a single actuator, because "
                f"actuatorfrcrange limits their sum, got {', '.join(others)}"
            )
        ranges[i] = np.sort(model.jnt_actfrcrange[joints[i]] / model.actuator_gear[i, 0])
    return ranges


def _narrower(first: Array, second: Array) -> Array:
    return np.stack([np.maximum(first[:, 0], second[:, 0]), np.minimum(first[:, 1], second[:, 1])], axis=1)


def _range(limited: AnyArray, limits: Array) -> Array:
    return np.where(limited[:, None], limits, [-np.inf, np.inf])
