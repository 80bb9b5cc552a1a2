"""Simbody's own constrained dynamics, integrated with the drives prescribed; their multipliers are the efforts.

Loops and drives are constraints on accelerations, solved with their redundancy, and met by projection on the levels of
velocities and positions. A prescribed coordinate is a spline of degree seven through the law of the motion; its
multiplier, with the other sign, is the effort. Of a redundantly actuated robot only as many coordinates are driven as
move independently.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Self

import numpy as np

from loopcheck.engines.equations import carried_note, held_drives
from loopcheck.engines.forward import (
    Readings,
    enough_steps,
    forward_history,
    omission,
    over_time,
    own_steps,
    remainder,
    until,
)
from loopcheck.engines.mechanics import BALL_OR_FREE, rotation
from loopcheck.engines.simbody._equations import constraint_matrix, equations, opening
from loopcheck.engines.simbody._model import Model, added_inertia, build
from loopcheck.engines.simbody._opensim import angles, guarded, opensim
from loopcheck.engines.simbody.wrenches import wrenches
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, Limits, ReadsWrenches, Refinable, Rung, Stepped
from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

DEGREE = 7
PADDING, FARTHEST = 24, 0.08
"""Knots of a spline before and after the span, and the time that they may take [s]: its ends are forgotten there."""
LEAST_COSINE = 0.1
"""Of the second angle of a ball or free joint: Simbody's rates of the angles are singular at zero [-]."""
ANY_ERROR = 1.0
"""Accuracy with which no step of the prescribed length is rejected [-]."""
SHORTEST = 1 / 4
"""Least part of a step that the integrator may take [-]."""
FINEST = 2.5e-3
"""Upper bound of the finest step [s]; the ladder doubles it twice."""
FINEST_FREE = FINEST / 4
"""The same for robots with unactuated motions, which may vibrate on springs."""
RUNGS = 3
ORDER = 4
"""Of the Runge-Kutta-Merson method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulations; by default as `loopcheck study refinement` recommends for all robots."""

    steps: tuple[float, ...] = ()
    """Steps that divide the report grid, coarsest first [s]; empty: three steps, halved until `FINEST`."""
    division: int = 1
    """Divisor of `FINEST` [-]."""
    tolerance: float = 1e-11
    """Tolerance of the projection onto constraints on positions and velocities [m, rad, or per s]."""
    wrenches: bool = False
    """Whether forces in the joints are read."""


OWN = Settings()
"""Settings of the route."""


