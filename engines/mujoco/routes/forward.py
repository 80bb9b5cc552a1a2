"""MuJoCo's own constraint solver on the closed loop, the driven joints and tendons held to the motion by equalities.

Each driven joint or tendon gets an equality whose force is the effort. MuJoCo knows no target with an acceleration, so
its position is set such that the reference acceleration of the equality's row is the prescribed one, plus feedback on
what has drifted. Two things would spoil the reading, and both are removed by running more than once:

- the step: targets that are frozen over a step make every method one of first order. Here they move with a clock in
  the model, MuJoCo's own Runge-Kutta method of fourth order sees them move, and it is run on a ladder of steps. Where
  balls or free bodies turn, for which some versions of it are of second order, it is written here on `mj_forward`;
- the softness: MuJoCo lets no constraint be rigid. The error is proportional to the compliance (the inverse weights of
  bodies and dofs), so the efforts at two compliances are extrapolated to none. How small they must be for that depends
  on the robot: a light link that carries much is far softer than its neighbours. A third one, twice as large, tells
  whether they are in the linear range; else harder ones are tried, and where those are worse softer ones: loops that
  the model itself closes only so far pull at hard constraints.

Of a redundantly actuated robot only as many joints are driven as it has degrees of freedom: more drives would answer
the smallest mismatch of their targets with internal efforts. The others follow at zero effort, which leaves the part of
the efforts that moves the robot as it is.
"""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import inf, isfinite
from typing import Any, Self

import mujoco
import numpy as np

from loopcheck.engines import forward
from loopcheck.engines.equations import held_drives
from loopcheck.engines.extrapolation import readings_at_zero, relative_change, value_at_zero
from loopcheck.engines.forward import enough_steps, forward_history, omission, over_time, remainder, surviving_rungs
from loopcheck.engines.mujoco import tendons
from loopcheck.engines.mujoco._clock import frozen_targets, moving_targets, push
from loopcheck.engines.mujoco._compliance import LINEAR, Choice, Run, Simulated, choose, each_once
from loopcheck.engines.mujoco._stepping import stepping
from loopcheck.engines.mujoco.equations import MujocoEquations
from loopcheck.engines.mujoco.loops import forward_with_turning_drives, turns_drives
from loopcheck.engines.mujoco.model import (
    build,
    driven,
    equality_rows,
    gearing,
    guarded,
    opening,
    rows_of_drives,
    widest_of,
)
from loopcheck.engines.mujoco.wrenches import wrenches
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.efforts import (
    Deviation,
    EffortHistory,
    Limits,
    ReadsWrenches,
    Refinable,
    Rung,
    Stepped,
    deviation_of,
)
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import WORLD, CoordinateClosure, Mechanism
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import size_in_motion

FINEST = 1.25e-3
"""Upper bound of the finest step [s]; the ladder doubles it three times."""
FINEST_FREE = FINEST / 8
"""The same for robots with unactuated motions, which may vibrate on springs."""
RUNGS = 4
ORDER = 4
"""Of the Runge-Kutta method."""
MORE = 2
"""Largest number of added finer steps."""
UNCONVERGED = 0.1
"""Change of the efforts between the two finest steps, over their peak, above which they do not converge [-]."""
CLOSED = 1e-9
"""Least gap of the model's own loops in exact states that is reported [-]."""
RUNGE_KUTTA = "Runge-Kutta"
"""The classical method of fourth order, with the targets of each of its stages."""
MJ_STEP: Mapping[str, Callable[[Any, Any], None]] = {
    "Euler": mujoco.mj_Euler,
    "implicit": mujoco.mj_implicit,
    "implicitfast": mujoco.mj_implicit,
    "RK4": partial(mujoco.mj_RungeKutta, N=4),
}
"""Operation of `mj_step` after `mj_forward`, by the name of the integrator, with constant targets over a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulations; by default as `loopcheck study refinement` recommends for all robots."""

    steps: tuple[float, ...] = ()
    """Steps that divide the report grid, coarsest first [s]; empty: four steps, halved until `FINEST`."""
    division: int = 1
    """Divisor of `FINEST` [-]."""
    compliances: tuple[float, ...] = (0.001, 0.002)
    """Factors on the model's inverse weights [-]; the efforts at several factors are extrapolated to zero."""
    adapts: bool = False
    """Whether the compliances are changed if two of them, in a ratio of 2, are outside the linear range."""
    settled: float = inf
    """Largest error of the finest step, over the peak of the efforts [-]; up to `MORE` finer steps are added."""
    integrator: str = RUNGE_KUTTA
    """`RUNGE_KUTTA`, or a key of `MJ_STEP`."""
    solver: str = "Newton"
    """As in an MJCF: Newton, CG or PGS."""
    iterations: int = 100
    tolerance: float = 0.0
    """Improvement of the cost that ends the solver's iterations [-]."""
    solref: tuple[float, float] = (-100.0, -20.0)
    """Stiffness [1/s²] and damping [1/s] of the feedback on drift; stiffer ruins the Runge-Kutta method."""
    solimp: tuple[float, float, float, float, float] = (0.9999, 0.9999, 0.001, 0.5, 1.0)
    """The largest impedance that MuJoCo accepts, and constant over the violation."""
    wrenches: bool = False
    """Whether forces in the joints are read."""


