"""The resolution of a route is measured for errors beyond the limit, and excuses no fault."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import isnan, nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, Refinable, Source
from loopcheck.robots.errors import EngineError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.check.efforts import compare, resolution
from loopcheck.validation.check.efforts.compare import summarize_resolved
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.noise import FIGURES, FORMULATION, noise_rows
from loopcheck.validation.check.efforts.resolution import ULPS, measure_resolution, moved, variants
from loopcheck.validation.check.efforts.rules import Evidence, judge_effort
from loopcheck.validation.check.study import run
from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import registered
from tests.conftest import MODELS, CaseMaker
from tests.cpu_time import extended_but
from tests.faults.seeds import WRONG
from tests.outcomes import ran
from tests.validation.conftest import in_this_process

SIMULATING = [name for name in engines.names() if name.endswith(("/forward", "/forward_single"))]
NOT_ON_REQUEST = [name for name in SIMULATING if not engines.on_request(name)]
LONG = ("pybullet/forward", "drake/forward")
"""Routes that simulate for seconds."""
CHANGED = ("mass 1 %", "gravity turned", "joint damping", "one step late", "one sign")
"""Faults with an effect above the tolerance of a simulating route."""


@dataclass(frozen=True)
class Altered:
    """A route and its variants with a change."""

    source: Refinable
    compute: Callable[[Source, Case, Motion], EffortHistory]

    @property
    def name(self) -> str:
        return self.source.name

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        return self.compute(self.source, case, motion)

    def tightened(self) -> "Altered":
        return Altered(self.source.tightened(), self.compute)  # type: ignore[arg-type]

    def refined(self) -> "Altered":
        return Altered(self.source.refined(), self.compute)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def crank() -> tuple[Case, Motion]:
    case = make_case(load("slider_crank"), variant="default", mode="home", configuration="vertical")
    return case, prescribe(case)


def route_of(name: str) -> Refinable:
    if not engines.installed(name.split("/")[0]):
        pytest.skip(f"{name} is not installed")
    route = engines.load(name)
    assert isinstance(route, Refinable)
    return route


@pytest.mark.parametrize("seed", [0, 1])
def test_all_of_a_motion_moves_by_two_units_in_the_last_place(prr_motion: Motion, seed: int) -> None:
    other = moved(prr_motion, np.random.default_rng(seed))
    between = prr_motion.t[:-1] + 1e-3
    pairs = [
        *((getattr(prr_motion, name), getattr(other, name)) for name in ("q", "qd", "qdd")),
        *zip(prr_motion.law(between), other.law(between), strict=True),
        *(
            (getattr(m, name), getattr(n, name))
            for m, n in [(prr_motion.assemble(between), other.assemble(between))]
            for name in ("q", "qd", "qdd")
        ),
    ]
    for before, after in pairs:
        assert (np.abs(after - before) <= 2.5 * np.abs(np.spacing(before))).all()
        assert (after != before)[before != 0].all()
        assert 0.3 < (after > before)[before != 0].mean() < 0.7
    assert ULPS == 2


def test_what_is_moved_is_drawn_by_the_seed_that_is_recorded(prr_motion: Motion) -> None:
    (variant,) = variants("mujoco/kkt", prr_motion)
    assert variant.name == resolution.MOVED
    np.testing.assert_array_equal(variant.motion.q, moved(prr_motion, np.random.default_rng(0)).q)


@pytest.mark.extended("test_truncation_is_told_from_a_fault")
@pytest.mark.parametrize("name", NOT_ON_REQUEST)
def test_variants_of_a_route_step_and_solve_finer(name: str, crank: tuple[Case, Motion]) -> None:
    """Half the step, and at the finest of them a smaller error: extrapolated, it may be solver noise already."""
    route, reference = route_of(name), sources.load(sources.REFERENCE).compute_efforts(*crank)
    own, tight, fine = (source.compute_efforts(*crank) for source in (route, route.tightened(), route.refined()))
    assert [history.ladder[-1].dt for history in (tight, fine)] == [own.ladder[-1].dt, own.ladder[-1].dt / 2]
    errors = [np.abs(history.ladder[-1].effort - reference.effort).max() for history in (own, fine)]
    assert errors[1] < errors[0]
    assert dict(tight.settings) != dict(own.settings) or any(
        says in own.settings["solver"] for says in ("direct", "tolerance cannot be set")
    )
    assert type(route.refined()) is type(route.tightened()) is type(route)


@pytest.mark.parametrize("name", [name for name in SIMULATING if name not in NOT_ON_REQUEST])
def test_variants_of_a_route_that_waits_to_be_named(name: str) -> None:
    route = route_of(name)
    own, tight, fine = (vars(source)["settings"] for source in (route, route.tightened(), route.refined()))
    assert tight == replace(own, iterations=2 * own.iterations)
    assert fine == replace(own, division=2, compliances=tuple(c / 2 for c in own.compliances))


@pytest.mark.parametrize(
    ("error", "resolution", "verdict", "reason"),
    [
        (1.0, None, "agree", ""),
        (1.0, 5.0, "agree", ""),
        (1.1, None, "disagree", ""),
        (1.1, nan, "not comparable", "the resolution of this route could not be measured: error 1.1, limit 1"),
        (1.1, 0.4, "not comparable", "below the resolution of this route: error 1.1, resolution 0.4, limit 1"),
        (1.2, 0.4, "not comparable", "below the resolution of this route: error 1.2, resolution 0.4, limit 1"),
        (1.3, 0.4, "disagree", "error 1.3, resolution 0.4, limit 1"),
        (1.1, 0.0, "disagree", "error 1.1, resolution 0, limit 1"),
    ],
)
def test_an_error_is_judged_by_its_limit_and_by_what_is_resolved(
    error: float, resolution: float | None, verdict: str, reason: str
) -> None:
    assert judge_effort(error, 1.0, resolution) == (verdict, reason)


def test_an_exact_route_resolves_round_off(prr: Case, prr_motion: Motion) -> None:
    outcome = evaluate(prr, prr_motion, "mujoco/kkt")
    assert outcome.compared is not None
    found = measure_resolution(prr, prr_motion, "mujoco/kkt", outcome.compared)
    peak = np.abs(outcome.compared.effort).max()
    assert list(found.effort) == ["q1", "q2", "q3"]
    assert all(1e-16 < change / peak < 1e-13 for change in found.effort.values())
    assert found.note == ""
    assert isnan(found.power_balance)
    exact = ran(evaluate(prr, prr_motion, sources.REFERENCE))
    assert 0 < measure_resolution(prr, prr_motion, sources.REFERENCE, exact.history).power_balance < 1e-14


def test_a_limit_below_the_resolution_leaves_nothing_to_compare(prr: Case) -> None:
    """In the run itself, with workers: the rows contain error, resolution and limit, and the seed is recorded."""
    results = run([prr], source_names=("mujoco/kkt",), own_limits={"mujoco/kkt": 1e-16})
    rows = results.summary[results.summary["source"] == "mujoco/kkt"]
    for verdict, note in rows[["verdict", "note"]].itertuples(index=False):
        error, resolved, limit = (float(x) for x in re.findall(r"(?:error|resolution|limit) ([\d.][^,;]*)", note)[:3])
        assert error > limit
        is_below = error <= 3 * resolved
        assert verdict == ("not comparable" if is_below else "disagree")
        assert note.startswith("below the resolution of this route: ") == is_below
    assert "not comparable" in set(rows["verdict"])
    assert results.run["seeds"] == {"resolution": 0}


@pytest.mark.extended("test_an_error_is_judged_by_its_limit_and_by_what_is_resolved")
def test_nothing_is_measured_where_nothing_is_beyond(
    crank: tuple[Case, Motion], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a run that agrees."""

    def never(*_: object) -> None:
        raise AssertionError("resolution was measured")

    monkeypatch.setattr(compare, "measure_resolution", never)
    case, _ = crank
    with in_this_process() as patch:
        patch.setattr("loopcheck.validation.check.stages.measure_resolution", never)
        assert run([case], source_names=("mujoco/kkt",)).run["seeds"] == {}


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        *product(("mujoco/forward", "pinocchio/forward", "exudyn/forward"), CHANGED),
        # simulates for seconds: a fault of the model, and one of the route
        *extended_but([], product(("pybullet/forward",), ("mass 1 %", "one step late")), "test_no_fault_is_excused"),
    ],
)
def test_no_fault_is_excused(
    name: str, fault: str, crank: tuple[Case, Motion], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault is in all variants of its route, so it stays in their comparison."""
    case, motion = crank
    faulty = Altered(route_of(name), WRONG[fault])
    reference = evaluate(case, motion, sources.REFERENCE)
    monkeypatch.setattr(sources, "load", lambda _: faulty)
    rows = summarize_resolved([reference, evaluate(case, motion, name)], motion)
    row = rows[rows["source"] == name].iloc[0]
    assert row["verdict"] == "disagree"
    assert "resolution" in row["note"]


def test_truncation_is_told_from_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps too long for the limit: not comparable. The same with a mass that is wrong: disagree."""
    pytest.importorskip("pinocchio")
    from loopcheck.engines.pinocchio.routes.forward import PinocchioForward, Settings

    case = make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")
    motion, coarse = prescribe(case), PinocchioForward(Settings(steps=(0.01,)))
    reference = evaluate(case, motion, sources.REFERENCE)
    for source, verdict in (
        (coarse, "not comparable"),
        (Altered(coarse, WRONG["mass 1 %"]), "disagree"),
    ):
        monkeypatch.setattr(sources, "load", lambda _, source=source: source)
        rows = summarize_resolved([reference, evaluate(case, motion, "pinocchio/forward")], motion)
        row = rows[rows["source"] == "pinocchio/forward"].iloc[0]
        assert row["relative_error"] > row["tolerance"]
        assert row["verdict"] == verdict


@pytest.mark.parametrize(("sample", "verdict"), [(0, "not comparable"), (1, "not comparable"), (-1, "disagree")])
def test_an_error_of_the_start_is_found_though_no_step_changes_it(
    sample: int, verdict: str, crank: tuple[Case, Motion], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same error at all steps, counted from the start of a simulation or at the end of the motion."""
    case, motion = crank

    def late(source: Source, case: Case, motion: Motion) -> EffortHistory:
        history = source.compute_efforts(case, motion)
        effort = history.effort.copy()
        effort[sample] += 1e-2 * np.abs(effort).max()
        return replace(history, effort=effort)

    reference = evaluate(case, motion, sources.REFERENCE)
    route = route_of("mujoco/forward")
    monkeypatch.setattr(sources, "load", lambda _: Altered(route, late))
    rows = summarize_resolved([reference, evaluate(case, motion, "mujoco/forward")], motion)
    row = rows[rows["source"] == "mujoco/forward"].iloc[0]
    assert row["relative_error"] > row["tolerance"]
    assert row["verdict"] == verdict


def test_open_loops_are_no_matter_of_resolution(crank: tuple[Case, Motion], monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit besides the effort's that is exceeded disagrees, however little is resolved."""
    case, motion = crank
    route = route_of("mujoco/forward")

    def drifting(source: Source, case: Case, motion: Motion) -> EffortHistory:
        return replace(source.compute_efforts(case, motion), closure_drift=Deviation(length=1.0))

    reference = evaluate(case, motion, sources.REFERENCE)
    monkeypatch.setattr(sources, "load", lambda _: Altered(route, drifting))
    outcome = evaluate(case, motion, "mujoco/forward")
    unresolved = resolution.Resolution(effort={case.mechanism.actuators[0].name: 1e9})
    rows = compare.summarize([reference, outcome], Evidence(resolutions={(case.key, "mujoco/forward"): unresolved}))
    row = rows[rows["source"] == "mujoco/forward"].iloc[0]
    assert (row["verdict"], row["note"][:13]) == ("disagree", "closure drift")


CHANGES = {"moved": 0.25, "tightened": 0.5, "refined": -1.0, "restarted": 2.0}


@dataclass(frozen=True)
class Brittle:
    """A simulating source with some failing variants, each with efforts of its own."""

    effort: Array
    whole: tuple[str, ...]
    kind: str = "own"
    name: str = "mujoco/forward"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        kind = "moved" if self.kind == "own" else self.kind
        if len(motion.t) < len(self.effort):
            kind = "restarted"
        if kind not in self.whole:
            raise EngineError(f"mujoco: {kind} diverges")
        names = tuple(actuator.name for actuator in case.mechanism.actuators)
        return EffortHistory(
            source=self.name, actuators=names, t=motion.t, effort=self.effort[-len(motion.t) :] + CHANGES[kind]
        )

    def tightened(self) -> "Brittle":
        return replace(self, kind="tightened")

    def refined(self) -> "Brittle":
        return replace(self, kind="refined")


@pytest.mark.parametrize(
    ("whole", "change", "notes"),
    [
        (("moved", "tightened", "refined", "restarted"), 2.0, []),
        (
            ("tightened",),
            0.5,
            [
                "motion moved by 2 ulps: mujoco: moved",
                "compliance halved: mujoco: refined",
                "middle of the motion: mujoco: restarted",
            ],
        ),
        (
            (),
            nan,
            [
                "2 ulps: mujoco: moved",
                "100 times tighter: mujoco: tightened",
                "compliance halved: mujoco: refined",
                "middle of the motion: mujoco: restarted",
            ],
        ),
    ],
)
def test_variants_that_fail_are_told(
    whole: tuple[str, ...],
    change: float,
    notes: list[str],
    prr: Case,
    prr_motion: Motion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    effort = np.ones((len(prr_motion.t), 3))
    monkeypatch.setattr(sources, "load", lambda _: Brittle(effort, whole))
    own = EffortHistory(source="mujoco/forward", actuators=("q1", "q2", "q3"), t=prr_motion.t, effort=effort)
    found = measure_resolution(prr, prr_motion, "mujoco/forward", own)
    np.testing.assert_equal(list(found.effort.values()), [change] * 3)
    said = found.note.split("; ") if found.note else []
    assert len(said) == 4 - len(whole)
    assert all(line.startswith("no efforts with ") and note in line for line, note in zip(said, notes, strict=True))


@pytest.mark.parametrize("name", NOT_ON_REQUEST)
@pytest.mark.parametrize("configuration", ["horizontal", "vertical"])
def test_a_small_actuator_is_resolved_beside_a_large_one(name: str, configuration: str, model_case: CaseMaker) -> None:
    """A finger of grams beside a lift of 500 kg: errors over their own peaks, which are seven decades apart."""
    case = model_case(Path(MODELS / "lift_and_finger.xml"), configuration=configuration)
    motion, route = prescribe(case), route_of(name)
    reference = sources.load(sources.REFERENCE).compute_efforts(case, motion).effort
    peaks = np.abs(reference).max(axis=0)
    assert peaks[0] > 1e6 * peaks[1]
    error = np.abs(route.compute_efforts(case, motion).effort - reference).max(axis=0)
    assert (error / peaks < 0.1 * (registered()[name].relative_error or 0)).all()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.extended("test_noise_is_registered_from_all_robots")] * (name in LONG))
        for name, of in registered().items()
        if of.relative_error is not None and "mjx" not in name
    ],
)
def test_noise_is_registered_from_all_robots(name: str, crank: tuple[Case, Motion]) -> None:
    """No noise exceeds the registered noise; all robots: `python -m loopcheck.validation.check.efforts.noise`."""
    case, _ = crank
    if name not in sources.names(case.robot):
        pytest.skip(f"{case.robot.name} has no {name}")
    noise = registered()[name].noise
    assert noise is not None
    rows = noise_rows(case, name)
    assert rows
    figures = [row[figure] for row in rows for figure in FIGURES if figure in row]
    assert not np.isnan(figures).all()  # PyBullet returns no number at some of the moved poses
    assert not any(figure > noise for figure in figures)


@pytest.mark.extended("test_noise_is_registered_from_all_robots")
def test_the_noise_of_a_robot_is_measured_by_its_command(tmp_path: Path) -> None:
    """In workers, which find the functions of the module by name."""
    table = tmp_path / "noise.csv"
    command = [
        sys.executable,
        "-m",
        "loopcheck.validation.check.efforts.noise",
        "--robot",
        "four_bar",
        "--source",
        "analytic/lagrange",
    ]
    done = subprocess.run([*command, "--jobs", "1", "--out", str(table)], capture_output=True, text=True, check=True)
    assert "formulation four_bar" in done.stdout
    figures = pd.read_csv(table)
    assert set(figures["configuration"]) == {"horizontal", "vertical"}
    assert (figures[FORMULATION] > 0).all()
