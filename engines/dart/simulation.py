"""A robot in DART: with its defaults, or in small steps with its loops drawn shut in each."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, assert_never

import dartpy
import numpy as np

from loopcheck.engines.boundary import silenced, want_representable
from loopcheck.engines.dart._equations import apply_loads, opening, position_of
from loopcheck.engines.dart._skeleton import Tree, build, guarded
from loopcheck.engines.mechanics import without_mass
from loopcheck.engines.simulation import Free, Pace, Readings, State
from loopcheck.robots.arrays import Efforts, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Mechanism, RigidClosure, WeldClosure

STEP, ERROR_REDUCTION = 1e-3, 0.01
"""DART's default step [s] and error reduction of constraints [-]."""
UNLIMITED = 1e9
"""Force of servos [N or N m] and velocity of constraints [m/s or rad/s] that are never reached."""
SETTINGS = "default: steps of 1 ms, error reduction 0.01; tight: 0.2 ms or 1/1000 of the span, error reduction 1"
"""See `loopcheck.engines.contract.Simulation`."""


class DartRobot:
    """See `loopcheck.engines.as_is.ObservedRobot`."""

    def __init__(self, mechanism: Mechanism, error_reduction: float = ERROR_REDUCTION) -> None:
        """Make it with the default step; a step takes back this fraction of the opening of a loop."""
        self.mechanism, self._error_reduction = mechanism, error_reduction
        self.tree, self.world = build(mechanism), dartpy.simulation.World()
        self.world.setTimeStep(STEP)
        self.world.setGravity(mechanism.gravity)
        self.world.addSkeleton(self.tree.skeleton)

    @property
    def timestep(self) -> float:
        """See `loopcheck.engines.simulation.Robot.timestep`."""
        return float(self.world.getTimeStep())

    @timestep.setter
    def timestep(self, step: float) -> None:
        self.world.setTimeStep(step)

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0) -> None:
        """See `loopcheck.engines.simulation.Robot.put`; once, as the constraints are made in this state."""
        self.tree.put(q, qd)
        M = np.array(self.tree.skeleton.getMassMatrix())
        want_representable("dart", without_mass(self.mechanism, M))
        for closure in self.mechanism.rigid_closures:
            constraint = _constraint(self.tree, closure)
            constraint.setErrorReductionParameter(self._error_reduction)
            constraint.setMaxErrorReductionVelocity(UNLIMITED)
            self.world.getConstraintSolver().addConstraint(constraint)

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        skeleton = self.tree.skeleton
        x, qd = np.array(skeleton.getPositions()), np.array(skeleton.getVelocities())
        return (self.tree.ours(x) if np.isfinite(x).all() else x), qd

    def opening(self) -> Deviation:
        """See `loopcheck.engines.simulation.Observed.opening`."""
        return opening(self.tree)

    def step(self, command: Efforts, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        force = command @ self.mechanism.selection
        for _ in range(count):
            self.tree.skeleton.setForces(force)
            self.advance()
        return {}

    def advance(self) -> None:
        """One step under the loads of the mechanism and the commands of its joints."""
        apply_loads(self.tree)
        self.world.step(False)


def _constraint(tree: Tree, closure: RigidClosure) -> Any:
    """DART's constraint; the world is no body there."""
    ends = ((closure.body1, closure.point1), (closure.body2, closure.point2))
    moving = [end for end in ends if end[0] != WORLD]
    bodies = [tree.bodies[body] for body, _ in moving]
    match closure:
        case ConnectClosure():
            return dartpy.constraint.BallJointConstraint(*bodies, position_of(tree, *moving[0]))
        case WeldClosure():
            return dartpy.constraint.WeldJointConstraint(*bodies)
        case _:
            assert_never(closure)


@contextmanager
def simulate(mechanism: Mechanism, tight: bool = False) -> Iterator[DartRobot]:
    """See `loopcheck.engines.contract.Simulation.simulate`."""
    with guarded("dart"), silenced():
        yield DartRobot(mechanism, 1.0 if tight else ERROR_REDUCTION)


free_motion = Free(simulate=simulate, tight_pace=Pace(step=2e-4, fewest=100))
"""See `loopcheck.engines.contract.Simulation.free_motion`."""