OWN = Settings(adapts=True, settled=1e-7)
"""Settings of the route."""


class MujocoForward(Refinable, Stepped, ReadsWrenches):
    """Efforts from a simulation of the closed loop, extrapolated to rigid constraints."""

    name = "mujoco/forward"

    def __init__(self, settings: Settings = OWN, limits: Limits | None = None) -> None:
        """With the settings of the route or others, and limits of a verdict, which may omit steps."""
        self.settings, self.limits = settings, limits

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        drives, undriven = held_drives(MujocoEquations(case.mechanism), motion)
        finest = (FINEST_FREE if undriven else FINEST) / self.settings.division
        steps = self.settings.steps or own_steps(motion.dt, finest=finest)
        robot, drive = self._driven(case.mechanism, drives), cache(partial(_drive, motion))
        simulated = each_once(partial(self._run, robot, motion, drive))
        tried = steps if self.settings.adapts else ()
        choice = choose(self.settings.compliances, simulated, tried, size_in_motion(case.mechanism, motion))
        rung = partial(_rung, simulated, compliances=choice.compliances)
        enough = enough_steps(self.limits, case.mechanism, motion, _left)
        ladder, diverged = surviving_rungs(rung, steps, enough)
        ladder += _finer(rung, ladder, self.settings.settled, least=min(2, len(steps)))
        if diverged:
            _want_converged(ladder)
        taken = (dt for dt in steps if dt >= ladder[-1].dt)
        steps = [*taken, *(finer.dt for finer in ladder if finer.dt < steps[-1])]
        return forward_history(
            self.name,
            case.mechanism,
            motion,
            ladder,
            settings={
                **in_words(replace(self.settings, steps=tuple(steps), compliances=choice.compliances)),
                **omission(self.limits),
            },
            note="; ".join(
                (
                    *_of_curves(case.mechanism),
                    *_of_softness(case.mechanism, motion, choice),
                    *_of_drives(case.mechanism, drives, diverged),
                )
            ),
        )

    def within(self, limits: Limits) -> Self:
        """See `loopcheck.robots.efforts.Stepped.within`."""
        return type(self)(self.settings, limits)

    def with_wrenches(self) -> Self:
        """See `loopcheck.robots.efforts.ReadsWrenches.with_wrenches`."""
        return type(self)(replace(self.settings, wrenches=True), self.limits)

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`; the tolerance is zero."""
        settings = self.settings
        return type(self)(replace(settings, tolerance=settings.tolerance / 100, iterations=2 * settings.iterations))

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`."""
        settings = self.settings
        steps, compliances = (tuple(x / 2 for x in sizes) for sizes in (settings.steps, settings.compliances))
        finer = replace(settings, steps=steps, division=2 * settings.division, compliances=compliances)
        return type(self)(replace(finer, settled=settings.settled / 2**ORDER))  # or it would end at the same step

    def _driven(self, mechanism: Mechanism, drives: tuple[int, ...]) -> "_Driven":
        with guarded(self.name):
            model = driven(mechanism, [mechanism.drives[k] for k in drives], timed=bool(drives))
            return _Driven(
                mechanism=mechanism,
                drives=drives,
                model=model,
                data=mujoco.MjData(model),
                efforts_of_forces=np.asarray(np.linalg.pinv(_gearing(mechanism, drives, model)), dtype=np.float64),
            )

    def _run(
        self, robot: "_Driven", motion: Motion, drive: Callable[[float], Drive], dt: float, compliance: float
    ) -> Run:
        with guarded(self.name):
            return _simulate(robot, motion, drive(dt), dt, at_compliance(self.settings, compliance))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Driven:
    """A mechanism in MuJoCo with held drives, compiled once for all its simulations."""

    mechanism: Mechanism
    drives: tuple[int, ...]
    """Places of the held coordinates among `Mechanism.drives`."""
    model: Any
    """Result of `driven`; each simulation changes a copy."""
    data: Any
    """Memory of the simulations, one after another; making it anew takes as long as many steps."""
    efforts_of_forces: Array
    """Efforts of the actuators per force of the held drives, of least norm where two share a drive [-], shape
    (drives, na)."""


def _gearing(mechanism: Mechanism, drives: tuple[int, ...], model: Any) -> Array:
    """Actuator velocities per rate of the held drives; with the gears of the file where lengths of tendons drive.

    Their moments change with the pose, so that they say nothing in one pose.
    """
    by_moments, of_file = gearing(model, len(drives)), mechanism.gearing[:, drives]
    is_length = [tendons.is_length(mechanism, mechanism.drives[k]) for k in drives]
    acts_on_length = [tendons.is_length(mechanism, actuator.coordinate) for actuator in mechanism.actuators]
    return np.where(np.logical_or.outer(acts_on_length, is_length), of_file, by_moments)


def _drive(motion: Motion, dt: float) -> Drive:
    """Motion of all drives at every half step of a simulation.

    Args:
        dt: Step [s].
    """
    steps = round((motion.t[-1] - motion.t[0]) / dt)
    return motion.law(motion.t[0] + np.arange(2 * steps + 1) * dt / 2)


def _rung(simulated: Simulated, dt: float, *, compliances: Sequence[float]) -> Rung:
    soft = [simulated(dt, compliance) for compliance in compliances]
    return Rung(
        dt=dt,
        effort=value_at_zero(compliances, [run.effort for run in soft]),
        closure_drift=soft[0].closure_drift.or_worse(*(run.closure_drift for run in soft)),
        tracking_error=soft[0].tracking_error.or_worse(*(run.tracking_error for run in soft)),
        wall_time=sum(run.wall_time for run in soft),
        wrenches=readings_at_zero(compliances, [run.wrenches for run in soft]),
    )


def _finer(rung: Callable[[float], Rung], ladder: Sequence[Rung], settled: float, *, least: int) -> list[Rung]:
    """Levels of ever finer steps, added while the finest leaves more than the settled change, and as long as they help.

    Unactuated dofs may move far faster than the drives: released links whip near their stretched pose.

    Args:
        least: Number of levels that show convergence [-]: finer levels replace those that diverged.
    """
    finer = list(ladder)
    while len(finer) < len(ladder) + MORE and (len(finer) < least or (len(finer) > 1 and _left(finer) > settled)):
        try:
            finer.append(rung(finer[-1].dt / 2))
        except EngineError:
            break
        if len(finer) > 2 and not _left(finer) < _left(finer[:-1]) / 2:
            break  # round-off, which finer steps make worse
    return finer[len(ladder) :]


def _want_converged(ladder: Sequence[Rung]) -> None:
    """Refuse efforts of a simulation that diverges at longer steps, unless they converge with the shorter steps.

    They are no answer of the engine, right or wrong.

    Raises:
        EngineError: If the two finest steps differ too much, or only one is left.
    """
    steps = ", ".join(f"{1e3 * rung.dt:g}" for rung in ladder[-2:])
    change = relative_change(ladder[-2].effort, ladder[-1].effort) if len(ladder) > 1 else inf
    if change > UNCONVERGED:
        raise EngineError(
            f"{MujocoForward.name}: the efforts must converge with the step, but the simulation diverges at longer "
            f"steps than {steps} ms, where the efforts change by {change:.2g} of their peak"
        )


def _left(ladder: Sequence[Rung]) -> float:
    """Remaining error of the finest step by theory, over the peak of the efforts [-]."""
    return remainder(ladder, ORDER)


def in_words(settings: Settings) -> dict[str, str]:
    """Every relevant setting, as text."""
    steps = ", ".join(f"{1e3 * dt:g}" for dt in settings.steps)
    compliances = " and ".join(f"{compliance:g}" for compliance in settings.compliances)
    own = settings.integrator == RUNGE_KUTTA
    return {
        "integrator": "MuJoCo's Runge-Kutta, 4th order (loopcheck's for ball and free joints), moving targets"
        if own
        else f"mj_step, {settings.integrator}, constant targets over a step",
        "steps": f"{steps} ms; the finest is reported",
        "solver": f"{settings.solver}, dense, tolerance {settings.tolerance:g}, "
        f"at most {settings.iterations} iterations",
        "impedance": f"solimp {' '.join(f'{x:g}' for x in settings.solimp)}",
        "drift feedback": f"solref {' '.join(f'{x:g}' for x in settings.solref)}",
        "compliance": f"body and dof inverse weights times {compliances}"
        + (", extrapolated to 0" if len(settings.compliances) > 1 else ""),
        "actuators": "a joint equality per drive; its constraint force, divided by the engine's gear, is the effort",
    }


def own_steps(report: float, finest: float = FINEST) -> list[float]:
    """The route's own steps, which divide the report grid, coarsest first [s]."""
    return forward.own_steps(report, finest=finest, rungs=RUNGS)


