"""Simulates the closed loop in Simbody with the drives prescribed, and reads the multipliers of the drives.

A prescribed coordinate is a constraint of Simbody's on accelerations, as the loops are; its multiplier is the effort
that holds the coordinate to its motion, with the other sign. Positions and velocities are projected on the constraints
after each step. The prescription is a function of OpenSim's: a spline of degree seven through the law of the motion.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from loopcheck.engines.forward import Readings
from loopcheck.engines.simbody._equations import constraint_matrix, opening
from loopcheck.engines.simbody._model import BALL_OR_FREE, Model, added_inertia, build, rotation
from loopcheck.engines.simbody._opensim import angles, guarded, opensim
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, Rung
from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Motion

DEGREE = 7
PADDING, FARTHEST = 24, 0.08
"""Knots of a spline before and after the span, and the time that they may take [s]: its ends are forgotten there."""
LEAST_COSINE = 0.1
"""Of the second angle of a ball or free joint: Simbody's rates of the angles are singular at zero [-]."""
ANY_ERROR = 1.0
"""Accuracy with which no step of the prescribed length is rejected [-]."""
SHORTEST = 1 / 4
"""Least part of a step that the integrator may take [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A simulation."""

    dt: float
    """Step, and distance of the spline knots; a divisor of the step of the motion [s]."""
    tolerance: float
    """Tolerance of the projection onto constraints on positions and velocities [m, rad, or per s]."""
    drives: tuple[int, ...]
    """Places of the driven coordinates that are driven."""
    degree: int = DEGREE
    """Of the prescribed spline; odd, and at most seven."""


def simulate(mechanism: Mechanism, motion: Motion, run: Run) -> Rung:
    """Simulate a motion at a step size.

    Args:
        run: Settings of the stepping.

    Raises:
        NotRepresentableError: If the mechanism has an element that Simbody cannot represent.
        EngineError: If Simbody fails, or its state is not finite.
    """
    clock = perf_counter()
    driven = [mechanism.drives[k] for k in run.drives]
    targets = motion.law(motion.t)
    rest = mechanism.values_of(driven, mechanism.rest_position[None])[0]
    with guarded(f"simbody/forward: steps of {run.dt:g} s"):
        functions = _splines(motion, run, rest)
        model = build(mechanism, list(zip(driven, functions, strict=True)))
        multipliers, positions, drift = _march(model, motion, run, driven)
    forces = -multipliers - targets.qdd[:, run.drives] * [added_inertia(model, d) for d in driven]
    if not np.isfinite(forces).all():
        raise EngineError(f"simbody/forward: the simulation with dt = {run.dt:g} s diverged")
    readings = Readings(
        dt=run.dt,
        drives=run.drives,
        forces=forces,
        tracked=driven,
        miss=positions + rest - targets.q[:, run.drives],
        drift=drift,
    )
    return readings.rung(mechanism, "simbody/forward", clock)


def want_regular(mechanism: Mechanism, motion: Motion) -> None:
    """Refuse a motion with angles near a singularity of Simbody's balls.

    Raises:
        NotRepresentableError: If there is any.
    """
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.kind in BALL_OR_FREE:
            second = np.array([angles(rotation(x[-4:]))[1] for x in motion.q[:, columns]])
            if np.cos(second).min() < LEAST_COSINE:
                raise NotRepresentableError(
                    f"simbody: not supported: {joint.kind} joint '{joint.name}' turns by "
                    f"{np.degrees(np.abs(second).max()):.1f}° about its second axis (singular angle rates)"
                )


def _splines(motion: Motion, run: Run, rest: Array) -> list[Any]:
    """Prescribed motions, as functions of time in OpenSim, relative to the references of all joints."""
    padding = min(PADDING, int(FARTHEST / run.dt))
    knots = np.arange(-padding, round((motion.t[-1] - motion.t[0]) / run.dt) + padding + 1) * run.dt + motion.t[0]
    values = motion.law(knots).q[:, run.drives] - rest
    if not np.isfinite(values).all():
        raise EngineError("simbody/forward: prescribed coordinates must be finite, got NaN or infinity")
    splines = []
    for column in values.T.tolist():
        spline = opensim.GCVSpline()
        spline.setDegree(run.degree)
        for t, value in zip(knots.tolist(), column, strict=True):
            spline.addPoint(t, value)
        splines.append(spline)
    return splines


def _march(model: Model, motion: Motion, run: Run, driven: Sequence[Coordinate]) -> tuple[Array, Array, Deviation]:
    """Multipliers and positions, relative to the joints' references, of the driven coordinates, and drift."""
    model.put(motion.q[0], motion.qd[0])
    model.state.setTime(float(motion.t[0]))
    model.model.realizePosition(model.state)
    drift, places = opening(model, model.state), [model.place(drive) for drive in driven]
    q_places = [model.q_place(drive) for drive in driven]
    positions, multipliers, rows = [_positions(model.state, q_places)], [], list[int]()  # as given, not as projected
    manager = _manager(model, run, drift.largest)
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
    return np.array(multipliers), np.array(positions), drift


def _positions(state: Any, places: list[int]) -> Array:
    return np.array(state.getQ().to_numpy())[places]


def _manager(model: Model, run: Run, gap: float) -> Any:
    """OpenSim's integration with steps of a fixed length; a gap of the model's loops cannot be closed further."""
    manager = opensim.Manager(model.model)
    manager.setIntegratorMethod(opensim.Manager.IntegratorMethod_RungeKuttaMerson)
    manager.setIntegratorAccuracy(ANY_ERROR)
    manager.setIntegratorConstraintTolerance(max(run.tolerance, 2 * gap))
    manager.setIntegratorMaximumStepSize(run.dt)
    manager.setIntegratorMinimumStepSize(SHORTEST * run.dt)
    manager.setIntegratorInternalStepLimit(-1)
    manager.setWriteToStorage(False)
    manager.setPerformAnalyses(False)
    return manager
