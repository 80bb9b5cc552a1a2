"""Errors of analytic forward dynamics, or of an engine's own solver, against the published numbers of a free motion."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopcheck import engines
from loopcheck.analytic.dynamics.energy import total_energy
from loopcheck.analytic.dynamics.forward import accelerations_by_multipliers, dependent_velocities, simulate
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import point_of, retract
from loopcheck.engines.contract import Simulation
from loopcheck.robots.arrays import AnyArray, Array, PositionSeries, VelocitySeries
from loopcheck.robots.errors import HarnessError, NotFoundError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import modes
from loopcheck.validation.execution.environments import engine_versions
from loopcheck.validation.studies.free_motion.benchmark import Benchmark, Instant

ANALYTIC = "analytic/noc"
SETTINGS = ("default", "tight")
STEP = 1e-40
"""Imaginary step in time [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Initial state of a free motion."""

    mechanism: Mechanism
    """Case with the gravity of the benchmark."""
    q: Array
    """Joint positions [m or rad], shape (nq,)."""
    qd: Array
    """Joint velocities that keep the loops closed [m/s or rad/s], shape (nv,)."""
    effort: Array
    """Constant efforts of the actuators [N or N m], shape (na,)."""
    independent: AnyArray
    """Mask of the actuated dofs [-], shape (nv,)."""


def start_of(benchmark: Benchmark) -> Start:
    """The initial state of a benchmark and its loads."""
    case = benchmark.case
    mechanism, q = case.mechanism, modes(case.mechanism)[benchmark.mode]
    names = [joint.name for joint in mechanism.joints]
    independent = np.asarray(mechanism.selection.any(axis=0))
    free = [benchmark.velocities.get(names[j], 0.0) for j in sorted(mechanism.actuated_joints)]
    return Start(
        mechanism=mechanism,
        q=q,
        qd=dependent_velocities(mechanism, q[None], np.array([free]), independent)[0],
        effort=np.array([benchmark.efforts.get(actuator.name, 0.0) for actuator in mechanism.actuators]),
        independent=independent,
    )


def ways() -> list[str]:
    """Names of the sources that can move a robot freely: the reference, and the engines that are there."""
    return [ANALYTIC, *(f"{engine}/{setting}" for engine in free_engines() for setting in SETTINGS)]


def free_engines() -> list[str]:
    """The engines, here or in environments, that can be left to themselves."""
    return [name for name in engine_versions() if engines.provides(name, "simulation")]


def settings_of(engine: str) -> str:
    """Default and careful settings of an engine, in words."""
    declared: Simulation | None = engines.part(engine, "simulation")
    return f"{engine}/{declared.SETTINGS}" if declared else ""


def measure(benchmark: Benchmark, source: str) -> list[dict[str, Any]]:
    """A row for each published quantity and a row for the energy; a failure is a row without a number."""
    clock, columns = time.perf_counter(), {"benchmark": benchmark.robot, "source": source}
    start = start_of(benchmark)
    t = np.unique([0.0, *(instant.t for instant in benchmark.instants), *np.linspace(0.0, benchmark.span, 11)])
    try:
        q, qd = _moved(start, source, t)
    except HarnessError as error:
        return without_motion(benchmark, source, str(error))
    if not (np.isfinite(q).all() and np.isfinite(qd).all()):
        first = t[np.argmin(np.isfinite(q).all(axis=1))]
        return without_motion(benchmark, source, f"not finite at t = {first:g} s")
    took = {"wall_time": time.perf_counter() - clock, "note": ""}
    rows = [
        {**columns, **took, "t": instant.t, "quantity": quantity, "error": error}
        for instant in benchmark.instants
        for k in [int(np.searchsorted(t, instant.t))]
        for quantity, error in _errors(start, instant, q[[k]], qd[[k]], multipliers=source == ANALYTIC)
    ]
    drift = energy_drift(start, q, qd)
    return [*rows, {**columns, **took, "t": benchmark.span, "quantity": "energy drift [of its peak]", "error": drift}]


def without_motion(benchmark: Benchmark, source: str, note: str) -> list[dict[str, Any]]:
    """The row of a source that has not moved the robot."""
    row = {"benchmark": benchmark.robot, "source": source, "t": benchmark.span, "quantity": "motion", "note": note}
    return [row]


def energy_drift(start: Start, q: PositionSeries, qd: VelocitySeries) -> float:
    """Largest change of the energy beyond the work of the efforts, over the largest kinetic energy [-].

    Args:
        start: How the motion begins.
    """
    mechanism = start.mechanism
    energy = total_energy(mechanism, q, qd).real
    kinetic = energy - total_energy(mechanism, q, np.zeros_like(qd)).real
    moved = mechanism.values_of(mechanism.drives, q)
    work = (moved - moved[0]) @ mechanism.gearing.T @ start.effort
    return float(np.abs(energy - energy[0] - work).max() / kinetic.max())


def _moved(start: Start, source: str, t: Array) -> tuple[Array, Array]:
    """Positions (nt, nq) and velocities (nt, nv) at times (nt,)."""
    mechanism = start.mechanism
    if source == ANALYTIC:
        return simulate(mechanism, lambda _: start.effort, start.q, start.qd, t, independent=start.independent)
    engine, way = source.split("/")
    declared: Simulation | None = engines.part(engine, "simulation")
    if declared is None:
        raise NotFoundError("engine with free motions", engine, free_engines())
    return declared.free_motion(mechanism, start.effort, (start.q, start.qd), t, tight=way == "tight")


def _errors(start: Start, instant: Instant, q: Array, qd: Array, *, multipliers: bool) -> Iterator[tuple[str, float]]:
    """Largest error of each published quantity, with its name and unit, at one state of shape (1, ...)."""
    mechanism = start.mechanism
    if instant.joints:
        names = [joint.name for joint in mechanism.joints]
        miss = [q[0, mechanism.q_slices[names.index(n)].start] - x for n, x in instant.joints.items()]
        yield "joints [m or rad]", float(np.abs(miss).max())
    if instant.positions:
        miss = [_site(mechanism, n, q)[0] - x for n, x in instant.positions.items()]
        yield "positions [m]", float(np.abs(miss).max())
    if instant.velocities:
        moved = retract(mechanism, q, 1j * STEP * qd)
        miss = [_site(mechanism, n, moved)[0].imag / STEP - v for n, v in instant.velocities.items()]
        yield "velocities [m/s]", float(np.abs(miss).max())
    if instant.multipliers and multipliers:
        _, lam = accelerations_by_multipliers(mechanism, q, qd, start.effort[None])
        rows = {closure.name: -lam[0, 3 * k : 3 * k + 2] for k, closure in enumerate(mechanism.closures)}
        miss = [rows[n] - x for n, x in instant.multipliers.items()]
        yield "multipliers [N]", float(np.abs(miss).max())


def _site(mechanism: Mechanism, name: str, q: AnyArray) -> AnyArray:
    site = mechanism.site(name)
    return point_of(State.at_rest(mechanism, q).poses, site.body, site.position)