def _of_curves(mechanism: Mechanism) -> Iterator[str]:
    """The closures with a curvature that MuJoCo leaves out, so that its solver lets them drift (see known issues)."""
    curved = [
        closure.name
        for closure in mechanism.closures
        if isinstance(closure, CoordinateClosure)
        and closure.leader is not None
        and closure.coefficients[2:].any()
        and not (mechanism.path_closures and _is_of_tendons(mechanism, closure))
    ]
    if curved:
        yield (
            f"MuJoCo ignores the curvature of the polynomial of {', '.join(curved)} (known issue "
            "mujoco-joint-polynomial)"
        )
    slides = {closure.slide for closure in mechanism.path_closures}
    turning = [closure.name for closure in mechanism.path_closures if closure.slide is None]
    turning += [
        closure.name
        for closure in mechanism.coordinate_closures
        if slides.intersection(closure.follower.joints + (closure.leader.joints if closure.leader else ()))
    ]
    if turning:
        yield (
            f"MuJoCo ignores the turning of the spatial tendons of {', '.join(turning)} (known issue "
            "mujoco-tendon-turning)"
        )


def _is_of_tendons(mechanism: Mechanism, closure: CoordinateClosure) -> bool:
    names = [joint.name for joint in mechanism.joints if joint.body != WORLD]
    return closure.follower.name not in names


