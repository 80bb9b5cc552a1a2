"""The user's own file in `mj_step`: its actuators, options and softness, driven along a motion and written down."""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.as_is import Record, Runs, finite, held_by_others, history, runs_at
from loopcheck.engines.computed_torque import (
    Friction,
    bandwidth,
    computed_torque,
    drive_matrices,
    interpolated,
    targets,
)
from loopcheck.engines.equations import Demands, demands_along
from loopcheck.engines.mujoco.acted_effort import IMPLICIT, RUNGE_KUTTA, acted_effort, integration_state
from loopcheck.engines.mujoco.actuators import Actuators, actuators
from loopcheck.engines.mujoco.equations import MujocoEquations
from loopcheck.engines.mujoco.model import (
    DISCRETE,
    apply_wrenches,
    constraint_jacobian,
    guarded,
    inertia_matrix,
    transmission,
    widest_of,
)
from loopcheck.engines.mujoco.stepper import Stepper
from loopcheck.engines.mujoco.tendons import state_of, with_lengths
from loopcheck.engines.mujoco.wrenches import merged, wrenches
from loopcheck.engines.projection import Pose, balancing_efforts
from loopcheck.robots.arrays import AnyArray, Array, EffortSeries
from loopcheck.robots.connections import connections
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import EngineError
from loopcheck.robots.formats.mjcf import compile_model
from loopcheck.robots.log import UNMODELLED
from loopcheck.robots.mechanism import DOFS, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

AT_ONCE = 500
"""Number of steps for which the ignored forces are computed at once [-]."""


FRICTION_OF_DOF, FRICTION_OF_TENDON = (
    int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF),
    int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Demands of driving a robot, independent of the step and the softness of its simulation."""

    mechanism: Mechanism
    motion: Motion
    known: Demands
    """Drives that feedback holds, and requirements of the motion at its samples, by MuJoCo's matrices."""


def compiled(mechanism: Mechanism) -> Any:
    """The user's unmodified model, in the gravity of the case."""
    model = copy.copy(_compiled(pickle.dumps(mechanism.model.as_written)))
    model.opt.gravity[:] = mechanism.gravity
    return model


@lru_cache(maxsize=1)
def _compiled(model: bytes) -> Any:
    """A model, compiled once for all its runs, because meshes take as long as a run.

    Args:
        model: Pickle of the `ModelFile`, with the hashes of all its files.
    """
    return compile_model(pickle.loads(model))


def stages(model: Any) -> int:
    """Number of evaluations of the dynamics in a step of a model [-]."""
    return 4 if model.opt.integrator == RUNGE_KUTTA else 1


def timeconst(model: Any) -> float:
    """Smallest time constant of the loops of a model, by MuJoCo's rules [s]; infinite without loops."""
    timeconsts = [np.inf]
    safe = not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_REFSAFE
    for k in np.flatnonzero(model.eq_active0):
        time, other = model.eq_solref[k]
        if time > 0:
            timeconsts.append(max(time, 2 * model.opt.timestep) if safe else time)
        elif other < 0:
            timeconsts.append(-2 / other)
    return float(min(timeconsts))


def own_bandwidth(model: Any) -> float:
    """Bandwidth of the controller for the step and the loops of a model [rad/s]."""
    return bandwidth(model.opt.timestep, timeconst(model))


def plan(mechanism: Mechanism, motion: Motion) -> Plan:
    """Demands of driving a robot along a motion, by MuJoCo's matrices at its exact states."""
    return Plan(
        mechanism=mechanism,
        motion=replace(motion, law=interpolated(motion)),  # asked for in every run
        known=demands_along(MujocoEquations(mechanism), (motion.q, motion.qd, motion.qdd), _friction(mechanism)),
    )


def _friction(mechanism: Mechanism) -> Friction:
    """Dry friction of the joints and fixed tendons of the file."""
    sizes = _friction_sizes(mechanism)
    W = np.concatenate([np.eye(mechanism.nv), mechanism.rates_of([tendon.length for tendon in mechanism.tendons])])
    return Friction(W[sizes > 0], sizes[sizes > 0])


def _friction_sizes(mechanism: Mechanism) -> Array:
    """Dry friction of each dof, then of each fixed tendon [N or N m], (nv + tendons,)."""
    of_dofs = [np.full(DOFS[joint.kind], joint.friction) for joint in mechanism.joints]
    return np.concatenate([np.zeros(0), *of_dofs, [tendon.friction for tendon in mechanism.tendons]])


