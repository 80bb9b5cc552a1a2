"""Robots in a batch of Newton: worlds of one model."""

import warnings

from loopcheck.engines.boundary import silenced, want_representable
from loopcheck.engines.declarations import Settings
from loopcheck.engines.newton._as_is import load
from loopcheck.engines.newton._coordinates import newton_positions, own_positions, own_velocities, rates
from loopcheck.engines.newton._model import build, builder_of, guarded, numbers
from loopcheck.engines.newton._newton import device, newton, warp
from loopcheck.engines.newton._stepping import MAXIMAL, Stepping
from loopcheck.engines.newton._support import is_floating, want_simulated
from loopcheck.engines.newton.tuning import SETTINGS, prepared
from loopcheck.engines.simulation import Readings, Robots, State
from loopcheck.robots.arrays import EffortSeries
from loopcheck.robots.mechanism import Mechanism

__all__ = ["PRECISIONS", "device", "worlds"]

PRECISIONS = ("single",)
SOURCE = "newton/batch"


class NewtonWorlds:
    """Worlds of one model; efforts act as forces on joints that have no drives."""

    def __init__(self, mechanism: Mechanism, stepping: Stepping, state: State) -> None:
        """Put a robot into each state.

        Args:
            stepping: The solver, and how it steps.
            state: Positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv).

        Raises:
            NotRepresentableError: If the mechanism has an element that the solver cannot represent.
        """
        want_simulated(mechanism, stepping.solver)
        if stepping.solver in MAXIMAL:
            names = [body.name for b, body in enumerate(mechanism.bodies) if is_floating(mechanism, b)]
            want_representable("newton, batches of solver kamino", [f"floating body '{name}'" for name in names])
        self._mechanism, self._stepping, self._count = mechanism, stepping, len(state[0])
        self._tree = build(mechanism)
        self._tree.put(state[0][0], state[1][0])  # where closures are measured, which are the same in all
        scene = newton.ModelBuilder(gravity=tuple(mechanism.gravity), up_axis=newton.Axis.Z)
        scene.replicate(builder_of(mechanism, stands=self._tree), self._count)
        self._model = scene.finalize()
        self._control, self._states = self._model.control(), [self._model.state(), self._model.state()]
        self._solver = stepping.made(self._model)
        first = self._states[0]
        turned = (rates(mechanism, state[0]) @ state[1][..., None])[..., 0]
        for array, values in ((first.joint_q, newton_positions(mechanism, state[0])), (first.joint_qd, turned)):
            every = array.numpy().reshape(self._count, -1)
            every[:, : values.shape[1]] = values
            array.assign(every.ravel())
        newton.eval_fk(self._model, first.joint_q, first.joint_qd, first)
        scratch = [self._model.state() for _ in range(2)]
        for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
            getattr(scratch[0], name).assign(getattr(first, name))
        self._solver.step(*scratch, self._control, None, stepping.step)  # compiled before anything is timed

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        nq, nv, state = self._mechanism.nq, self._mechanism.nv, self._states[0]
        if self._stepping.solver in MAXIMAL:
            newton.eval_ik(self._model, state, state.joint_q, state.joint_qd)
        q, qd = (numbers(values).reshape(self._count, -1) for values in (state.joint_q, state.joint_qd))
        own = own_positions(self._mechanism, q[:, :nq])
        return own, own_velocities(self._mechanism, own, qd[:, :nv])

    def step(self, command: EffortSeries, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        force = self._control.joint_f.numpy().reshape(self._count, -1)
        force[:, : self._mechanism.nv] = command @ self._mechanism.selection
        with guarded(SOURCE), silenced():
            self._control.joint_f.assign(force.ravel())
            for _ in range(count):
                before, after = self._states
                before.clear_forces()
                load(self._tree, before)
                self._solver.step(before, after, self._control, None, self._stepping.step)
                self._states.reverse()
            warp.synchronize()
        return {}


def worlds(mechanism: Mechanism, state: State, settings: Settings, precision: str) -> Robots[EffortSeries]:
    """See `loopcheck.engines.contract.Batch.worlds`."""
    with guarded(SOURCE), silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = SETTINGS["solver"].values["MuJoCo Warp"].fixed
        return NewtonWorlds(mechanism, prepared(mechanism, {**first, **settings}), state)