def _of_softness(mechanism: Mechanism, motion: Motion, choice: Choice) -> Iterator[str]:
    """Note on the compliances for the reader."""
    if len(choice.compliances) > 1:
        yield f"extrapolated to rigid constraints from {len(choice.compliances)} compliances"
    if choice.change > LINEAR:
        yield f"doubled compliance changes the efforts by {choice.change:.1g} of their peak"
        gap = _own_gap(mechanism, motion)
        if gap.over(size_in_motion(mechanism, motion)) > CLOSED:
            yield f"the loops of the file close only to {gap.largest:.1g} m or rad; stiff constraints act on this gap"


def _own_gap(mechanism: Mechanism, motion: Motion) -> Deviation:
    """Gap of the loops in the prescribed states themselves: they cannot be closed better."""
    model = build(mechanism)
    data, widest = mujoco.MjData(model), Deviation()
    for q in motion.q:
        data.qpos[:] = q[: model.nq]  # lengths of tendons follow
        mujoco.mj_fwdPosition(model, data)
        widest = widest.or_worse(opening(model, data, equality_rows(data)))
    return widest


def _of_drives(mechanism: Mechanism, drives: Sequence[int], diverged: list[str]) -> Iterator[str]:
    names = [drive.name for k, drive in enumerate(mechanism.drives) if k not in drives]
    if names:
        yield f"redundantly actuated: {', '.join(names)} not driven; only the projected effort is comparable"
    yield from diverged


def at_compliance(settings: Settings, compliance: float) -> Settings:
    """The settings with a given compliance."""
    return replace(settings, compliances=(compliance,))


