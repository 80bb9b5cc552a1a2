"""MuJoCo's derivatives by finite differences: of a step with soft loops, and of inverse dynamics."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.declarations import ACCELERATION, FORCE, Differentiated
from loopcheck.engines.mujoco.model import build, guarded, own_actuators_off
from loopcheck.engines.mujoco.tendons import want_no_slides
from loopcheck.robots.arrays import Array, JointAccelerations, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism

STEP = 1e-6
"""Step of MuJoCo's central differences [any unit], as in its documentation."""


@contextmanager
def functions(mechanism: Mechanism) -> Iterator[list[Differentiated]]:
    """See `loopcheck.engines.contract.Gradients.functions`."""
    if mechanism.wrenches:
        want_representable("mujoco", ["derivatives with external wrenches at points other than mass centres"])
    want_no_slides(mechanism)
    with guarded("mujoco"):
        forward, inverse = _Step(mechanism), _Inverse(mechanism)
        yield [
            Differentiated(
                name="mjd_transitionFD",
                quantity=ACCELERATION,
                meaning=f"mean acceleration of a step of {1e3 * forward.model.opt.timestep:g} ms with soft loops",
                value=forward.value,
                derivatives=forward.derivatives,
            ),
            Differentiated(
                name="mjd_inverseFD",
                quantity=FORCE,
                meaning="forces on the tree less those of soft loops, which do not act while the loops stay closed",
                value=inverse.value,
                derivatives=inverse.derivatives,
            ),
        ]


class _Step:
    """A step from rest of the solver, with motors in place of the file's actuators."""

    def __init__(self, mechanism: Mechanism) -> None:
        def with_motors(spec: Any) -> None:
            for actuator in spec.actuators:
                actuator.set_to_motor()
                actuator.forcelimited = actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE

        self.model = build(mechanism, with_motors)
        if self.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:  # refused by mjd_transitionFD
            self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self._data = mujoco.MjData(self.model)

    def value(self, q: JointPositions, qd: JointVelocities, effort: Array) -> Array:
        self._put(q, qd, effort)
        mujoco.mj_step(self.model, self._data)
        return (self._data.qvel - qd) / self.model.opt.timestep

    def derivatives(self, q: JointPositions, qd: JointVelocities, effort: Array) -> Mapping[str, Array]:
        model, nv = self.model, self.model.nv
        self._put(q, qd, effort)
        A, B = np.zeros((2 * nv + model.na, 2 * nv + model.na)), np.zeros((2 * nv + model.na, model.nu))
        mujoco.mjd_transitionFD(model, self._data, STEP, True, A, B, None, None)
        rows, h = slice(nv, 2 * nv), model.opt.timestep
        return {"q": A[rows, :nv] / h, "qd": (A[rows, rows] - np.eye(nv)) / h, "effort": B[rows] / h}

    def _put(self, q: JointPositions, qd: JointVelocities, effort: Array) -> None:
        mujoco.mj_resetData(self.model, self._data)
        self._data.qpos[:], self._data.qvel[:], self._data.ctrl[:] = q, qd, effort


class _Inverse:
    """Inverse dynamics without the file's actuators."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._model = build(mechanism)
        own_actuators_off(self._model)
        self._data = mujoco.MjData(self._model)

    def value(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> Array:
        self._data.qpos[:], self._data.qvel[:], self._data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(self._model, self._data)
        return np.array(self._data.qfrc_inverse)

    def derivatives(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> Mapping[str, Array]:
        self.value(q, qd, qdd)
        of_q, of_qd, of_qdd = (np.zeros((self._model.nv, self._model.nv)) for _ in range(3))
        mujoco.mjd_inverseFD(self._model, self._data, STEP, False, of_q, of_qd, of_qdd, None, None, None, None)
        return {"q": of_q.T, "qd": of_qd.T, "qdd": of_qdd.T}  # a row of MuJoCo's belongs to an input
