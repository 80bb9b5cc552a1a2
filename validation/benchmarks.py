"""Published free motions: analytic forward dynamics and the engines' own solvers against the numbers of others."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import engines
from analytic.energy import total_energy
from analytic.forward import accelerations_by_multipliers, dependent_velocities, simulate
from analytic.kinematics import point_of, poses, retract
from robots.arrays import AnyArray, Array
from robots.benchmark import Benchmark, Instant, benchmark_names, load_benchmark
from robots.errors import HarnessError, NotFoundError
from robots.mechanism import Mechanism
from robots.robot import modes
from validation import statuses
from validation.blocks import Part, table
from validation.pages import write_pages
from validation.tables import write_csv
from validation.workers import ALL_CORES, Call, Lost, Workers, crew

ANALYTIC = "analytic/noc"
SETTINGS = ("default", "careful")
STEP = 1e-40
"""Imaginary step in time [s]."""
COLUMNS = {
    "benchmark": str,
    "source": str,
    "t": float,
    "quantity": str,
    "error": float,
    "wall_time": float,
    "note": str,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a free motion begins."""

    mechanism: Mechanism
    """In the gravity of the benchmark."""
    q: Array
    """Joint positions [m or rad], shape (nq,)."""
    qd: Array
    """Joint velocities that keep the loops closed [m/s or rad/s], shape (nv,)."""
    effort: Array
    """Constant efforts of the actuators [N or N m], shape (na,)."""
    independent: AnyArray
    """Mask of the actuated dofs [-], shape (nv,)."""


def start_of(benchmark: Benchmark) -> Start:
    """The initial state of a benchmark and what acts in it."""
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


