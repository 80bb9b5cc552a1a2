"""Measurement of the batch and all other sources in turns, so that a busy machine slows all alike."""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck import engines
from loopcheck.analytic.batch import Batch, inverse_dynamics
from loopcheck.analytic.batch.trace import Trace, trace
from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError, MechanismError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import Case

CRANK = """<body name="crank{k}" pos="{x} 0 0"><joint name="a{k}" axis="0 0 1"/>{inertia}
<body name="coupler{k}" pos="0 0.2 0"><joint name="b{k}" axis="0 0 1"/>{inertia}</body>"""
ROCKER = """<body name="rocker{k}" pos="{x} 0 0"><joint name="d{k}" axis="0 0 1"/>{inertia}</body>"""
INERTIA = '<inertial pos="0 0.1 0" mass="0.5" diaginertia="2e-3 1e-3 3e-3"/>'


ROBOTS = ("3prr", "6spu", "6x6r")
SAMPLES = 100_000
CHAIN_SAMPLES = 20_000
REPETITIONS = 7
FEW = (1, 3, 10, 30, 100, 300)
"""Sample counts of small batches."""
ENOUGH = 300
"""Smallest number of samples in a timed call, for the resolution of the clock."""
BATCH, SCATTERED = "batch", "batch, a guess for each sample"
DERIVED = {
    "batch with derivatives": ("q", "qd", "qdd"),
    "batch with derivatives, parameters too": ("q", "qd", "qdd", "parameters"),
}
"""Derivatives of the efforts in a batch."""
GUESS = 1e-3
"""Distance of the guesses from scattered samples [m or rad]."""
SIMULATIONS = ("mujoco/forward", "pybullet/forward")
RNEA, LOOP = "pin.rnea, Python loop", "closed loop with Pinocchio, Python"
SINE_AND_COSINE = 34
"""Operations of the polynomials for sine and cosine of an angle [-]."""


def robot_rows(case: Case, samples: int) -> list[Mapping[str, Any]]:
    """Rows of the batch of a robot, and ratios of all other sources to it."""
    mechanism, motion = case.mechanism, prescribe(case)
    drive = motion.law(np.linspace(motion.t[0], motion.t[-1], samples))
    start = time.process_time()
    traced, why_not = _traced(mechanism, motion.q[0])
    tracing = time.process_time() - start
    batch = inverse_dynamics(mechanism, drive, motion.q[0], traced=traced, evaluator=_evaluator())  # compiles first
    ways = _ways(case, motion, drive, traced)
    spent = alternated(ways)
    columns = {"study": "robot", "subject": case.robot.name, "size": samples}
    rows = [{**columns, "quantity": name, "unit": "µs/sample", **_spread(1e6 * t)} for name, t in spent.items()]
    rows += [
        {**columns, "quantity": f"{name} / {BATCH}", "unit": "-", **_spread(t / spent[BATCH])}
        for name, t in spent.items()
        if name != BATCH
    ]
    rows.append(
        {
            **columns,
            "quantity": "lagrange / noc",
            "unit": "-",
            **_spread(spent["analytic/lagrange"] / spent["analytic/noc"]),
        }
    )
    rows.append({**columns, "quantity": "tracing, once", "unit": "s", **_spread(np.array([tracing])), "note": why_not})
    counts = {"left to the plain version": batch.plain, "extrapolated, without a Newton step": batch.extrapolated}
    rows += [{**columns, "quantity": name, "unit": "samples", **_spread(np.array([n]))} for name, n in counts.items()]
    return rows + [{**columns, **row} for row in (_limits(traced, spent[BATCH]) if traced else ())]


def _traced(mechanism: Mechanism, q: Array) -> tuple[Trace | None, str]:
    """The trace of a mechanism, or None and why its batch is left to the plain version."""
    try:
        return trace(mechanism, q), ""
    except MechanismError as error:
        return None, f"computed by the plain version: {error}"