def _acting_friction(mechanism: Mechanism, model: Any, motion: Motion, t: Array) -> Array:
    """Part of each dry friction of `_friction` in the prescribed states, by MuJoCo's own law [-], (nt, frictions).

    Its friction is soft: at small velocities it acts in part, in the direction of the prescribed velocity.
    """
    from scipy.interpolate import make_interp_spline

    states = (motion.q, motion.qd, motion.qdd)
    q, qd, qdd = (make_interp_spline(motion.t, values, k=min(3, len(motion.t) - 1))(t) for values in states)
    sizes, tendons = _friction_sizes(mechanism), [model.tendon(tendon.name).id for tendon in mechanism.tendons]
    nv = mechanism.nv
    data, part = mujoco.MjData(model), np.zeros((len(t), nv + model.ntendon))
    for k in range(len(t)):
        data.qpos[:] = q[k, : model.nq]  # lengths of tendons follow
        data.qvel[:], data.qacc[:] = qd[k, : model.nv], qdd[k, : model.nv]
        mujoco.mj_inverse(model, data)
        for kind, first in ((FRICTION_OF_DOF, 0), (FRICTION_OF_TENDON, nv)):
            rows = np.flatnonzero(data.efc_type == kind)
            part[k, first + data.efc_id[rows]] = -data.efc_force[rows]
    part = part[:, [*range(nv), *(nv + tendon for tendon in tendons)]]
    return part[:, sizes > 0] / sizes[sizes > 0]


def simulate(
    plan: Plan,
    stepper: Stepper,
    bandwidth: float,
    *,
    start: int | Array = 0,
    torque: bool = False,
    reads_joints: bool = True,
) -> Record:
    """Step a model along a motion to its end.

    Args:
        plan: The robot, its motion, and the demands of the motion.
        stepper: MuJoCo's model of it with the settings of the run, and its stepping function.
        bandwidth: Of the controller [rad/s].
        start: Number of the sample of the motion at whose exact state the run starts, or joint positions at which it
            starts at rest [m or rad], shape (nq,).
        torque: Let servos act with the controller's efforts too, instead of holding the motion by themselves.
        reads_joints: Whether to read the joints' own reports too, which takes as long as the step; and the wrenches of
            the connections, if the stepper wants them.

    Raises:
        NotRepresentableError: If an actuator is no motor or servo.
        EngineError: If MuJoCo warns or the state is not finite any more.
    """
    with guarded(stepper.source):
        stepper.reads_joints = reads_joints
        run = _Run(plan, stepper, bandwidth, start, torque)
        for k in range(run.count):
            run.step(k)
        return run.record()


def driven(stepper: Stepper, case: Case, motion: Motion, settings: Mapping[str, str]) -> EffortHistory:
    """Result of a route for the user's file, driven along a motion by its own actuators.

    Args:
        stepper: The model and its stepping function.
        settings: Every relevant setting beside those of the file.

    Raises:
        NotRepresentableError: If an actuator is no motor or servo, or the motion lasts too few steps.
        EngineError: If the engine fails, or its state is not finite any more.
    """
    model = stepper.model
    servo, driving = actuators(model).servo, plan(case.mechanism, motion)
    with finite(stepper.source):
        run, middle = partial(_from_sample, driving, stepper), len(motion.t) // 2
        again, width = partial(run, reads_joints=False), own_bandwidth(model)
        # servos hold their drives themselves, whatever the bandwidth
        runs = Runs(np.nan, run(width, 0), run(width, middle)) if servo.all() else runs_at(run, width, middle, again)
        others = []
        if not servo.any():  # a servo holds its own drive
            others = held_by_others(
                lambda held: simulate(replace(driving, known=held), stepper, runs.bandwidth, reads_joints=False),
                driving.known,
            )
        return history(
            stepper.source,
            case,
            motion,
            runs,
            {
                "integrator": mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_"),
                "solver and loops": "of the file (solref, solimp, iterations, tolerance)",
                "contacts, limits, dry friction": "as in the file",
                "actuators": _in_words(servo.sum(), (~servo).sum()),
                "effort": "effort applied over each step, computed by the rule of the integrator",
                **settings,
            },
            others,
        )


def _from_sample(plan: Plan, stepper: Stepper, bandwidth: float, sample: int, *, reads_joints: bool = True) -> Record:
    return simulate(plan, stepper, bandwidth, start=sample, reads_joints=reads_joints)


def _in_words(servos: int, motors: int) -> str:
    by_servo = f"{servos} servos of the file with the motion as target"
    by_motor = f"{motors} motors of the file with computed torque, constant over a step"
    return "; ".join(text for text, number in ((by_servo, servos), (by_motor, motors)) if number)


