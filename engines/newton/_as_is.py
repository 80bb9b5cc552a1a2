"""Newton as its user steps it: its own drives on the driven joints, one of its solvers, the step of its examples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.computed_torque import drive_matrices
from loopcheck.engines.loads import at_centers, wrenches
from loopcheck.engines.mechanics import opening
from loopcheck.engines.newton._companions import companions
from loopcheck.engines.newton._equations import equations
from loopcheck.engines.newton._model import Tree, build, guarded, numbers, poses_of
from loopcheck.engines.newton._newton import device, newton
from loopcheck.engines.newton._stepping import MAXIMAL, STEP, Stepping
from loopcheck.engines.newton._support import want_simulated
from loopcheck.engines.own_drives import APPLIED, REACTION, REPORTED, Gains, Order, Reading, driven_by_own_drives
from loopcheck.engines.projection import loop_motions
from loopcheck.engines.simulation import Readings
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.efforts import Deviation, EffortHistory
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

BANDWIDTHS: Mapping[str, float] = {
    "kamino": 0.5 / STEP,
    "mujoco": 0.2 / STEP,
    "mujoco_warp": 0.2 / STEP,
    "steel": 0.5 / STEP,
}
"""Bandwidths of the drives for each solver, critically damped [rad/s]: stiffer drives open the loops of MuJoCo."""
EXPLICIT_SPRINGS = frozenset({"mujoco", "mujoco_warp"})
"""Solvers with drive stiffness at the beginning of a step and drive damping at its end."""


def drive_gains(mechanism: Mechanism, motion: Motion, bandwidth: float) -> Gains:
    """Gains of drives that each hold their moving mass, in the middle of a motion.

    Args:
        bandwidth: Of the drives [rad/s].

    Raises:
        NotRepresentableError: If the drives are redundant, so that together they would contradict each other.
    """
    terms, k = equations(mechanism), len(motion.t) // 2
    loop = loop_motions(terms.resolved_jacobian(motion.q[k]), mechanism.rates_of(mechanism.drives))
    if len(loop.W) < len(mechanism.drives):
        raise NotRepresentableError(
            f"newton: number of drives must not exceed the {len(loop.W)} degrees of freedom they move, got "
            f"{len(mechanism.drives)}: redundant drives would act against each other"
        )
    M = terms.tree_terms(motion.q[k], motion.qd[k])[0]
    inertia = np.diag(loop.D.T @ M @ loop.D)
    return Gains(stiffness=bandwidth**2 * inertia, damping=2 * bandwidth * inertia)


@dataclass(slots=True, kw_only=True)
class NewtonDriven:
    """See `loopcheck.engines.own_drives.Driven`."""

    gains: Gains
    """Of the drives."""
    tree: Tree
    """The robot without drives; its joints are the coordinates of states."""
    stepping: Stepping
    solver: Any
    control: Any
    states: list[Any]
    """Before and after a step."""
    dofs: tuple[int, ...]
    """Indices of the drives among the dofs of the simulated model."""
    places: tuple[int, ...]
    """Indices of the drives among its positions."""
    observables: Any
    """Report of the solver on a step; None without a report."""
    q: Array
    """Joint positions now [m or rad], shape (nq,)."""
    steps: int = 0
    """Number of its iterations [-]."""
    unsolved: int = 0
    """Number of steps in which the solver did not converge [-]."""
    precision: type[np.floating] = np.float32

    @classmethod
    def from_state(cls, mechanism: Mechanism, gains: Gains, stepping: Stepping, state: tuple[Array, Array]) -> Self:
        """The robot in a state.

        Args:
            gains: Of its drives.
            stepping: The solver, and how it steps.
            state: Joint positions [m or rad], shape (nq,), and velocities [m/s or rad/s], shape (nv,).

        Raises:
            NotRepresentableError: If the mechanism has an element that the solver cannot represent.
        """
        want_simulated(mechanism, stepping.solver)
        tree = build(mechanism)
        tree.put(*state)
        is_maximal = stepping.solver in MAXIMAL
        simulated = build(mechanism, gains, floats=is_maximal, stands=tree)
        start = simulated.model.state()
        _copy_state(tree, start, has_joints=not is_maximal)
        made = stepping.made(simulated.model)
        kinds = {"qfrc_actuator", "body_parent_f"} & made.supported_observables
        return cls(
            gains=gains,
            tree=tree,
            stepping=stepping,
            solver=made,
            control=simulated.model.control(),
            states=[start, simulated.model.state()],
            dofs=_of_drives(mechanism, simulated.model.joint_qd_start.numpy()),
            places=_of_drives(mechanism, simulated.model.joint_q_start.numpy()),
            observables=made.observables(kinds) if kinds else None,
            q=state[0],
        )

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.simulation.Observed.mechanism`."""
        return self.tree.mechanism

    @property
    def timestep(self) -> float:
        """See `loopcheck.engines.simulation.Observed.timestep`."""
        return self.stepping.step

    @property
    def timeconst(self) -> float:
        """See `loopcheck.engines.own_drives.Driven.timeconst`; Kamino corrects a part of the opening in a step."""
        is_told = self.stepping.solver == "kamino"
        return self.timestep / float(self.solver._config.constraints.alpha) if is_told else np.inf

    @property
    def note(self) -> str:
        """See `loopcheck.engines.own_drives.Driven.note`: the steps in which its solver stopped before convergence."""
        if not self.unsolved:
            return ""
        most = self.stepping.most_iterations
        return f"the solver stopped at its limit of {most} iterations in {self.unsolved} of {self.steps} steps"

    @property
    def iterations(self) -> float:
        """See `loopcheck.engines.own_drives.Driven.iterations`."""
        return self.stepping.iterations_of(self.solver)

    def state(self) -> tuple[Array, Array]:
        """See `loopcheck.engines.simulation.Robots.state`."""
        tree, state = self.tree, self.states[0]
        if self.stepping.solver not in MAXIMAL:
            return tree.joint_state(state)
        newton.eval_ik(tree.model, state, tree.state.joint_q, tree.state.joint_qd)
        q, qd = tree.joint_state(tree.state)
        if np.isfinite(q).all():
            hinges = [j for j, joint in enumerate(self.mechanism.joints) if joint.kind == "hinge"]
            places = [self.mechanism.q_slices[j].start for j in hinges]
            q[places] += 2 * np.pi * np.round((self.q - q)[places] / (2 * np.pi))
        self.q = q
        return q, qd

    def opening(self) -> Deviation:
        """See `loopcheck.engines.simulation.Observed.opening`."""
        return opening(self.mechanism, poses_of(self.states[0]))

    def step(self, command: Order, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        target, rate = command
        for values, places, orders in (
            (self.control.joint_target_q, self.places, target - self.drive_matrices[0] @ self.mechanism.rest_position),
            (self.control.joint_target_qd, self.dofs, rate),
        ):
            array = values.numpy()
            array[list(places)] = orders
            values.assign(array)
        for _ in range(count):
            before, positions = self.states[0], self._along_drives()[0]
            self.advance()
            self.steps += 1
            self.unsolved += self.stepping.solver == "kamino" and not is_solved(self.solver)
        rates = self._along_drives()[1]
        reached = positions if self.stepping.solver in EXPLICIT_SPRINGS else positions + self.timestep * rates
        return {APPLIED: self.gains.force(target, rate, reached, rates), **self._readings(before)}

    def advance(self) -> None:
        """Advance by a step, with targets of the drives."""
        before, after = self.states
        before.clear_forces()
        load(self.tree, before)
        observed = {} if self.observables is None else {"observables": self.observables}
        self.solver.step(before, after, self.control, None, self.timestep, **observed)
        self.states.reverse()

    def _along_drives(self) -> tuple[Array, Array]:
        """Positions [m or rad] and velocities [m/s or rad/s] of the drives, each of shape (drives,)."""
        A, W = self.drive_matrices
        q, qd = self.state()
        return A @ q, W @ qd

    @property
    def drive_matrices(self) -> tuple[Array, Array]:
        """Maps from positions and velocities of the joints to those of the drives."""
        return drive_matrices(self.mechanism, range(len(self.mechanism.drives)))

    def _readings(self, before: Any) -> Mapping[str, Array]:
        """The solver's report on the last step along each drive [N or N m], of shape (drives,)."""
        if self.stepping.solver == "kamino":
            return {REPORTED: multipliers(self.solver, self.mechanism)}
        motions = newton.eval_jacobian(self.tree.model, before)
        readings = {REACTION: self._reactions(numbers(motions)[0], numbers(self.observables.body_parent_f))}
        if self.stepping.solver != "steel":
            readings[REPORTED] = numbers(self.observables.qfrc_actuator)[list(self.dofs)]
        return readings

    def _reactions(self, motions: Array, wrenches_at_joints: Array) -> Array:
        """Along each drive, by how its unit rate moves its body: force at the mass centre, and moment."""
        mechanism = self.mechanism
        bodies = [mechanism.joints[drive.joints[0]].body for drive in mechanism.drives]
        return np.array(
            [motions[6 * b : 6 * b + 6, dof] @ wrenches_at_joints[b] for b, dof in zip(bodies, self.dofs, strict=True)]
        )


def multipliers(solver: Any, mechanism: Mechanism) -> Array:
    """Kamino's multipliers of the drives in a step, less the torques of rotors and dampers of their joints.

    Newton exposes them only by private parts of Kamino.

    Args:
        solver: Newton's `SolverKamino`.

    Returns:
        Forces along the drives [N or N m], shape (drives,); NaN of a joint with several axes.
    """
    kamino = solver._solver_kamino
    values, starts = numbers(kamino._data.joints.lambda_dyn_j), kamino._model.joints.dynamic_cts_offset.numpy()
    forces = []
    for drive in mechanism.drives:
        joint = drive.joints[0]
        forces.append(values[starts[mechanism.joints[joint].body]] if is_alone(mechanism, joint) else np.nan)
    return np.array(forces)


def is_solved(solver: Any) -> bool:
    """Whether Kamino's solver converged in the last step, instead of stopping at its iterations.

    Args:
        solver: Newton's `SolverKamino`.
    """
    return bool(solver._solver_kamino.solver_status.numpy()["converged"].all())


def is_alone(mechanism: Mechanism, joint: int) -> bool:
    """Whether a joint is the only joint of its body.

    Args:
        joint: Its number.
    """
    return len(mechanism.joints_of[mechanism.joints[joint].body]) == 1


def load(tree: Tree, state: Any) -> None:
    """Let external wrenches and gravity compensation act on the bodies in the next step.

    Args:
        state: Newton's `State`.
    """
    if not list(wrenches(tree.mechanism)):
        return
    centers = numbers(tree.model.body_com)
    R = poses_of(state)[1].reshape(-1, len(tree.mechanism.bodies), 3, 3)
    force, moment = at_centers(tree.mechanism, lambda body, point: R[:, body] @ (point - centers[body]))
    both = np.concatenate([np.broadcast_to(force, moment.shape), moment], axis=-1)
    state.body_f.assign(both.reshape(-1, 6))


def _copy_state(tree: Tree, start: Any, *, has_joints: bool) -> None:
    start.body_q.assign(tree.state.body_q)
    start.body_qd.assign(tree.state.body_qd)
    if has_joints:
        start.joint_q.assign(tree.state.joint_q)
        start.joint_qd.assign(tree.state.joint_qd)


def _of_drives(mechanism: Mechanism, starts: AnyArray) -> tuple[int, ...]:
    """Places of the drives among dofs or positions of a model with joints in the order of the bodies.

    Args:
        starts: First entry of each joint of the model [-], shape (joints + 1,).
    """
    places = []
    for drive in mechanism.drives:
        body = mechanism.joints[drive.joints[0]].body
        places.append(int(starts[body]) + mechanism.joints_of[body].index(drive.joints[0]))
    return tuple(places)


READINGS: Mapping[str, Reading] = {
    APPLIED: Reading(
        effort=APPLIED,
        reason="Newton's solvers report no effort; the drive law at the end-of-step velocity is the applied effort",
    ),
    REPORTED: Reading(
        effort=REPORTED,
        reason="multiplier of Kamino for the drive; the drive law differs from it by stiffness times joint gap",
    ),
}


def reading_of(mechanism: Mechanism, solver: str) -> Reading:
    """The reading that is the effort."""
    driven_alone = all(is_alone(mechanism, drive.joints[0]) for drive in mechanism.drives)
    return READINGS[REPORTED if solver == "kamino" and driven_alone else APPLIED]


def held_by_drives(source: str, case: Case, motion: Motion, stepping: Stepping) -> EffortHistory:
    """Result of a route.

    Args:
        stepping: The solver, and its step.

    Raises:
        NotRepresentableError: If the mechanism has an element that the solver cannot represent.
        EngineError: If Newton fails, or its state is not finite any more.
    """
    mechanism = case.mechanism
    want_simulated(mechanism, stepping.solver)

    with guarded(source), silenced():
        gains = drive_gains(mechanism, motion, BANDWIDTHS[stepping.solver])

    def start(k: int) -> tuple[NewtonDriven, Gains]:
        return NewtonDriven.from_state(mechanism, gains, stepping, (motion.q[k], motion.qd[k])), gains

    settings = {
        "solver": stepping.description,
        "precision": f"single, on {device()} (the only precision of Newton)",
        "loops": CLOSURES,
        **companions(stepping.solver),
    }
    with guarded(source), silenced():
        reading = reading_of(mechanism, stepping.solver)
        return driven_by_own_drives(source, case, motion, start, reading, settings)


CLOSURES = "joints outside the articulation: ball for connect, fixed for weld"