def alternated(ways: Mapping[str, tuple[Callable[[], Any], int]]) -> dict[str, Array]:
    """Time of each way for a sample [s], in turns, shape (REPETITIONS,); each comes with how many samples it does."""
    spent = {name: np.zeros(REPETITIONS) for name in ways}
    for k in range(REPETITIONS):
        for name, (way, count) in ways.items():
            spent[name][k] = _timed(way) / count
    return spent


def few_rows(case: Case) -> list[Mapping[str, Any]]:
    """Cost of a sample of small batches, and its ratio to a loop in Python over Pinocchio on closed states."""
    mechanism, motion = case.mechanism, prescribe(case)
    traced, _ = _traced(mechanism, motion.q[0])
    if traced is None:
        return []
    loops = _loops(case, motion)
    drive = motion.law(np.linspace(motion.t[0], motion.t[-1], max(FEW)))
    rows: list[Mapping[str, Any]] = []
    for n in FEW:
        ways = _batches(mechanism, Drive(*(x[:n] for x in drive)), motion.q[0], traced)
        ways = {name: _repeated(act, count) for name, (act, count) in ways.items()}
        spent = alternated(ways | {name: way for name, way in loops.items() if name == LOOP})
        row = {"study": "few", "subject": case.robot.name, "size": n}
        for name in ways:
            rows.append({**row, "quantity": name, "unit": "µs/sample", **_spread(1e6 * spent[name])})
            if LOOP in spent:
                ratio = spent[name] / spent[LOOP]
                rows.append({**row, "quantity": f"{name} / {LOOP}", "unit": "-", **_spread(ratio)})
    return rows