class SimbodyForward(Refinable, Stepped, ReadsWrenches):
    """Efforts from a simulation of the closed loop with Simbody's constraints, its drives among them."""

    name = "simbody/forward"
    reduces_rows = True
    """The solver of Simbody finds the independent rows of the loops."""

    def __init__(self, settings: Settings = OWN, limits: Limits | None = None) -> None:
        """With the settings of the route or others, and limits of a verdict, which may omit steps."""
        self.settings, self.limits = settings, limits

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism, settings = case.mechanism, self.settings
        _want_regular(mechanism, motion)
        with guarded(self.name):
            drives, undriven = held_drives(equations(mechanism), motion)
        finest = (FINEST_FREE if undriven else FINEST) / settings.division
        steps = settings.steps or tuple(own_steps(motion.dt, finest=finest, rungs=RUNGS))
        enough = enough_steps(self.limits, mechanism, motion, partial(remainder, order=ORDER))
        ladder = until(enough, (_simulated(mechanism, motion, drives, settings, dt) for dt in steps))
        return forward_history(
            self.name,
            mechanism,
            motion,
            ladder,
            settings={**in_words(replace(settings, steps=steps[: len(ladder)])), **omission(self.limits)},
            note="; ".join(carried_note(mechanism, drives)),
        )

    def within(self, limits: Limits) -> Self:
        """See `loopcheck.robots.efforts.Stepped.within`."""
        return type(self)(self.settings, limits)

    def with_wrenches(self) -> Self:
        """See `loopcheck.robots.efforts.ReadsWrenches.with_wrenches`."""
        return type(self)(replace(self.settings, wrenches=True), self.limits)

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`."""
        return type(self)(replace(self.settings, tolerance=self.settings.tolerance / 100))

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; its constraints are rigid."""
        settings = self.settings
        steps = tuple(dt / 2 for dt in settings.steps)
        return type(self)(replace(settings, steps=steps, division=2 * settings.division))


def in_words(settings: Settings) -> dict[str, str]:
    """Every relevant setting, as text."""
    return {
        "integrator": "OpenSim's Manager, RungeKuttaMerson, fourth order, every step of maximum size",
        "steps": f"{', '.join(f'{1e3 * dt:g}' for dt in settings.steps)} ms; the finest is reported",
        "loops": f"PointConstraint, WeldConstraint, CoordinateCouplerConstraint; projected to {settings.tolerance:g}, "
        "or to twice the initial loop gap",
        "drives": f"prescribed coordinates, GCVSpline of degree {DEGREE} with a knot per step; the effort is "
        "minus the multiplier",
        "loads": "springs, dampers, external wrenches and gravity compensation as forces of OpenSim",
    }


def _simulated(mechanism: Mechanism, motion: Motion, drives: tuple[int, ...], settings: Settings, dt: float) -> Rung:
    """A simulation with a step [s], which is also the distance of the spline knots; a divisor of the motion's step."""
    clock = perf_counter()
    driven = [mechanism.drives[k] for k in drives]
    targets = motion.law(motion.t)
    rest = mechanism.values_of(driven, mechanism.rest_position[None])[0]
    with guarded(f"simbody/forward: steps of {dt:g} s"):
        functions = _splines(motion, drives, dt, rest)
        model = build(mechanism, list(zip(driven, functions, strict=True)))
        multipliers, positions, drift, read = _march(model, motion, driven, dt, settings)
    forces = -multipliers - targets.qdd[:, drives] * [added_inertia(model, d) for d in driven]
    if not np.isfinite(forces).all():
        raise EngineError(f"simbody/forward: the simulation with dt = {dt:g} s diverged")
    readings = Readings(
        dt=dt,
        drives=drives,
        forces=forces,
        tracked=driven,
        miss=positions + rest - targets.q[:, drives],
        drift=drift,
        wrenches=over_time(read),
    )
    return readings.rung(mechanism, "simbody/forward", clock)


def _want_regular(mechanism: Mechanism, motion: Motion) -> None:
    """Refuse a motion with angles near a singularity of Simbody's balls.

    Raises:
        NotRepresentableError: If there is any.
    """
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.kind in BALL_OR_FREE:
            second = np.array([angles(rotation(x).as_matrix())[1] for x in motion.q[:, columns]])
            if np.cos(second).min() < LEAST_COSINE:
                raise NotRepresentableError(
                    f"simbody: not supported: {joint.kind} joint '{joint.name}' turns by "
                    f"{np.degrees(np.abs(second).max()):.1f}° about its second axis (singular angle rates)"
                )


def _splines(motion: Motion, drives: tuple[int, ...], dt: float, rest: Array) -> list[Any]:
    """Prescribed motions, as functions of time in OpenSim, relative to the references of all joints."""
    padding = min(PADDING, int(FARTHEST / dt))
    knots = np.arange(-padding, round((motion.t[-1] - motion.t[0]) / dt) + padding + 1) * dt + motion.t[0]
    values = motion.law(knots).q[:, drives] - rest
    if not np.isfinite(values).all():
        raise EngineError("simbody/forward: prescribed coordinates must be finite, got NaN or infinity")
    splines = []
    for column in values.T.tolist():
        spline = opensim.GCVSpline()
        spline.setDegree(DEGREE)
        for t, value in zip(knots.tolist(), column, strict=True):
            spline.addPoint(t, value)
        splines.append(spline)
    return splines


def _march(
    model: Model, motion: Motion, driven: Sequence[Coordinate], dt: float, settings: Settings
) -> tuple[Array, Array, Deviation, list[Mapping[str, Array]]]:
    """Multipliers and positions, relative to the joints' references, of the driven coordinates, drift and wrenches."""
    model.start(motion.q[0], motion.qd[0], float(motion.t[0]))
    drift, places = opening(model, model.state), [model.place(drive) for drive in driven]
    q_places = [model.q_place(drive) for drive in driven]
    read: list[Mapping[str, Array]] = []
    positions, multipliers, rows = [_positions(model.state, q_places)], [], list[int]()  # as given, not as projected
    manager = _manager(model, dt, max(settings.tolerance, 2 * drift.largest))
    manager.initialize(model.state)
    for k, t in enumerate(motion.t.tolist()):
        state = manager.integrate(t) if k else manager.getState()
        model.model.realizeAcceleration(state)
        if not k:
            drives = np.abs(constraint_matrix(model, state)[: len(places), places])
            rows = [int(row) for row in drives.argmax(axis=0)]
        else:
            positions.append(_positions(state, q_places))
            drift = drift.or_worse(opening(model, state))
        multiplier = model.model.getMatterSubsystem().getConstraintMultipliers(state)
        multipliers.append(np.array(multiplier.to_numpy())[rows])
        if settings.wrenches:
            read.append(wrenches(model, state))
    return np.array(multipliers), np.array(positions), drift, read


def _positions(state: Any, places: list[int]) -> Array:
    return np.array(state.getQ().to_numpy())[places]


def _manager(model: Model, dt: float, tolerance: float) -> Any:
    """OpenSim's integration with steps of a fixed length; a gap of the model's loops cannot be closed further."""
    manager = opensim.Manager(model.model)
    manager.setIntegratorMethod(opensim.Manager.IntegratorMethod_RungeKuttaMerson)
    manager.setIntegratorAccuracy(ANY_ERROR)
    manager.setIntegratorConstraintTolerance(tolerance)
    manager.setIntegratorMaximumStepSize(dt)
    manager.setIntegratorMinimumStepSize(SHORTEST * dt)
    manager.setIntegratorInternalStepLimit(-1)
    manager.setWriteToStorage(False)
    manager.setPerformAnalyses(False)
    return manager