class _Run:
    """A simulation in progress, and its record."""

    def __init__(self, plan: Plan, stepper: Stepper, bandwidth: float, start: int | Array, torque: bool) -> None:
        model, sample = stepper.model, start if isinstance(start, int) else 0
        self.stepper, self.model, self.mechanism, self.independent = (
            stepper,
            model,
            plan.mechanism,
            plan.known.independent,
        )
        self.data = stepper.data
        motion, h = plan.motion, float(model.opt.timestep)
        self.begin = float(motion.t[sample])
        self.count = int(np.floor((motion.t[-1] - self.begin) / h + 1e-9)) + 1
        self.actuators = actuators(model)
        self.torque = torque | ~self.actuators.servo
        self.A, self.W = drive_matrices(plan.mechanism, plan.known.independent)
        self.controller = computed_torque(
            motion,
            plan.known.demands,
            plan.known.independent,
            (self.begin, h, self.count),
            bandwidth,
            partial(_acting_friction, plan.mechanism, model, motion) if _friction_sizes(plan.mechanism).any() else None,
        )
        self.lengths, self.rates = drive_matrices(plan.mechanism, range(len(plan.mechanism.drives)))
        self.lengths, self.rates = (plan.mechanism.gearing @ matrix for matrix in (self.lengths, self.rates))
        target = targets(motion, self.controller.t)
        length, velocity = (values @ plan.mechanism.gearing.T for values in (target.q, target.qd))
        self.servo_inputs = self.actuators.input_of_servo(length, velocity)
        self.servo_rates = -self.actuators.bias[:, 1] * velocity / self.actuators.gain[:, 0]
        self.dofs = _dofs_of_actuators(model)
        q, qd, act = motion.q[sample], motion.qd[sample], np.zeros(model.na)
        has_activation = self.actuators.activation >= 0
        act[self.actuators.activation[has_activation]] = self._inputs(0, q, qd)[1][has_activation]
        if not isinstance(start, int):
            q, qd = start, 0 * qd
        stepper.put(q, qd, act=act)
        na, count = plan.mechanism.na, self.count
        self.q, self.qd = np.zeros((count + 1, plan.mechanism.nq)), np.zeros((count + 1, plan.mechanism.nv))
        self.act = np.zeros((count + 1, model.na))
        self.force_varies = model.opt.integrator == RUNGE_KUTTA and not self.torque.all()
        self.scratch = mujoco.MjData(model) if self.force_varies else None
        names = ("force", "acted", "wanted", "ctrl", "left_out")
        self.log = {name: np.zeros((count, na)) for name in names}
        self.log |= {name: np.full((count, na), np.nan) for name in ("joint", "reaction")}
        self.gaps: dict[bytes, list[Array]] = {}  # by the equalities of their rows
        self.left_out: dict[int, Pose] = {}  # by step
        self.iterations = 0
        self.reads_wrenches = stepper.reads_wrenches and stepper.reads_joints and not sample  # a restart needs none
        self.read: list[Array] = []

    def step(self, k: int) -> None:
        """Control, step, and record the acting efforts."""
        model, data, log = self.model, self.data, self.log
        (self.q[k], self.qd[k]), self.act[k] = state_of(self.mechanism, model, data), data.act
        log["wanted"][k], inputs, rates = self._inputs(k, self.q[k], self.qd[k])
        data.ctrl[:] = log["ctrl"][k] = self.actuators.control_for(inputs, rates)
        apply_wrenches(self.mechanism, model, data)
        if self.force_varies:
            log["acted"][k] = acted_effort(model, integration_state(model, data), scratch=self.scratch).effort
        for name, forces in self.stepper.step(log["ctrl"][k]).items():
            log[name][k] = np.where(self.dofs >= 0, forces[self.dofs], np.nan)
        if self.reads_wrenches:
            self.read.append(merged(wrenches(self.mechanism, model, self.stepper.before)))
        self.iterations += max(
            int(data.solver_niter[: max(data.nisland, 1)].max()), 1
        )  # nothing to solve is a step too
        log["force"][k] = data.actuator_force
        if data.nefc > data.ne:
            self._leave_out(k)
        if not np.isfinite(data.qvel).all():
            raise EngineError(
                f"{self.stepper.source}: the simulation diverged: its state is not finite at {data.time:g} s"
            )
        self.gaps.setdefault(data.efc_id[: data.ne].tobytes(), []).append(data.efc_pos[: data.ne].copy())

    def _inputs(self, k: int, q: Array, qd: Array) -> tuple[Array, Array, Array]:
        """Desired efforts of a step [N or N m], the corresponding inputs, and their rates, shape (na,) each."""
        efforts = self.controller.efforts(k, self.A @ q, self.W @ qd)
        by_torque = self.actuators.input_for(efforts, self.lengths @ q, self.rates @ qd)
        inputs = np.where(self.torque, by_torque, self.servo_inputs[k])
        return efforts, inputs, np.where(self.torque, 0.0, self.servo_rates[k])

    def _leave_out(self, k: int) -> None:
        """Note the effects of contacts, limits and dry friction in a step."""
        model, data = self.model, self.data
        force = data.efc_force[data.ne : data.nefc]  # the rows of equalities come first
        if not force.any():
            return
        J, M = constraint_jacobian(model, data), inertia_matrix(model, data)
        more = (0, self.mechanism.nv - model.nv)
        pose = Pose(
            with_lengths(self.mechanism, model, data, J[: data.ne]),
            np.pad(M, more),
            np.pad(J[data.ne :].T @ force, more),
            np.pad(transmission(model, data), ((0, 0), more)),
        )
        if len(self.left_out) == AT_ONCE or (
            self.left_out and len(next(iter(self.left_out.values())).J) != len(pose.J)
        ):
            self._write_left_out()
        self.left_out[k] = pose

    def _write_left_out(self) -> None:
        """Record efforts equivalent to contacts, limits and dry friction."""
        if self.left_out:
            efforts = balancing_efforts(list(self.left_out.values()), self.W, self.mechanism.effort_scales)
            self.log["left_out"][list(self.left_out)] = efforts
            self.left_out.clear()

    def record(self) -> Record:
        """The record."""
        self._write_left_out()
        log = self.log
        self.q[-1], self.qd[-1] = state_of(self.mechanism, self.model, self.data)
        self.act[-1] = self.data.act
        inputs = self.actuators.inputs(log["ctrl"], self.act[:-1])
        velocity = self.qd @ self.rates.T
        torque = np.broadcast_to(self.torque, log["force"].shape)
        readings = {
            "commanded": np.where(torque, log["wanted"], np.nan),
            "reported": log["force"],
            "joint": log["joint"],
            "reaction": log["reaction"],
        }
        if log["left_out"].any():
            readings[UNMODELLED] = log["left_out"]
        names = [connection.name for connection in connections(self.mechanism)]
        return Record(
            wrenches=dict(zip(names, np.array(self.read).swapaxes(0, 1), strict=True)) if self.read else {},
            q=self.q[:-1],
            qd=self.qd[:-1],
            acted=log["acted"]
            if self.force_varies
            else acted(self.stepper, self.actuators, (log["force"], inputs), velocity),
            readings=readings,
            at_limits=self.actuators.at_limits(log["ctrl"], log["force"]),
            drift=widest_of(self.model, self.gaps),
            iterations=stages(self.model) * self.iterations / self.count,
            timeconst=timeconst(self.model),
            independent=self.independent,
            controller=self.controller,
            holds_itself=not self.torque.all(),
            positions=self.q[:-1] @ self.A.T,
        )