def benchmarks_table(names: Sequence[str], *, workers: Workers = ALL_CORES) -> pd.DataFrame:
    """Errors of every source at the published instants, and the drift of its energy.

    Args:
        names: Robots with a benchmark; by default all.
        workers: Worker processes; by default one for each core.

    Raises:
        HarnessError: If a robot is unknown, has no benchmark, or its files are bad.
    """
    wanted = [load_benchmark(name) for name in names or benchmark_names()]
    ways = [ANALYTIC, *(f"{engine}/{way}" for engine in _free_engines() for way in SETTINGS)]
    tasks = [(benchmark, way) for benchmark in wanted for way in ways]
    with crew(workers) as staff:
        found = staff.all_of([Call(measure, task) for task in tasks], "benchmarks")
    rows = [
        row
        for (benchmark, way), some in zip(tasks, found, strict=True)
        for row in (_without_motion(benchmark, way, some.reason) if isinstance(some, Lost) else some)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _free_engines() -> list[str]:
    """The engines installed here that can be left to themselves."""
    return [name for name in engines.versions() if engines.engine(name).free_motion() is not None]


def measure(benchmark: Benchmark, source: str) -> list[dict[str, Any]]:
    """A row for each published quantity and one for the energy; a failure is a row without a number."""
    clock, where = time.perf_counter(), {"benchmark": benchmark.robot, "source": source}
    start = start_of(benchmark)
    t = np.unique([0.0, *(instant.t for instant in benchmark.instants), *np.linspace(0.0, benchmark.span, 11)])
    try:
        q, qd = _moved(start, source, t)
    except HarnessError as error:
        return _without_motion(benchmark, source, str(error))
    if not (np.isfinite(q).all() and np.isfinite(qd).all()):
        at = t[np.argmin(np.isfinite(q).all(axis=1))]
        return _without_motion(benchmark, source, f"not finite at t = {at:g} s")
    took = {"wall_time": time.perf_counter() - clock, "note": ""}
    rows = [
        {**where, **took, "t": instant.t, "quantity": quantity, "error": error}
        for instant in benchmark.instants
        for k in [int(np.searchsorted(t, instant.t))]
        for quantity, error in _errors(start, instant, q[[k]], qd[[k]], multipliers=source == ANALYTIC)
    ]
    drift = energy_drift(start, q, qd)
    return [*rows, {**where, **took, "t": benchmark.span, "quantity": "energy drift [of its peak]", "error": drift}]


def _without_motion(benchmark: Benchmark, source: str, note: str) -> list[dict[str, Any]]:
    row = {"benchmark": benchmark.robot, "source": source, "t": benchmark.span, "quantity": "motion", "note": note}
    return [row]


def exit_status(found: pd.DataFrame) -> int:
    """Exit status, as `statuses.exit_status` says: nothing is judged, but a source may have no motion."""
    lost = int(found["error"].isna().sum())
    return statuses.exit_status({"agree": len(found) - lost, "not run": lost})


def energy_drift(start: Start, q: Array, qd: Array) -> float:
    """Largest change of the energy beyond the work of the efforts, over the largest kinetic energy [-].

    Args:
        start: How the motion begins.
        q: Joint positions [m or rad], shape (nt, nq).
        qd: Joint velocities [m/s or rad/s], shape (nt, nv).
    """
    mechanism = start.mechanism
    energy = total_energy(mechanism, q, qd).real
    kinetic = energy - total_energy(mechanism, q, np.zeros_like(qd)).real
    moved = mechanism.values_of(mechanism.drives, q)
    work = (moved - moved[0]) @ mechanism.gearing.T @ start.effort
    return float(np.abs(energy - energy[0] - work).max() / kinetic.max())


def write_benchmarks(found: pd.DataFrame, folder: Path) -> None:
    """Write `benchmarks.csv`, `benchmarks.html` and `benchmarks.md` into a folder."""
    write_csv(folder, {"benchmarks": found})
    parts = [
        Part(
            title=str(name),
            anchor=f"benchmark-{name}",
            blocks=[
                load_benchmark(str(name)).source + ".",
                *(f"At t = {i.t:g} s: {i.origin}." for i in load_benchmark(str(name)).instants),
                table(matrix(of_robot)),
                [f"{row['source']}: {row['note']}" for row in of_robot[of_robot["note"] != ""].to_dict("records")],
            ],
        )
        for name, of_robot in found.groupby("benchmark", sort=False)
    ]
    write_pages([_introduction(), *parts], folder, stem="benchmarks", title="loopcheck: published free motions")


def _introduction() -> Part:
    return Part(
        title="What is measured",
        anchor="benchmarks",
        blocks=[
            "Each robot is left to constant efforts from the same initial state. The numbers are the largest errors "
            "against those that others published, and how far the energy is off at any of eleven instants.",
            [
                f"{ANALYTIC}: order 8 with error control, loops closed at every evaluation",
                *_settings(),
            ],
        ],
    )


def _settings() -> Iterator[str]:
    for name in engines.versions():
        if free_motion := engines.engine(name).free_motion():
            yield f"{name}/{free_motion.SETTINGS}"


def matrix(found: pd.DataFrame) -> pd.DataFrame:
    """A row for each source, a column for each quantity of one benchmark."""
    quantity = found["quantity"] + found["t"].map(" at {:g} s".format)
    wide = found.assign(quantity=quantity).set_index(["source", "quantity"])["error"]
    return wide.unstack("quantity", sort=False).reset_index()


def _moved(start: Start, source: str, t: Array) -> tuple[Array, Array]:
    """Positions (nt, nq) and velocities (nt, nv) at times (nt,)."""
    mechanism = start.mechanism
    if source == ANALYTIC:
        return simulate(mechanism, lambda _: start.effort, start.q, start.qd, t, independent=start.independent)
    engine, way = source.split("/")
    declared = engines.engine(engine).free_motion()
    if declared is None:
        raise NotFoundError("engine with free motions", engine, _free_engines())
    return declared.free_motion(mechanism, start.effort, (start.q, start.qd), t, careful=way == "careful")


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
    return point_of(poses(mechanism, q), site.body, site.position)