def _repeated(act: Callable[[], Any], count: int) -> tuple[Callable[[], Any], int]:
    """A call of so few samples repeated until there are enough."""
    times = -(-ENOUGH // count)
    return (lambda: [act() for _ in range(times)]), times * count


def harness_rows(case: Case) -> list[Mapping[str, Any]]:
    """Time of each simulation through our adapter over the time in the engine's own functions."""
    motion = prescribe(case)
    rows: list[Mapping[str, Any]] = []
    for name in SIMULATIONS:
        engine, _ = name.split("/")
        if engines.installed(engine) and name not in case.robot.without:
            act = partial(engines.load(name).compute_efforts, case, motion)
            ratio = np.array([_timed(act) / _inside(act, engine) for _ in range(REPETITIONS)])
            columns = {"study": "harness", "subject": case.robot.name, "size": len(motion.t)}
            rows.append({**columns, "quantity": f"{name} / {engine}'s own functions", "unit": "-", **_spread(ratio)})
    return rows


def _inside(act: Callable[[], Any], module: str) -> float:
    """Time in the functions of a compiled module during a call [s], less the cost of the measurement."""
    spent, calls = _watched(act, module)
    empty, empty_calls = _watched(lambda: [len(()) for _ in range(10_000)], "builtins")
    return spent - calls * empty / empty_calls


def _watched(act: Callable[[], Any], module: str) -> tuple[float, int]:
    """Time between the calls and the returns of a compiled module's functions [s], and how often they are called."""
    spent, start, calls = 0.0, 0.0, 0

    def watch(_: Any, event: str, called: Any) -> None:
        nonlocal spent, start, calls
        if event.startswith("c_") and (getattr(called, "__module__", None) or "").startswith(module):
            now = time.process_time()
            if event == "c_call":
                start, calls = now, calls + 1
            else:
                spent += now - start

    sys.setprofile(watch)
    try:
        act()
    finally:
        sys.setprofile(None)
    return spent, calls


def _ways(case: Case, motion: Any, drive: Drive, traced: Trace | None) -> dict[str, tuple[Callable[[], Any], int]]:
    """Everything that computes the efforts, by name, with the number of samples it does."""
    count = len(motion.t)
    ways = {**_batches(case.mechanism, drive, motion.q[0], traced), **_loops(case, motion)}
    if traced:
        for name, wanted in DERIVED.items():
            act = partial(
                inverse_dynamics,
                *(case.mechanism, drive, motion.q[0]),
                traced=traced,
                evaluator=_evaluator(),
                derivatives=wanted,
            )
            act()  # traces and compiles
            ways[name] = (act, len(drive.q))
    for source in (Noc(), Lagrange()):
        ways[source.name] = (lambda source=source: source.compute_efforts(case, motion), count)  # type: ignore[misc]
    for name in ("mujoco/kkt", "pybullet/kkt"):
        if engines.installed(name.split("/")[0]):
            route = engines.load(name)
            ways[name] = (lambda route=route: route.compute_efforts(case, motion), count)  # type: ignore[misc]
    return ways


def _batches(
    mechanism: Mechanism, drive: Drive, start: Array, traced: Trace | None
) -> dict[str, tuple[Callable[[], Any], int]]:
    """The batch along a path, and of the same samples in any order, each with a guess of its own."""
    evaluator = _evaluator()

    def batch(drive: Drive = drive, guess: Array = start) -> Batch:
        return inverse_dynamics(mechanism, drive, guess, traced=traced, evaluator=evaluator)

    order = np.random.default_rng(0).permutation(len(drive.q))
    mixed, near = Drive(*(x[order] for x in drive)), batch().q[order] + GUESS
    return {BATCH: (batch, len(order)), SCATTERED: (lambda: batch(mixed, near), len(order))}


def _loops(case: Case, motion: Any) -> dict[str, tuple[Callable[[], Any], int]]:
    """Loops in Python over Pinocchio, if it is there and has the mechanism."""
    if not engines.installed("pinocchio"):
        return {}
    from loopcheck.engines.pinocchio.simple_loop import simple_loop

    try:
        loop = simple_loop(case.mechanism)
    except HarnessError:
        return {}
    states = loop.states(motion.q, motion.qd, motion.qdd)
    many = states * (5000 // len(states) + 1)
    return {RNEA: (lambda: loop.bare(many), len(many)), LOOP: (lambda: loop.efforts(states), len(states))}


def _limits(traced: Trace, spent: Array) -> list[Mapping[str, Any]]:
    """Ratios of the batch to the floating-point and memory limits of a core."""
    tape, mechanism = traced.efforts, traced.mechanism
    flops = tape.operations + SINE_AND_COSINE * tape.angles
    moved = 8 * (3 * len(mechanism.drives) + mechanism.na + mechanism.nq + 1)
    peak, bandwidth = _peak_flops(), _bandwidth()
    return [
        {
            "quantity": "operations, one Newton step",
            "unit": "1/sample",
            **_spread(np.array([flops])),
            "note": "of an extrapolated sample, including the correction of its position",
        },
        {"quantity": "speed", "unit": "Gflop/s", **_spread(flops / spent / 1e9)},
        {"quantity": "of a matrix product's speed", "unit": "-", **_spread(flops / spent / peak)},
        {"quantity": "of the speed of copying memory", "unit": "-", **_spread(moved / spent / bandwidth)},
    ]


def _peak_flops(n: int = 600) -> float:
    """Operations per second of a matrix product, an estimate of a core's limit."""
    A = np.ones((n, n))
    return 2 * n**3 / min(_timed(lambda: A @ A) for _ in range(REPETITIONS))


def _bandwidth(size: int = 4_000_000) -> float:
    """Bytes per second that a copy reads and writes."""
    a, b = np.ones(size), np.ones(size)
    return 16 * size / min(_timed(lambda: np.copyto(b, a)) for _ in range(REPETITIONS))


def _timed(act: Callable[[], Any]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start


def sample_rows(case: Case) -> list[Mapping[str, Any]]:
    """Cost of a sample against the size of the batch."""
    motion = prescribe(case)
    traced, _ = _traced(case.mechanism, motion.q[0])
    if traced is None:
        return []
    rows: list[Mapping[str, Any]] = []
    for samples in (1, 10, 100, 1000, 10_000, 100_000, 1_000_000):
        drive = motion.law(np.linspace(motion.t[0], motion.t[-1], samples))
        spent = _batch_times(case.mechanism, drive, motion.q[0], traced)
        rows.append(
            {
                "study": "samples",
                "subject": case.robot.name,
                "quantity": BATCH,
                "unit": "µs/sample",
                "size": samples,
                **_spread(1e6 * spent),
            }
        )
    return rows


def chain_rows(lengths: Sequence[int]) -> list[Mapping[str, Any]]:
    """Cost of a sample against the number of loops."""
    rows: list[Mapping[str, Any]] = []
    medians = []
    for n in lengths:
        mechanism = four_bar_chain(n)
        drive = _swing(mechanism, np.linspace(0, 2 * np.pi * CHAIN_SAMPLES / SAMPLES, CHAIN_SAMPLES))
        q = np.zeros(mechanism.nq)
        start = time.process_time()
        traced = trace(mechanism, q)
        tracing = time.process_time() - start
        spent = _batch_times(mechanism, drive, q, traced)
        medians.append(float(np.median(spent)))
        columns = {"study": "chain", "subject": "four-bars", "size": n}
        rows.append({**columns, "quantity": BATCH, "unit": "µs/sample", **_spread(1e6 * spent)})
        rows.append({**columns, "quantity": "tracing, once", "unit": "s", **_spread(np.array([tracing]))})
        count = traced.newton.operations + traced.efforts.operations
        rows.append({**columns, "quantity": "operations", "unit": "1/sample", **_spread(np.array([float(count)]))})
    if len(lengths) > 2:
        half = len(lengths) // 2
        growth = np.polyfit(np.log(lengths[half - 1 :]), np.log(medians[half - 1 :]), 1)[0]
        columns = {"study": "chain", "subject": "four-bars", "size": lengths[-1]}
        note = f"exponent of the time for at least {lengths[half - 1]} loops"
        rows.append({**columns, "quantity": "growth", "unit": "-", **_spread(np.array([growth])), "note": note})
    return rows


def _swing(mechanism: Mechanism, t: Array) -> Drive:
    """Swing of all motors from q = 0, neighbours in opposite directions, so that the chain does not roll up.

    Args:
        t: Times [rad of the swing], shape (nt,).
    """
    size = np.where(np.arange(len(mechanism.drives)) % 2, -0.2, 0.2)
    sine, cosine = (np.asarray(function(t[:, None]), dtype=np.float64) for function in (np.sin, np.cos))
    return Drive(q=size * sine, qd=size * cosine, qdd=-size * sine)


def _batch_times(mechanism: Mechanism, drive: Drive, q: Array, traced: Trace) -> Array:
    """CPU time of a sample in each repetition [s], after an uncounted repetition, shape (repetitions,)."""

    def act() -> Batch:
        return inverse_dynamics(mechanism, drive, q, traced=traced, evaluator=_evaluator())

    act()
    return np.array([_timed(act) for _ in range(REPETITIONS)]) / len(drive.q)


def _spread(values: Array) -> dict[str, float]:
    return {"lowest": float(values.min()), "median": float(np.median(values)), "highest": float(values.max())}


def _evaluator() -> str:
    return "llvm" if find_spec("llvmlite") is not None else "numpy"


def four_bar_chain(n: int) -> Mechanism:
    """The mechanism of n four-bars, closed at q = 0, a motor on each crank: 3n bodies, n loops."""
    inside = ""
    for k in reversed(range(n)):
        x = 0.0 if k == 0 else 0.02
        crank = CRANK.format(k=k, x=x, inertia=INERTIA)
        inside = f"{crank}{inside}</body>{ROCKER.format(k=k, x=x + 0.3, inertia=INERTIA)}"
    loops = "".join(
        f'<connect name="c{k}" body1="coupler{k}" body2="rocker{k}" anchor="0.3 0.05 0"/>' for k in range(n)
    )
    motors = "".join(f'<motor name="m{k}" joint="a{k}"/>' for k in range(n))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"chain{n}.xml"
        path.write_text(
            f'<mujoco model="chain{n}"><option gravity="0 -9.81 0"/><worldbody>{inside}</worldbody>'
            f"<equality>{loops}</equality><actuator>{motors}</actuator></mujoco>",
            encoding="utf-8",
        )
        return read_mechanism(ModelFile(path=path))