def _simulate(robot: _Driven, motion: Motion, drive: Drive, dt: float, settings: Settings) -> Run:
    """Simulate the whole motion at a compliance and read the drives on the report grid.

    Args:
        drive: Motion of all drives, at every half step.
        dt: Step [s].
        settings: With a single compliance.

    Raises:
        EngineError: If it diverges.
    """
    start = time.perf_counter()
    mechanism, drives = robot.mechanism, robot.drives
    (nq, nv), slides = mechanism.spanning_tree, tendons.with_slides(mechanism, robot.model)
    model, data = prepared(robot.model, nv, dt, settings), robot.data
    with_term = forward_with_turning_drives if turns_drives(model) else None
    compute = with_term or mujoco.mj_forward
    mujoco.mj_resetData(model, data)
    rest = mechanism.values_of(mechanism.drives, mechanism.rest_position[None])
    # A target that stands still over a step makes any integrator one of first order. So it is a polynomial of one more
    # joint, the clock, which runs at unit rate within a step and is set back to zero before the next.
    data.qpos[:-1], data.qvel[:-1], data.qvel[-1] = motion.q[0, :nq], motion.qd[0, :nv], 1.0
    push(mechanism, model, data)
    mujoco.mj_forward(model, data)
    K, B, impedance, _ = data.efc_KBIP.reshape(-1, 4)[rows_of_drives(model, data, len(drives))[0][0]]
    # A row accelerates by −B (v − ṗ) − K·imp (q − qpos0 − p); this makes it q̈ − B (v − q̇) − K·imp (q − x).
    accelerations = (drive.qdd + B * drive.qd + K * impedance * (drive.q - rest))[:, drives]
    feedback = np.array([K * impedance, B])
    if settings.integrator == RUNGE_KUTTA:
        step, targets = stepping(model, data, with_term), moving_targets(accelerations, feedback, dt)
    else:
        step, targets = partial(MJ_STEP[settings.integrator], model, data), frozen_targets(accelerations, feedback)

    equality_data, clock, q = model.eq_data[model.neq - len(drives) :, :3], data.qpos[-1:], data.qpos[:-1]
    forces, positions, read, every = [], [], [], round(motion.dt / dt)
    layouts: dict[tuple[bytes, bytes], tuple[AnyArray, AnyArray, list[Array]]] = {}
    gaps: dict[bytes, list[Array]] = {}  # of the loops, by the equalities of their rows
    for k, target in enumerate(targets):
        equality_data[:], clock[0] = target, 0.0
        compute(model, data)
        if k % every == 0:  # MuJoCo orders its rows anew when one of them comes or goes; look them up once per order
            layout = (data.efc_type.tobytes(), data.efc_id.tobytes())  # rows that move nothing there are left out
            if layout not in layouts:
                of_drives, of_loops = rows_of_drives(model, data, len(drives))
                of_layout = gaps.setdefault(data.efc_id[of_loops].tobytes(), [])
                layouts[layout] = of_drives, of_loops, of_layout
            of_drives, of_loops, of_layout = layouts[layout]
            force = data.efc_force[of_drives]
            if not all(map(isfinite, force.tolist())):
                where = f"the simulation with dt = {dt:g} s diverged at {motion.t[k // every]:g} s"
                raise EngineError(f"{MujocoForward.name}: {where}")
            forces.append(force)
            of_layout.append(data.efc_pos[of_loops])
            positions.append(np.concatenate([q, data.ten_length[slides]]))
            if settings.wrenches:
                read.append(wrenches(mechanism, model, data))
        if k < len(targets) - 1:
            step()
    miss = mechanism.values_of(mechanism.drives, np.array(positions)) - drive.q[:: 2 * every]
    return Run(
        effort=np.array(forces) @ robot.efforts_of_forces,
        closure_drift=widest_of(model, gaps),
        tracking_error=deviation_of(mechanism, mechanism.drives, miss),
        wall_time=time.perf_counter() - start,
        wrenches=over_time(read),
    )


def prepared(model: Any, nv: int, dt: float, settings: Settings) -> Any:
    """A copy of a driven model with the settings; all its equalities are equally hard.

    Args:
        model: Result of `driven`.
        nv: Number of dofs of the mechanism, without a clock.
        dt: Step [s].
        settings: With a single compliance.
    """
    model = copy.copy(model)
    model.opt.timestep = dt
    if settings.integrator != RUNGE_KUTTA:
        model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{settings.integrator.upper()}")
    model.opt.solver = getattr(mujoco.mjtSolver, f"mjSOL_{settings.solver.upper()}")
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    share = model.dof_M0[:nv].sum() / model.dof_M0.sum()  # MuJoCo's tolerance is relative to the inertia
    model.opt.tolerance, model.opt.iterations = share * settings.tolerance, settings.iterations
    model.eq_solref[:] = settings.solref
    model.eq_solimp[:] = settings.solimp
    model.body_invweight0[:] *= settings.compliances[0]
    model.dof_invweight0[:] *= settings.compliances[0]
    model.tendon_invweight0[:] *= settings.compliances[0]
    return model