def acted(stepper: Stepper, known: Actuators, read: tuple[Array, Array], velocity: Array) -> EffortSeries:
    """Efforts of affine actuators that acted over each step, as `acted_effort` finds them by a second step.

    Under Runge-Kutta 4 only for forces that are constant over a step.

    Args:
        read: Forces at the beginning of each step [N or N m], and inputs of the actuators, each of shape (nt, na).
        velocity: Of the actuators [m/s or rad/s], at the steps and after the last, shape (nt + 1, na).
    """
    force, inputs = read
    force = np.clip(force, *known.force_range.T)
    change, integrator = np.diff(velocity, axis=0), stepper.model.opt.integrator
    ahead = np.zeros_like(change)
    if integrator == DISCRETE:  # lengths too are those of the end of the step, by its velocity
        ahead = stepper.timestep * velocity[1:]
    elif integrator not in IMPLICIT:
        return force
    return force + known.change(force, inputs, (ahead, change), clips=stepper.clips_change)


def _dofs_of_actuators(model: Any) -> AnyArray:
    """The dof of each actuator, -1 for an actuator on a tendon [-], shape (na,)."""
    on_joint = model.actuator_trntype != int(mujoco.mjtTrn.mjTRN_TENDON)
    dofs = model.jnt_dofadr[np.where(on_joint, model.actuator_trnid[:, 0], 0)]
    return np.where(on_joint, dofs, -1)
