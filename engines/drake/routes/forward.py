"""Drake's discrete plant and its solver SAP, stepped at several step sizes and extrapolated to step zero.

Loops are Drake's constraints, drives are actuators that hold a velocity. Both are as hard as SAP permits. A simulation
forgets half of its start in each step, however short, so it starts some steps before the span. If the finest step still
changes the extrapolated efforts, finer steps are added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Self

import numpy as np

from loopcheck.engines.drake._equations import DrakeEquations, equations, opening
from loopcheck.engines.drake._plant import STRONGEST, Plant, build, guarded, trees
from loopcheck.engines.drake.simulation import apply_loads
from loopcheck.engines.drake.wrenches import wrenches
from loopcheck.engines.equations import held_drives
from loopcheck.engines.forward import Readings, Steps, over_time, steps_to_targets
from loopcheck.engines.projection import loop_motions
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, ReadsWrenches, Refinable, Rung
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

GAIN = 1e9
"""Of the velocity that actuators hold [N s/m or N m s/rad]; SAP makes them no stiffer than its constraints."""
FARTHEST = 0.08
"""Longest time before the span [s]."""
LEAD_UNACTUATED = 12
"""Steps before the span of robots with unactuated motions, which leave the state that leads to the start [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Steps):
    """Settings of the simulations.

    Steps are no finer than needed: SAP stops at a residual of a millionth of the momentum, which is more beside
    the effort of a shorter step.
    """

    parts: tuple[int, ...] = (1, 2, 4, 8)
    """Steps per sample of the motion, fewest first; if samples are more than `LONGEST` apart, per part of that time."""
    more: int = 3
    """Most simulations that are added, each with steps twice as fine as the last."""
    kept: int = 4
    """Number of the finest simulations that are extrapolated; 0 for all."""
    lead: int = 30
    """Steps before the span, if they take no longer than `FARTHEST`: half of how it starts is forgotten in each."""


OWN = Settings(settled=2e-6)
"""Settings of the route."""


