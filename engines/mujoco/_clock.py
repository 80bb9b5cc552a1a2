"""A clock in MuJoCo's model that moves the targets of drives within a step, at every stage of its own integrator.

An equality of MuJoCo holds a joint or a tendon to a polynomial of another. Here the other is a joint that turns at
1 rad/s, too heavy to be disturbed, and the polynomials are targets over time. The external wrenches act on
massless bodies at the points of application of their forces: so they too are right at every stage.
"""

from typing import Any

import mujoco
import numpy as np

from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.mechanism import Mechanism

CLOCK = "loopcheck clock"
_MODEL = """
<mujoco>
  <worldbody>
    <body name="clock">
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <joint name="clock" axis="0 0 1" armature="1e22"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="clock"><joint joint="clock" coef="1"/></fixed>
  </tendon>
</mujoco>
"""


def add_clock(spec: Any) -> None:
    """Add the clock as the last joint of a model, and a tendon of the same name that is as long as its angle."""
    for key in list(spec.keys):  # of positions without a clock
        spec.delete(key)
    spec.attach(mujoco.MjSpec.from_string(_MODEL), frame=spec.worldbody.add_frame(), prefix="loopcheck ")


def add_points(spec: Any, mechanism: Mechanism) -> None:
    """Add a massless body for each external wrench, at the point of application of its force."""
    bodies = spec.bodies[1:]  # the first is the world
    for k, load in enumerate(mechanism.wrenches):
        bodies[load.body].add_body(name=_point(k), pos=load.point, ipos=np.zeros(3), explicitinertial=True)


def push(mechanism: Mechanism, model: Any, data: Any) -> None:
    """Let the external wrenches act from now on."""
    for k, load in enumerate(mechanism.wrenches):
        data.xfrc_applied[model.body(_point(k)).id] = (*load.force, *load.moment)


def _point(k: int) -> str:
    return f"loopcheck external wrench {k}"


def frozen_targets(targets: Array, feedback: AnyArray) -> Array:
    """Targets p that stay constant from the beginning of a step.

    Args:
        targets: K p + B ṗ at every half step [m/s² or rad/s²], shape (2 steps + 1, drives).
        feedback: K [1/s²] and B [1/s], shape (2,).

    Returns:
        Coefficients of 1, s and s² [m or rad, per s, per s²], s from each step on, shape (steps + 1, drives, 3).
    """
    return np.stack([targets[::2] / feedback[0], *np.zeros((2, *targets[::2].shape))], axis=-1)


def moving_targets(targets: Array, feedback: AnyArray, dt: float) -> Array:
    """Targets p that are right at the beginning, in the middle and at the end of each step.

    Args:
        targets: K p + B ṗ at every half step [m/s² or rad/s²], shape (2 steps + 1, drives).
        feedback: K [1/s²] and B [1/s], shape (2,).
        dt: Step [s].

    Returns:
        Coefficients of 1, s and s² [m or rad, per s, per s²], s from each step on, shape (steps + 1, drives, 3).
    """
    (K, B), s = feedback, np.array([0, dt / 2, dt])
    of_coefficients = np.stack([K + 0 * s, K * s + B, K * s**2 + 2 * B * s], axis=1)
    at_stages = np.stack([targets[:-2:2], targets[1:-1:2], targets[2::2]], axis=-1)
    polynomials = frozen_targets(targets, feedback)  # at the end too, from where no step goes on
    polynomials[:-1] = at_stages @ np.linalg.inv(of_coefficients).T
    return polynomials
