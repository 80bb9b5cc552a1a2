"""Steps Drake's discrete plant through a motion with the loops closed by its constraints, and reads its actuators."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from loopcheck.engines.drake._equations import DrakeEquations, opening
from loopcheck.engines.drake._plant import Plant, build, guarded, plants, trees, values, wrench_math
from loopcheck.engines.forward import Readings
from loopcheck.engines.mechanics import wrenches
from loopcheck.engines.projection import loop_motions
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, Rung
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

GAIN = 1e9
"""Of the velocity that actuators hold [N s/m or N m s/rad]; SAP makes them no stiffer than its constraints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A simulation."""

    dt: float
    """Step, a divisor of the step of the motion [s]."""
    lead: int
    """Number of steps before the span."""
    drives: tuple[int, ...]
    """Places of the driven coordinates that are driven."""
    strongest: float
    """Largest effort of the actuators [N or N m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Start of the span."""

    positions: Array
    """Positions of the plant [m or rad], shape (positions,)."""
    velocities: Array
    """Velocities of the plant, half a step earlier [m/s or rad/s], shape (velocities,)."""
    projector: Array
    """Part of velocities along unactuated motions [-], shape (velocities, velocities)."""


def simulate(mechanism: Mechanism, motion: Motion, run: Run) -> Rung:
    """Simulate a motion at a step size.

    Drake moves positions with the velocities at the end of a step, so that its velocities at some time are those
    of half a step earlier.

    Args:
        run: Settings of the stepping.

    Raises:
        NotRepresentableError: If the mechanism has an element that Drake cannot represent.
        EngineError: If Drake fails, or its state is not finite.
    """
    clock = perf_counter()
    begin = motion.t[0] - run.lead * run.dt
    traced = motion.assemble(np.array([begin - run.dt / 2, begin, motion.t[0] - run.dt / 2, motion.t[0]]))
    driven = tuple(mechanism.drives[k].joints[0] for k in run.drives)
    with guarded(f"drake: steps of {run.dt:g} s"):
        gains = dict.fromkeys(driven, GAIN)
        drake = build(mechanism, step=run.dt, gains=gains, strongest=run.strongest)
        start = _unactuated_start(drake, traced.q[3], traced.qd[2], run)
        drake.put(traced.q[1], traced.qd[0])
        positions, efforts, drift = _march(drake, motion, run, start)
    rest = np.array([mechanism.joints[j].rest_position[0] for j in driven])
    readings = Readings(
        dt=run.dt,
        drives=run.drives,
        forces=efforts,
        tracked=[mechanism.drives[k] for k in run.drives],
        miss=positions + rest - motion.law(motion.t).q[:, run.drives],
        drift=drift,
    )
    return readings.rung(mechanism, "drake", clock)


def apply_loads(drake: Plant) -> None:
    """Let the loads of a mechanism act from now on: Drake keeps them along the world's axes at points of the bodies."""
    every = []
    for load in wrenches(drake.mechanism):
        force = plants.ExternallyAppliedSpatialForce()
        force.body_index = drake.bodies[load.body].index()
        force.p_BoBq_B = drake.point(load.body, load.point)
        force.F_Bq_W = wrench_math.SpatialForce(load.moment, load.force)
        every.append(force)
    port = drake.plant.get_applied_spatial_force_input_port()
    port.FixValue(drake.context, values.Value[list[plants.ExternallyAppliedSpatialForce]](every))


def _unactuated_start(drake: Plant, q: Array, qd: Array, run: Run) -> _Start:
    """The state at the start of the span, and the directions of the robot's unactuated motions there."""
    motions = loop_motions(DrakeEquations(drake).jacobian(q), drake.mechanism.rates_of(drake.mechanism.drives)).Z
    basis = np.linalg.qr(drake.rates(q) @ motions)[0]
    return _Start(positions=drake.positions(q), velocities=drake.rates(q) @ qd, projector=basis @ basis.T)


def _put_unactuated(drake: Plant, start: _Start) -> None:
    """Put unactuated motions to their state at the start of the span.

    The pre-roll does not lead them there. The others stay: the small openings of the loops carry their forces.
    """
    plant, context = drake.plant, drake.context
    x, v = plant.GetPositions(context), plant.GetVelocities(context)
    way = start.projector @ plant.MapQDotToVelocity(context, start.positions - x)
    plant.SetPositions(context, x + plant.MapVelocityToQDot(context, way))
    plant.SetVelocities(context, v + start.projector @ (start.velocities - v))


def _march(drake: Plant, motion: Motion, run: Run, start: _Start) -> tuple[Array, Array, Deviation]:
    """Positions of the driven joints, as Drake counts them, their efforts, each at the samples, and drift."""
    plant, context = drake.plant, drake.context
    driven = tuple(drake.mechanism.drives[k].joints[0] for k in run.drives)
    instance = trees.default_model_instance()
    desired, acting = plant.get_desired_state_input_port(instance), plant.get_net_actuation_output_port()
    apply_loads(drake)
    places = [int(drake.joints[j].position_start()) for j in driven]
    inputs = [int(drake.actuators[j].input_start()) for j in driven]
    rest = [drake.mechanism.joints[j].rest_position[0] for j in driven]
    count, per_sample = plant.num_actuators(), round(motion.dt / run.dt)
    steps = range(-run.lead, (len(motion.t) - 1) * per_sample + 1)
    targets = motion.law(motion.t[0] + run.dt * np.arange(steps.start, steps.stop + 1)).q[:, run.drives] - rest
    after, command = plant.AllocateDiscreteVariables(), np.zeros(2 * count)
    positions, efforts, drift = [], [], Deviation()
    for k, target in zip(steps, targets[1:], strict=True):
        if k == 0 and start.projector.any():
            _put_unactuated(drake, start)
        x = plant.GetPositions(context)[places]
        command[[count + i for i in inputs]] = (target - x) / run.dt
        desired.FixValue(context, command)
        if k >= 0 and k % per_sample == 0:
            drift = drift.or_worse(opening(drake, context))
            positions.append(x)
            efforts.append(acting.Eval(context)[inputs])
        plant.CalcForcedDiscreteVariableUpdate(context, after)
        context.SetDiscreteState(after)
    return np.array(positions), np.array(efforts), drift