class DrakeForward(Refinable, ReadsWrenches):
    """Efforts read from Drake's actuators while its own solver keeps the loops closed."""

    name = "drake/forward"

    def __init__(self, settings: Settings = OWN) -> None:
        """With the settings of the route, or with others."""
        self.settings = settings

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism, settings = case.mechanism, self.settings
        with guarded(self.name):
            drives, undriven = held_drives(equations(mechanism), motion)
        lead = min(settings.lead, LEAD_UNACTUATED) if undriven else settings.lead
        rung = partial(_simulated, mechanism, motion, drives, replace(settings, lead=lead))
        words = _in_words(settings, lead, undriven=undriven > 0)
        return settings.history(self.name, case, motion, (drives, undriven), rung, words)

    def with_wrenches(self) -> Self:
        """See `loopcheck.robots.efforts.ReadsWrenches.with_wrenches`."""
        return type(self)(replace(self.settings, wrenches=True))

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`; the tolerance of SAP cannot be set from Python."""
        return type(self)(self.settings)

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; its own steps, and a finer step."""
        return type(self)(replace(self.settings, beyond=self.settings.beyond + 1))


def _simulated(mechanism: Mechanism, motion: Motion, drives: tuple[int, ...], settings: Settings, dt: float) -> Rung:
    """A simulation with a step [s], a divisor of the step of the motion.

    Drake moves positions with the velocities at the end of a step, so that its velocities at some time are those
    of half a step earlier.
    """
    clock, lead = perf_counter(), min(settings.lead, int(FARTHEST / dt))
    begin = motion.t[0] - lead * dt
    traced = motion.assemble(np.array([begin - dt / 2, begin, motion.t[0] - dt / 2, motion.t[0]]))
    driven = tuple(mechanism.drives[k].joints[0] for k in drives)
    with guarded(f"drake: steps of {dt:g} s"):
        drake = build(mechanism, step=dt, gains=dict.fromkeys(driven, GAIN))
        start = _unactuated_start(drake, traced.q[3], traced.qd[2])
        drake.put(traced.q[1], traced.qd[0])
        positions, efforts, drift, read = _march(drake, motion, drives, start, (dt, lead), settings.wrenches)
    rest = np.array([mechanism.joints[j].rest_position[0] for j in driven])
    readings = Readings(
        dt=dt,
        drives=drives,
        forces=efforts,
        tracked=[mechanism.drives[k] for k in drives],
        miss=positions + rest - motion.law(motion.t).q[:, drives],
        drift=drift,
        wrenches=over_time(read),
    )
    return readings.rung(mechanism, "drake", clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Start of the span."""

    positions: Array
    """Positions of the plant [m or rad], shape (positions,)."""
    velocities: Array
    """Velocities of the plant, half a step earlier [m/s or rad/s], shape (velocities,)."""
    projector: Array
    """Part of velocities along unactuated motions [-], shape (velocities, velocities)."""


def _unactuated_start(drake: Plant, q: Array, qd: Array) -> _Start:
    """The state at the start of the span, and the directions of the robot's unactuated motions there."""
    motions = loop_motions(
        DrakeEquations(drake).resolved_jacobian(q), drake.mechanism.rates_of(drake.mechanism.drives)
    ).Z
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


def _march(
    drake: Plant, motion: Motion, drives: tuple[int, ...], start: _Start, steps: tuple[float, int], reads: bool
) -> tuple[Array, Array, Deviation, list[Mapping[str, Array]]]:
    """Positions of the driven joints, as Drake counts them, their efforts, each at the samples, drift and wrenches."""
    plant, context = drake.plant, drake.context
    driven = tuple(drake.mechanism.drives[k].joints[0] for k in drives)
    instance = trees.default_model_instance()
    desired, acting = plant.get_desired_state_input_port(instance), plant.get_net_actuation_output_port()
    apply_loads(drake)
    places = [int(drake.joints[j].position_start()) for j in driven]
    inputs = [int(drake.actuators[j].input_start()) for j in driven]
    rest = np.array([drake.mechanism.joints[j].rest_position[0] for j in driven])
    count, (dt, lead) = plant.num_actuators(), steps
    after, command = plant.AllocateDiscreteVariables(), np.zeros(2 * count)
    positions, efforts, drift, read = [], [], Deviation(), []
    for k, reported, target in steps_to_targets(motion, dt, lead, drives):
        if k == 0 and start.projector.any():
            _put_unactuated(drake, start)
        x = plant.GetPositions(context)[places]
        command[[count + i for i in inputs]] = (target - rest - x) / dt
        desired.FixValue(context, command)
        if reported:
            drift = drift.or_worse(opening(drake, context))
            positions.append(x)
            efforts.append(acting.Eval(context)[inputs])
            if reads:
                read.append(wrenches(drake))
        plant.CalcForcedDiscreteVariableUpdate(context, after)
        context.SetDiscreteState(after)
    return np.array(positions), np.array(efforts), drift, read


def _in_words(settings: Settings, lead: int, *, undriven: bool) -> dict[str, str]:
    """Every relevant setting, as text."""
    return {
        "pre-roll": f"{lead} steps before the span, "
        f"{FARTHEST:g} s at most, with initial velocities of half a step earlier"
        + ("; then the state of unactuated motions at the start" if undriven else ""),
        "loops": "AddBallConstraint, AddWeldConstraint and AddCouplerConstraint",
        "solver": "discrete plant with SAP; its tolerance cannot be set",
        "drives": f"actuators with controller gains p 1e-9 and d {GAIN:g}, desired velocity (x(t+dt) - x)/dt, "
        f"effort at most {STRONGEST:g}; read by the net actuation port",
        "loads": "springs as force elements, external wrenches and gravity compensation as applied spatial forces",
    }
