"""Gravity of another direction or size as the explanation of a residual: a robot that is mounted otherwise.

The required effort is linear in gravity, so the best fit follows by least squares. Components of gravity along
directions without work of any weight stay those of the model.
"""

import numpy as np

from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.logs.residual import Residual
from loopcheck.robots.arrays import Array, root_mean_square
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case, configurations

EXPLAINED = 0.1
"""Largest remaining part of a residual that a different gravity explains [-]."""


def gravity_in_words(case: Case, residual: Residual) -> str:
    """The gravity that explains a residual, as a clause; empty without an explanation, or for the model's gravity.

    Args:
        case: Robot and configuration.
        residual: Residual efforts of the log.
    """
    mechanism = case.mechanism
    acting = residual.scale > 0
    weights = _efforts_per_gravity(mechanism, residual)[:, acting] / residual.scale[acting, None]
    missing = (residual.residual[:, acting] / residual.scale[acting]).ravel()
    A, floor = weights.reshape(-1, 3), root_mean_square(residual.floor.rms[acting] / residual.scale[acting])
    enough = max(EXPLAINED * root_mean_square(missing), floor)
    named = {
        f"--configuration {name}": gravity - mechanism.gravity
        for name, gravity in configurations(case.robot, mechanism).items()
    }
    fitted = np.linalg.lstsq(A, missing, rcond=1e-9)[0]
    for words, change in {**named, "is the robot mounted differently": fitted}.items():
        if change.any() and root_mean_square(missing - A @ change) <= enough:
            fitting, modelled = (_vector(gravity) for gravity in (mechanism.gravity + change, mechanism.gravity))
            return f"gravity {fitting} m/s² instead of {modelled} explains the residual: {words}?"
    return ""


def _efforts_per_gravity(mechanism: Mechanism, residual: Residual) -> Array:
    """Efforts that gravity of 1 m/s² along each axis takes [N or N m per m/s²], shape (n, na, 3)."""
    motion = residual.motion

    def needed(gravity: Array) -> Array:
        state = State(mechanism=mechanism.with_gravity(gravity), q=motion.q, qd=motion.qd)
        return needed_efforts(state, motion.qdd).effort

    without = needed(np.zeros(3))
    return np.stack([needed(axis) - without for axis in np.eye(3)], axis=-1)


def _vector(values: Array) -> str:
    return f"({', '.join(f'{value + 0.0:.3g}' for value in values)})"  # without the sign of a zero
