"""The cheapest settings for an accuracy: equal to a full search, right by an independent loop, and certified."""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.logs.closing.closed_log import ClosedLog
from loopcheck.analytic.logs.closing.closed_motion import States
from loopcheck.analytic.logs.evaluation import Slopes, slopes
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.declarations import STEPS, Family
from loopcheck.engines.mujoco import as_is
from loopcheck.robots.errors import OutputError
from loopcheck.validation.check.efforts.as_is import Settled, residual_series, settled
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.execution.progress import NoDisplay
from loopcheck.validation.execution.workers import ALONE, WorkerPool, Workers, worker_pool
from loopcheck.validation.frame.study import run_study
from loopcheck.validation.studies.atlas.tuning import Here
from loopcheck.validation.tune.bandwidths import bandwidths
from loopcheck.validation.tune.certificate import checksum, read_certificate
from loopcheck.validation.tune.engine import AskedTuning, tuning_of
from loopcheck.validation.tune.obstacle import refined
from loopcheck.validation.tune.runs import judged_run, tuning_runs
from loopcheck.validation.tune.runs.judged_run import JudgedRun
from loopcheck.validation.tune.runs.purposes import OWN, RANDOM, Purpose, given_purposes, purpose_of, variations
from loopcheck.validation.tune.runs.tuning_runs import TuningRuns
from loopcheck.validation.tune.search import Candidate, Reach, Scored, cheapest, choice
from loopcheck.validation.tune.study import PROOF, Tune, tuned_case
from loopcheck.validation.tune.writing import write_tuned
from tests.json_outputs import valid_output, valid_result
from tests.plain_loop import plain_loop
from tests.validation.conftest import Command, Once
from tests.validation.test_stale_results import motion_file

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("tables_only")

FOUR_BAR = Path(__file__).parents[2] / "robots/four_bar/four_bar.xml"
DISCRETE = {"discrete"} if hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE") else set[str]()
SETTLED = ("rms", "largest", "floor", "floor_of_largest", "scale", "internal", "start_peak")
Law = Callable[[Family, float], float]


def families(stages: int, method: str) -> list[Family]:
    return [
        Family(method=method, stages=stages, fixed={"solimp": solimp}, timeconst=k)
        for k, solimp in ((2.0, "hard"), (3.0, "soft"), (5.0, "soft"))
    ]


FAMILIES = [*families(1, "first"), *families(4, "second")]


def smooth(family: Family, step: float, stable: float = 0.011) -> float:
    """Of first and second order; unstable from some step on."""
    softer = 0.4 if family.stages == 1 and family.timeconst == 3 else 1.0
    size = 3 * step if family.stages == 1 else 40 * step**2
    return size * softer if step < stable else np.inf


def stalled(family: Family, step: float) -> float:
    """There is something that no step removes."""
    return smooth(family, step) + 2e-3


def steep(family: Family, step: float) -> float:
    """Near the end of stability worse than by the power of the step."""
    return smooth(family, step) * (1 + (step / 0.004) ** 6)


def cliff(_: Family, step: float, edge: float) -> float:
    """Right up to some step, and wrong beyond it."""
    return 5e-4 if step <= edge else 0.2 * step / edge


def tries(law: Law, tried: list[Candidate]) -> Callable[[Sequence[Candidate], float], list[Scored]]:
    def ask(candidates: Sequence[Candidate], _: float) -> list[Scored]:
        tried.extend(candidates)
        return [Scored(candidate=one, error=law(one.family, one.step), cost=one.price) for one in candidates]

    return ask


@pytest.mark.parametrize("stable", [0.011, 0.0042])
@pytest.mark.parametrize("target", [3e-2, 1e-2, 2e-3, 1e-4, 1e-6])
def test_the_search_finds_what_trying_all_finds(target: float, stable: float) -> None:
    tried: list[Candidate] = []
    law = partial(smooth, stable=stable)
    best = choice(list(cheapest(FAMILIES, Reach(1.0), target, tries(law, tried))), target)
    every = [
        (family.stages / step, family, step)
        for family in FAMILIES
        for step in STEPS
        if 1 / 40_000 <= step <= 1 / 12 and law(family, step) <= target
    ]
    assert best is not None
    assert best.cost == pytest.approx(min(price for price, *_ in every))
    assert len(tried) < 50  # of 6 families with 30 steps each


@pytest.mark.parametrize("target", [3e-2, 1e-2, 2e-3, 1e-4])
def test_steps_that_are_leapt_over_are_looked_at(target: float) -> None:
    """A jump is based on the error of a step too coarse to predict the finer steps."""
    tried: list[Candidate] = []
    best = choice(list(cheapest(FAMILIES, Reach(1.0), target, tries(steep, tried))), target)
    every = [family.stages / step for family in FAMILIES for step in STEPS if step > 1 / 40_000]
    laws = [steep(family, step) for family in FAMILIES for step in STEPS if step > 1 / 40_000]
    assert best is not None
    assert best.cost == pytest.approx(min(cost for cost, error in zip(every, laws, strict=True) if error <= target))
    assert len(tried) < 60


@pytest.mark.parametrize("edge", STEPS[6:20])
def test_steps_that_are_leapt_over_are_halved(edge: float) -> None:
    """Loops that open from some step on, as those of a hand: 18 % at 1 ms, 0.05 % at 0.25 ms."""
    tried: list[Candidate] = []
    law = partial(cliff, edge=edge)
    best = choice(list(cheapest(FAMILIES[:1], Reach(1.0), 1e-2, tries(law, tried))), 1e-2)
    assert best is not None
    assert best.candidate.step == edge
    first_good = next(k for k, one in enumerate(tried) if one.step <= edge)
    assert len(tried) - first_good - 1 <= 3  # of up to five between the last leap's ends


def test_steps_that_are_leapt_over_are_looked_at_below_the_cost_of_another_method() -> None:
    """Runs that do not settle leap by two, here from 2.5 to 1.25 ms, which costs as much as the other method."""

    def ask(candidates: Sequence[Candidate], _: float) -> list[Scored]:
        good = [one.step < (1.8e-3 if one.family.stages == 1 else 5.1e-3) for one in candidates]
        return [
            Scored(candidate=one, error=1e-4 if is_good else np.inf, cost=one.price, lasts=not is_good)
            for one, is_good in zip(candidates, good, strict=True)
        ]

    best = choice(list(cheapest(FAMILIES, Reach(1.0), 1e-3, ask)), 1e-3)
    assert best is not None
    assert (best.candidate.step, best.cost) == (1.6e-3, 625)


def test_a_candidate_that_is_above_a_limit_on_a_motion_is_tried_on_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """And on no motion twice: motions that are added are tried alone, and next time the hardest first."""
    case = case_of(FOUR_BAR)
    given = tuning_of("mujoco").given(case.mechanism)
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)
    motions = [replace(own, name=name) for name in ("a", "b", "c")]
    asked: list[list[str]] = []

    def results(
        _: Any, tasks: Sequence[tuple[Sequence[Purpose], Any]], extent: judged_run.Extent, __: str
    ) -> list[Any]:
        asked.extend([purpose.name for purpose in purposes] for purposes, _ in tasks)
        errors = {"a": 2e-3, "b": 1e-3, "c": 3e-3}
        every = [[fine_run(one.name, settings, errors[one.name]) for one in some] for some, settings in tasks]
        return [one[:1] if one[0].error > extent.limit else one for one in every]

    def fine_run(name: str, settings: Any, error: float) -> JudgedRun:
        return JudgedRun(purpose=name, settings=settings, error=error, rms=0, start=0, floor=0, window=0, gap=0, cost=1)

    monkeypatch.setattr(TuningRuns, "_results", results)
    pool: Any = None
    runs = TuningRuns(case=case, engine="mujoco", given=given, pool=pool, include_start=False)
    candidate = [Candidate(family=FAMILIES[0], step=1e-3)]
    assert [runs.scored(motions[:2], candidate, limit)[0].error for limit in (1e-3, 1e-3, np.inf)] == [2e-3] * 3
    assert runs.scored(motions, candidate)[0].error == 3e-3
    runs.scored(motions, [Candidate(family=FAMILIES[0], step=2e-3)])
    assert asked == [["a", "b"], ["b"], ["c"], ["c", "a", "b"]]


def test_softer_loops_run_on_as_far_as_they_can_be_better() -> None:
    """Or as far as they reach the accuracy, beside an error just above it."""
    target, limits = 2.5e-3, list[tuple[float, float]]()

    def ask(candidates: Sequence[Candidate], limit: float) -> list[Scored]:
        softer = [one for one in candidates if one.family.timeconst > 2]
        limits.extend((stalled(FAMILIES[0], one.step), limit) for one in softer if one.family.method == "first")
        return [Scored(candidate=one, error=stalled(one.family, one.step), cost=one.price) for one in candidates]

    list(cheapest(FAMILIES, Reach(1.0), target, ask))
    beside = [(error, limit) for error, limit in limits if error > target]
    assert beside
    assert all(limit == max(0.95 * error, target) for error, limit in beside)


def test_the_search_ends_where_no_step_helps() -> None:
    tried: list[Candidate] = []
    scored = list(cheapest(FAMILIES, Reach(1.0), 1e-3, tries(stalled, tried)))
    assert choice(scored, 1e-3) is None
    assert min(one.error for one in scored) < 2.2e-3
    assert len(tried) < 50


def test_the_search_ends_where_a_start_lasts_at_every_step() -> None:
    steps: list[float] = []

    def lasting(candidates: Sequence[Candidate], limit: float) -> list[Scored]:
        steps.extend(one.step for one in candidates)
        return [Scored(candidate=one, error=np.inf, cost=one.price, lasts=one.step < 5e-3) for one in candidates]

    assert all(np.isinf(one.error) for one in cheapest(FAMILIES, Reach(1.0), 1e-3, lasting))
    assert 4e-3 / 20 < min(steps) < 4e-3 / 12  # from 4 ms on no start has ended; before, all have blown up


def test_the_search_ends_where_everything_blows_up() -> None:
    """From the step of the file on: a coarser step may succeed because of its size."""
    steps: list[float] = []

    def unstable(candidates: Sequence[Candidate], limit: float) -> list[Scored]:
        steps.extend(one.step for one in candidates)
        return [Scored(candidate=one, error=np.inf, cost=one.price) for one in candidates]

    list(cheapest(FAMILIES, Reach(1.0, own=2e-3), 1e-3, unstable))
    assert 2e-3 / 20 < min(steps) < 2e-3 / 12


def test_the_search_ends_where_an_error_falls_too_slowly() -> None:
    """As the floor of a log with chattering friction: half of the error is left at a quarter of the step."""
    tried: list[Candidate] = []
    slow = list(cheapest(FAMILIES, Reach(1.0), 1e-3, tries(lambda _, step: 0.7 * (step / 0.02) ** 0.5, tried)))
    assert choice(slow, 1e-3) is None
    assert min(one.step for one in tried) > 1e-3


@pytest.mark.extended("test_no_run_of_a_search_begins_that_would_exceed_its_time")
def test_a_motion_that_motors_are_too_weak_for_is_seen_at_once(tmp_path: Path) -> None:
    """Named are the drive that stays behind and the motor; no step is searched."""
    model = tmp_path / "weak.xml"
    text = FOUR_BAR.read_text(encoding="utf-8")
    assert "<motor " in text
    model.write_text(text.replace("<motor ", '<motor forcelimited="true" forcerange="-.3 .3" '))
    case = case_of(model, motion=motion_file(tmp_path / "m.csv", 6.0))  # a generated motion would keep to the range
    result, conclusion = run_study(Tune(case=case, accuracy=1e-2), tmp_path / "out", workers=ALONE)
    drive, motor = case.mechanism.drives[0].name, case.mechanism.actuators[0].name
    answer = result.record["answer"]
    assert conclusion.verdicts == ["not comparable"]
    assert f"not followed: '{drive}' must stay" in answer
    assert f"limit of their range ({motor} " in answer
    assert len(result.tables["tune"]) < 5


def test_residuals_of_a_run_that_leaves_its_motion_are_not_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "weak.xml"
    text = FOUR_BAR.read_text(encoding="utf-8")
    model.write_text(text.replace("<motor ", '<motor forcelimited="true" forcerange="-.3 .3" '))
    case = case_of(model, motion=motion_file(tmp_path / "m.csv", 6.0))
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)
    monkeypatch.setattr(judged_run, "settled", None)
    given = tuning_of("mujoco").given(case.mechanism)
    (tried,) = judged_run.judge_settings(case, "mujoco", given, [own], {}, judged_run.Extent(50))
    assert tried.reason.startswith("not followed: ")
    assert tried.ended
    assert tried.too_weak


@pytest.mark.extended("tests/validation/test_certificate.py::test_a_claim_that_is_found_again_holds")
def test_dry_friction_holds_no_slower_controller_back(tmp_path: Path) -> None:
    """The feed-forward overcomes it, so a claim on that controller can be made."""
    model = tmp_path / "four_bar.xml"
    model.write_text(FOUR_BAR.read_text().replace('<joint name="crank"', '<joint name="crank" frictionloss="0.95"'))
    case = case_of(model, motion=motion_file(tmp_path / "m.csv", 3.0), configuration="vertical")
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)
    others = [one for one in variations(own) if "controller" in one.name]
    assert [one.name for one in others] == [f"{OWN}, controller × 0.3", f"{OWN}, controller × 2"]
    given = tuning_of("mujoco").given(case.mechanism)
    runs = judged_run.judge_settings(case, "mujoco", given, others, {}, judged_run.Extent(50))
    assert [run.reason for run in runs] == ["", ""]


def test_euler_and_implicitfast_are_one_where_only_joints_are_damped(tmp_path: Path) -> None:
    """Then they are not both tried; a servo with a velocity gain distinguishes them."""
    damped = FOUR_BAR.read_text(encoding="utf-8").replace('type="hinge"', 'type="hinge" damping="0.3"')
    ends, methods = {}, {}
    for name, text in {
        "damped": damped,
        "servo": damped.replace("<motor ", '<general biastype="affine" biasprm="0 0 -3" '),
    }.items():
        model = tmp_path / f"{name}.xml"
        model.write_text(text)
        methods[name] = {one.method for one in tuning_of("mujoco").families(case_of(model).mechanism)}
        for integrator in ("EULER", "IMPLICITFAST"):
            simulated = mujoco.MjModel.from_xml_path(str(model))
            simulated.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
            simulated.opt.gravity[:] = 0, -9.81, 0
            data = mujoco.MjData(simulated)
            mujoco.mj_step(simulated, data, nstep=50)
            ends[name, integrator] = data.qpos.copy()
    np.testing.assert_allclose(ends["damped", "EULER"], ends["damped", "IMPLICITFAST"], rtol=1e-12)
    assert np.abs(ends["servo", "EULER"] - ends["servo", "IMPLICITFAST"]).max() > 1e-6
    assert methods == {"damped": {"Euler", "RK4"}, "servo": {"Euler", "RK4", "implicitfast", *DISCRETE}}


def test_noslip_is_left_out_first_and_kept_on_demand(tmp_path: Path) -> None:
    """It moves loops apart that have dry friction; `mujoco-noslip-parts-loops` measures it."""
    model, tuning = tmp_path / "noslip.xml", tuning_of("mujoco")
    text = FOUR_BAR.read_text(encoding="utf-8").replace("<option", '<option noslip_iterations="5"')
    model.write_text(text, encoding="utf-8")
    mechanism = case_of(model).mechanism
    first, *others = tuning.families(mechanism)
    (written,) = tuning.files(mechanism, first.fixed).values()
    model.write_bytes(written)
    assert mujoco.MjModel.from_xml_path(str(model)).opt.noslip_iterations == 0
    kept = {one.method for one in others if one.keeps({"noslip_iterations"}, tuning.given(mechanism).settings)}
    assert kept == {"Euler", "RK4"}
    assert {one.method for one in [first, *others]} - kept == {"Euler without noslip", "RK4 without noslip"}


def test_a_budget_leaves_out_what_is_too_fine() -> None:
    reach = Reach(1.0, finest={"first": 1e-3, "second": 2e-3})
    scored = list(cheapest(FAMILIES, reach, 1e-6, tries(smooth, [])))
    assert choice(scored, 1e-6) is None
    assert min(one.candidate.step for one in scored if one.candidate.family.method == "first") >= 1e-3
    assert min(one.candidate.step for one in scored if one.candidate.family.method == "second") >= 2e-3


def test_of_equal_costs_the_fewest_changes_win() -> None:
    few = Family(method="m", stages=1, fixed={"solimp": "a"})
    many = Family(method="m", stages=1, fixed={"solimp": "a", "solver": "b"}, timeconst=2)
    scored = [
        Scored(candidate=Candidate(family=family, step=1e-3), error=error, cost=1000.0)
        for family, error in ((many, 1e-5), (few, 9e-4))
    ]
    best = choice(scored, 1e-3)
    assert best is not None
    assert best.candidate.family is few
    assert choice(scored, 1e-6) is None


class Laws:
    """Replaces the run of settings."""

    is_over = False

    def __init__(self, law: Law) -> None:
        self.law, self.families = law, FAMILIES
        self.asked: list[Candidate] = []

    def scored(self, _: Sequence[Purpose], candidates: Sequence[Candidate]) -> list[Scored]:
        return tries(self.law, self.asked)(candidates, np.inf)

    def permitted(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return candidates


def test_where_nothing_is_found_finer_steps_than_the_best_are_tried_while_they_help() -> None:
    """Down to the error that no step removes, and no finer than a budget permits."""
    begin = Scored(candidate=Candidate(family=FAMILIES[0], step=8e-3), error=8e-3 + 1e-4, cost=125.0)

    def law(family: Family, step: float) -> float:
        return step + 1e-4

    for finest, last in ((0.0, 3.125e-5), (2e-3, 2e-3)):
        runs: Any = Laws(law)
        further = refined(runs, [], [begin], Reach(1.0, finest={"first": finest}))
        best = min(further, key=lambda one: one.error)
        assert best.candidate.step == pytest.approx(last)
        assert all(one.step >= finest for one in runs.asked)
        assert len(runs.asked) < 20


@pytest.fixture(scope="module")
def tuned(once: Once) -> Path:
    return once(write_settings)


def write_settings(folder: Path) -> None:
    study = Tune(case=case_of(FOUR_BAR), accuracy=2e-4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning_runs, "PROVEN", 60)
        result, conclusion = run_study(study, folder, workers=ALONE)
    assert conclusion.verdicts == ["agree"]
    assert any(row["chosen"] for row in valid_result(study, result, conclusion)["rows"]["tune"])
    assert result.record["settings"]["integrator"] == "RK4"
    assert result.record["inertial"] < 1e-12
    assert (folder / "tune.html").exists()


@pytest.mark.extended("tests/validation/test_recovery.py::test_all_commands_behave_alike")
def test_a_tuned_file_is_right_in_a_loop_of_ones_own(tuned: Path) -> None:
    """Other gains, another start, and the start left out: within the accuracy, unlike the original."""
    case = case_of(FOUR_BAR)
    motion = prescribe(case)
    effort = Noc().compute_efforts(case, motion).effort

    def error(path: Path) -> float:
        model = mujoco.MjModel.from_xml_path(str(path))
        log = plain_loop(case.mechanism, model, motion, effort)
        series = residual_series(case.mechanism, log, log.q[0])
        late = series.t > 0.3 * series.t[-1]
        return float(np.abs(series.residual[late]).max() / np.abs(series.needed).max())

    assert error(FOUR_BAR) > 3e-4
    assert error(tuned / "tuned.xml") < 2e-4
    assert tuned_case(case, tuned / "tuned.xml").mechanism.model.path.name == "tuned.xml"


@pytest.mark.extended(
    "tests/validation/test_certificate.py::test_a_claim_that_is_found_again_holds",
    "tests/validation/test_certificate.py::test_no_figure_of_a_claim_can_be_falsified",
    "tests/validation/test_certificate.py::test_a_motion_beside_the_certificate_is_part_of_it",
)
@pytest.mark.usefixtures("short_proofs")
def test_a_certificate_holds_until_something_changes(
    tuned: Path, loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither may claims be left out, but one on a motion of the search alone."""
    whole = json.loads((tuned / "certificate.json").read_text())

    def verified(name: str, edit: Callable[[dict[str, Any], Path], Any], *more: str) -> tuple[int, str]:
        """Status and output with an edited copy, whose checksum is right."""
        place = tmp_path / name
        shutil.copytree(tuned, place, ignore=shutil.ignore_patterns(".journal"))
        content = json.loads(json.dumps(whole))
        edit(content, place)
        content["checksum"] = checksum(content)
        (place / "certificate.json").write_text(json.dumps(content))
        arguments = (place / "tuned.xml", "--verify", place / "certificate.json", "--jobs", "1")
        status, out, _ = loopcheck("tune", *arguments, "--out", place / "verified", *more)
        return status, out

    def heavier(_: dict[str, Any], place: Path) -> None:
        model = place / "tuned.xml"
        model.write_text(model.read_text().replace('mass="', 'mass="0'))

    extra = [claim for claim in whole["claims"] if claim["purpose"] == "random motion, seed 0"]  # of the search alone
    required = [claim["purpose"] for claim in whole["claims"] if claim not in extra]
    assert len(extra) == 1
    assert len(required) > 3
    status, out = verified("enough", lambda content, _: content["claims"].remove(extra[0]), "--format", "json")
    rows = valid_output(out)["rows"]["certificate"]
    assert (status, {row["verdict"] for row in rows} - {"measured", ""}) == (0, {"agree"})
    status, out = verified("extra alone", lambda content, _: content.update(claims=extra))
    assert (status, [name for name in required if name not in " ".join(out.split())]) == (1, [])
    status, out = verified(
        "settings", lambda content, _: content.update(settings=dict.fromkeys(whole["settings"], "9"))
    )
    assert (status, f"setting {next(iter(whole['settings']))}" in out) == (1, True)
    status, out = verified("other", heavier)
    assert (status, "file tuned.xml" in out) == (1, True)
    monkeypatch.setattr("loopcheck.engines.versions", lambda: {"mujoco": "9.9.9"})
    status, out = verified("version", lambda *_: None)
    assert (status, "9.9.9" in out) == (1, True)


@pytest.mark.extended("test_where_nothing_acts_nothing_is_reached")
@pytest.mark.parametrize("broken", [{"error": np.nan}, {"floor": np.nan}, {"reason": "lost"}])
def test_what_is_no_number_is_never_reached(
    broken: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every proof fails so, and all rounds are tried."""
    fine = JudgedRun(purpose="", settings={}, error=1e-9, rms=0, start=0, floor=0, window=0, gap=0, cost=1)

    def judged(runs: TuningRuns, phase: str, purposes: Sequence[Purpose], settings: dict[str, str]) -> list[JudgedRun]:
        figures = broken if phase == "proof" else {}
        return [replace(fine, purpose=purpose.name, settings=settings, **figures) for purpose in purposes]

    def found(*_: Any) -> list[Scored]:
        return [Scored(candidate=Candidate(family=FAMILIES[0], step=1e-3), error=0.0, cost=1.0)]

    monkeypatch.setattr(TuningRuns, "on", judged)
    monkeypatch.setattr(TuningRuns, "search", found)
    result, conclusion = run_study(Tune(case=case_of(FOUR_BAR), accuracy=1e-2), tmp_path, workers=ALONE)
    assert conclusion.verdicts == ["disagree"], result.record["answer"]


@pytest.mark.extended("test_the_search_finds_what_trying_all_finds")
@pytest.mark.parametrize(("missed", "lowered"), [(2e-2, 0.45e-2), (1.0, 0.4e-2)])
def test_a_target_is_lowered_only_where_the_search_has_seen_the_motion(
    missed: float, lowered: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A motion missed for the first time takes part in the next search, which needs no margin for it.

    A large excess, as of contacts in these settings alone, would ask for settings that are far more exact than wanted.
    """
    targets: list[float] = []
    seen: set[str] = set()
    fine = JudgedRun(purpose="", settings={}, error=1e-9, rms=0, start=0, floor=0, window=0, gap=0, cost=1)

    def judged(runs: TuningRuns, phase: str, purposes: Sequence[Purpose], settings: dict[str, str]) -> list[JudgedRun]:
        names = [purpose.name for purpose in purposes]
        errors = [missed if name.startswith(RANDOM) and name not in seen else 1e-9 for name in names]
        return [replace(fine, purpose=name, error=error) for name, error in zip(names, errors, strict=True)]

    def found(_: TuningRuns, purposes: Sequence[Purpose], target: float, __: Any) -> list[Scored]:
        targets.append(target)
        seen.update(purpose.name for purpose in purposes)  # other settings are held against other motions
        step = 1e-3 / len(targets)
        return [Scored(candidate=Candidate(family=FAMILIES[0], step=step), error=0.0, cost=1.0)]

    monkeypatch.setattr(TuningRuns, "on", judged)
    monkeypatch.setattr(TuningRuns, "search", found)
    run_study(Tune(case=case_of(FOUR_BAR), accuracy=1e-2), tmp_path, workers=ALONE)
    assert targets[:2] == [1e-2, 1e-2]
    assert targets[2] == pytest.approx(lowered)


def test_results_of_a_proof_replace_those_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof judges more samples; settings that fail it would be chosen and fail again."""
    case = case_of(FOUR_BAR)
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)

    def results(_: Any, tasks: Sequence[tuple[Sequence[Purpose], Any]], __: Any, phase: str) -> list[list[JudgedRun]]:
        error = 1.1e-2 if phase == PROOF else 0.8e-2
        fine = JudgedRun(purpose=own.name, settings={}, error=error, rms=0, start=0, floor=0, window=0, gap=0, cost=1)
        return [[replace(fine, settings=settings) for _ in some] for some, settings in tasks]

    monkeypatch.setattr(TuningRuns, "_results", results)
    pool: Any = None
    given = tuning_of("mujoco").given(case.mechanism)
    runs = TuningRuns(case=case, engine="mujoco", given=given, pool=pool, include_start=False)
    candidate = Candidate(family=FAMILIES[0], step=1e-3)
    assert runs.scored([own], [candidate])[0].error == 0.8e-2
    runs.on(PROOF, [own], candidate.family.settings(candidate.step))
    assert runs.scored([own], [candidate])[0].error == 1.1e-2


def test_half_of_the_time_is_kept_for_the_proof_of_good_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is good, and a coarser step would be: it is sought in the first half of the CPU time only."""
    case = case_of(FOUR_BAR)
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)
    pool = WorkerPool(executor=Here(), progress=NoDisplay(), time_limit=np.inf)
    given = tuning_of("mujoco").given(case.mechanism)

    def cheapest_cost(used: float) -> tuple[bool, float]:
        runs = TuningRuns(case=case, engine="mujoco", given=given, pool=pool, include_start=False, cpu_limit=100.0)

        def scored(_: TuningRuns, __: Sequence[Purpose], candidates: Sequence[Candidate], *___: float) -> list[Scored]:
            runs.cpu = used
            return [Scored(candidate=one, error=one.step / 10, cost=one.price) for one in candidates]

        monkeypatch.setattr(TuningRuns, "scored", scored)
        best = choice(runs.search([own], 1e-3), 1e-3)
        assert best is not None
        return runs.ended_early, best.cost

    (late, coarse), (early, fine) = cheapest_cost(40.0), cheapest_cost(60.0)
    assert (late, early) == (False, True)
    assert coarse < 0.5 * fine


@pytest.mark.parametrize(
    ("target", "limit", "slower", "is_over"), [(2e-5, 30.0, 1, True), (1e-3, 30.0, 1, False), (2e-5, 60.0, 3, False)]
)
def test_no_run_of_a_search_begins_that_would_exceed_its_time(
    target: float, limit: float, slower: float, is_over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run takes as long as its steps: finer and finer steps use up 30 s.

    A method that takes three times as long as its steps say is left out, and the other finds the settings.
    """
    case = case_of(FOUR_BAR)
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)
    given = tuning_of("mujoco").given(case.mechanism)
    pool = WorkerPool(executor=Here(), progress=NoDisplay(), time_limit=np.inf)
    runs = TuningRuns(case=case, engine="mujoco", given=given, pool=pool, include_start=False, cpu_limit=limit)

    def judged(_: Any, __: Any, ___: Any, purposes: Sequence[Purpose], settings: Any, ____: Any) -> list[JudgedRun]:
        step, stages = float(settings["timestep"]), 4 if settings.get("integrator") == "RK4" else 1
        figures: dict[str, Any] = dict.fromkeys(("rms", "start", "floor", "window", "gap"), 0.0)
        cpu = 1e-3 * stages / step * (slower if stages == 4 else 1)
        same: dict[str, Any] = {"settings": settings, "ended": True, "cost": stages / step, "cpu": cpu}
        error = step if step > 5e-5 else 1e-5
        return [JudgedRun(purpose=one.name, error=error, **figures, **same) for one in purposes]

    monkeypatch.setattr("loopcheck.validation.tune.runs.tuning_runs.judge_settings", judged)
    tried = runs.search([own], target)
    assert (choice(tried, target) is None, runs.is_over, runs.left_out > 0) == (is_over, is_over, is_over)
    assert runs.cpu < limit
    assert runs.cpu + runs.left_out >= limit or not is_over


@pytest.mark.parametrize(("error", "wanted"), [(2e-2, ["searched"]), (1e-3, ["searched", "held out"])])
def test_settings_that_fail_on_a_motion_of_the_search_are_proven_on_no_other(error: float, wanted: list[str]) -> None:
    """Its samples are more than those of the search; each further motion cost a G1 11 s."""
    own, asked = purpose_of(case_of(FOUR_BAR), "mujoco", OWN), list[str]()
    assert isinstance(own, Purpose)

    def on(_: str, purposes: Sequence[Purpose], settings: Any) -> list[JudgedRun]:
        asked.extend(one.name for one in purposes)
        return [JudgedRun(purpose=one.name, settings=settings, error=error, floor=0.0) for one in purposes]

    runs: Any = SimpleNamespace(on=on)
    stages = [[replace(own, name=name)] for name in ("searched", "held out")]
    proof, lagging = Tune(case=case_of(FOUR_BAR), accuracy=1e-2)._proof(stages, runs, {})
    assert asked == [run.purpose for run in proof] == wanted
    assert not lagging


def test_a_candidate_above_the_accuracy_on_a_motion_is_not_tried_on_the_next() -> None:
    """Its error serves to choose the next step only."""
    limits = list[float]()

    def ask(candidates: Sequence[Candidate], limit: float) -> list[Scored]:
        limits.extend(limit for one in candidates if one.family in (FAMILIES[0], FAMILIES[3]))
        return [Scored(candidate=one, error=smooth(one.family, one.step), cost=one.price) for one in candidates]

    list(cheapest(FAMILIES, Reach(1.0), 1e-3, ask))
    assert set(limits) == {1e-3}


def test_a_run_that_does_not_settle_passes_its_derivatives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """They took three quarters of the time of such runs with a ToddlerBot, of 33 dofs."""
    case = case_of(FOUR_BAR)
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)
    monkeypatch.setattr(
        "loopcheck.validation.tune.runs.judged_run.settled",
        lambda *arguments, **more: replace(settled(*arguments, **more), reason="not settled", bounds=False),
    )
    given = tuning_of("mujoco").given(case.mechanism)
    (run,) = judged_run.judge_settings(case, "mujoco", given, [own], {}, judged_run.Extent(50))
    assert (run.reason, run.derivatives is None) == ("not settled", False)


@pytest.mark.extended("test_a_run_that_does_not_settle_passes_its_derivatives_on")
def test_runs_of_a_search_along_a_motion_share_the_derivatives_of_their_floors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They took six tenths of the time of a search with 41 drives; the floors of a proof are its own."""
    case, computed = case_of(FOUR_BAR), list[Slopes]()
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)

    def counted(closed: ClosedLog, states: States) -> Slopes:
        computed.append(slopes(closed, states))
        return computed[-1]

    monkeypatch.setattr("loopcheck.analytic.logs.residual.slopes", counted)
    pool = WorkerPool(executor=Here(), progress=NoDisplay(), time_limit=np.inf)
    given = tuning_of("mujoco").given(case.mechanism)
    runs = TuningRuns(case=case, engine="mujoco", given=given, pool=pool, include_start=False)
    family = next(iter(tuning_of("mujoco").families(case.mechanism)))
    candidates = [Candidate(family=family, step=step) for step in (1e-3, 5e-4)]
    for candidate in candidates:
        runs.scored([own], [candidate])
    assert len(computed) == 1
    (proof,) = runs.on(PROOF, [own], candidates[1].family.settings(candidates[1].step))
    assert len(computed) == 2
    floors = [row["floor"] for row in runs.rows]
    assert floors[1] == pytest.approx(proof.floor, rel=0.5)


@pytest.mark.parametrize(("first", "wanted"), [(0.05, 0.3), (0.004, 0.0), (np.nan, np.inf)])
def test_a_perturbed_run_is_judged_once_it_moves_as_the_usual_run(first: float, wanted: float) -> None:
    """The second drive is off by a part of its stroke of 2 for 0.3 s; by as much to the end if no number is given.

    Friction keeps the first drive off the motion in both runs.
    """
    t = 0.1 * np.arange(11)
    aim = np.stack([t, 2 * t], axis=1)
    off = np.where(t < 0.25, 2 * np.nan_to_num(first, nan=0.05), 2 * 0.05 * np.isnan(first))
    controller = SimpleNamespace(q=aim, t=t)
    usual: Any = SimpleNamespace(controller=controller, positions=aim + np.array([0.03, 0.0]))
    perturbed: Any = SimpleNamespace(controller=controller, positions=usual.positions + np.stack([0 * t, off], axis=1))
    assert judged_run._caught_up(perturbed, usual) == pytest.approx(wanted)


def test_where_nothing_acts_nothing_is_reached(tmp_path: Path) -> None:
    """Bodies of next to no mass without gravity: no effort that could be right."""
    case = case_of(FOUR_BAR)
    tuning = tuning_of("mujoco")
    figures: dict[str, Any] = {name: np.zeros(1) for name in SETTLED}
    rest = Settled(**figures, window=0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judged_run, "settled", lambda *_, **__: rest)
        with worker_pool(Workers(jobs=1)) as pool:
            purposes = given_purposes(case, "mujoco", pool)[0]
        unloaded = replace(purposes[0], required=replace(purposes[0].required, peak=np.zeros(1), scale=np.zeros(1)))
        (tried,) = judged_run.judge_settings(
            case, "mujoco", tuning.given(case.mechanism), [unloaded], {}, judged_run.Extent(50)
        )
    assert (tried.reason, tried.bound(start=False)) == (judged_run.NOTHING_ACTS, np.inf)


@pytest.mark.parametrize(("accuracy", "is_judged"), [(0.0, False), (0.009, False), (0.011, True)])
def test_a_run_that_does_not_settle_counts_if_its_bound_is_within_the_accuracy(
    accuracy: float, is_judged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger bound would mislead the search: it says nothing about the error."""
    case, tuning = case_of(FOUR_BAR), tuning_of("mujoco")
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)
    figures: dict[str, Any] = {name: np.zeros(1) for name in SETTLED} | {"largest": 0.01 * own.required.divisor}
    left = Settled(**figures, window=0.1, reason="not settled", bounds=True)
    monkeypatch.setattr(judged_run, "settled", lambda *_, **__: left)
    extent = judged_run.Extent(50, accuracy=accuracy)
    (tried,) = judged_run.judge_settings(case, "mujoco", tuning.given(case.mechanism), [own], {}, extent)
    assert (tried.reason == "", tried.ended, np.isfinite(tried.cost)) == (is_judged, True, True)
    assert tried.bound(start=False) == (pytest.approx(0.01) if is_judged else np.inf)


def test_a_model_is_compiled_once_for_all_runs_with_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a motion of redundant drives is assembled once for all that is as far and as fast."""
    case = case_of(FOUR_BAR)
    given = tuning_of("mujoco").given(case.mechanism)
    own = purpose_of(case, "mujoco", OWN)
    assert isinstance(own, Purpose)
    monkeypatch.setattr("loopcheck.validation.tune.runs.purposes.prescribe", None)
    other = purpose_of(case, "mujoco", "random", (own.motion, 0))
    assert isinstance(other, Purpose)
    compiled: list[Any] = []

    def counted(mechanism: Any) -> Any:
        compiled.append(as_is.compiled(mechanism))
        return compiled[-1]

    monkeypatch.setattr("loopcheck.engines.mujoco.tuning.compiled", counted)
    runs = judged_run.judge_settings(case, "mujoco", given, [own, other], {"timestep": "0.004"}, judged_run.Extent(50))
    assert [one.reason for one in runs] == ["", ""]
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("held", "lowest", "above"),
    [
        ([(2.0, 51.0)], 2.0, 51.0),
        ([(0.0, 1.2), (2.0, 51.0), (90.0, 300.0)], 2.0, 51.0),  # what holds beyond a failure is not part of the range
        ([(0.0, 1e9)], 1.0, None),
    ],
)
def test_bandwidths_are_a_range_without_a_gap(
    held: list[tuple[float, float]], lowest: float, above: float | None
) -> None:
    tried: list[float] = []

    def holds(widths: Sequence[float]) -> list[bool]:
        tried.extend(widths)
        return [any(first <= one <= last for first, last in held) for one in widths]

    found = bandwidths(holds, 100 / 3, (1.0, 1000.0))
    assert found is not None
    assert lowest <= found.lowest < lowest * 10 ** (1 / 6)
    assert (found.below is None) == (above is None)
    if above is None:
        assert (found.above, found.highest == max(tried)) == (None, True)
    else:
        assert above / 1.1 < found.highest <= above < (found.above or 0) <= 1.1 * found.highest
    assert sum(10 <= one < 99.9 for one in tried) <= 6 + 3  # of which three bisect
    assert bandwidths(holds, 1.5, (1.5, 1.6)) is None or above is None


@pytest.mark.extended("test_bandwidths_are_a_range_without_a_gap")
@pytest.mark.usefixtures("short_proofs")
def test_a_certificate_states_bandwidths_that_are_computed_again(
    tuned: Path, loopcheck: Command, tmp_path: Path
) -> None:
    """A wider range is refused without a claim on its end, and with one, as the run fails there.

    A figure that is wrong though well signed is found, too.
    """
    certificate = read_certificate(tuned / "certificate.json")
    assert certificate.bandwidths is not None
    lowest, highest = certificate.bandwidths
    assert lowest <= 0.3 * certificate.bandwidth < 2 * certificate.bandwidth / 1.1 <= highest  # both in the proof
    step = float(certificate.settings["timestep"])
    assert highest < 1 / step
    shutil.copytree(tuned, tmp_path / "wider", ignore=shutil.ignore_patterns(".journal"))
    place = tmp_path / "wider/certificate.json"
    verify = ("tune", tmp_path / "wider/tuned.xml", "--verify", place, "--jobs", "1", "--out", tmp_path / "out")
    end = 2.0 / step
    wider = certificate.model_copy(update={"bandwidths": (lowest, end)})
    forged = [  # half of the error is within its noise floor
        claim.model_copy(update={"gap": claim.gap / 2}) if claim.purpose == OWN else claim
        for claim in certificate.claims
    ]
    place.write_text(wider.model_copy(update={"claims": forged}).with_checksum().model_dump_json(by_alias=True))
    status, out, _ = loopcheck(*verify)
    assert (status, f"controller at {end:g} rad/s" in " ".join(out.split())) == (1, True)
    assert "own motion: gap" in out
    old = next(claim for claim in certificate.claims if f"{highest:g} rad/s" in claim.purpose)
    new = old.model_copy(update={"purpose": old.purpose.replace(f"{highest:g}", f"{end:g}")})
    claims = [new if claim is old else claim for claim in certificate.claims]
    place.write_text(wider.model_copy(update={"claims": claims}).with_checksum().model_dump_json(by_alias=True))
    assert loopcheck(*verify)[0] == 1


@pytest.mark.extended("tests/validation/test_certificate.py::test_a_claim_that_is_found_again_holds")
@pytest.mark.usefixtures("short_proofs")
def test_the_certificate_of_a_catalogue_robot_is_verified_by_the_printed_command(
    loopcheck: Command, tmp_path: Path
) -> None:
    """Its motion follows from its `robot.toml`, which the tuned file does not have."""
    kept = ("--keep-setting", "timestep,integrator", "--jobs", "1")
    status, out, _ = loopcheck("tune", "four_bar", "--accuracy", "20%", *kept, "--out", tmp_path / "out")
    command = re.search(r"Next: loopcheck (.*)", out)
    assert (status, command is not None) == (0, True)
    assert command is not None
    assert loopcheck(*shlex.split(command[1]), "--jobs", "1", "--out", tmp_path / "verified")[0] == 0


@pytest.mark.extended("test_no_run_of_a_search_begins_that_would_exceed_its_time")
@pytest.mark.usefixtures("short_proofs")
def test_a_search_without_cpu_time_writes_the_best_settings_unproven(loopcheck: Command, tmp_path: Path) -> None:
    """The next command continues it and reaches the accuracy."""
    short = ("--motion", motion_file(tmp_path / "m.csv", 3.0))
    arguments = ("tune", FOUR_BAR, "--accuracy", "2e-4", "--jobs", "1", "--out", tmp_path / "out", *short)
    status, out, _ = loopcheck(*arguments, "--cpu-limit", "0.001")
    assert status == 3
    assert "unproven" in out
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out/unproven/tuned.xml"))
    assert model.opt.timestep == float(pd.read_csv(tmp_path / "out/tune.csv").query("chosen")["step"].iloc[0])
    assert not list((tmp_path / "out").rglob("certificate.json"))
    assert "--cpu-limit 0.004" in " ".join(out.split())
    assert out.count("--cpu-limit") == 1


def test_a_users_own_parts_are_never_overwritten(tmp_path: Path) -> None:
    """Included files are changed too, so the model is written elsewhere, or by --in-place, or not at all."""
    text = FOUR_BAR.read_text(encoding="utf-8")
    begin, end = text.index("<equality>"), text.index("</equality>") + len("</equality>")
    (tmp_path / "loops.xml").write_text(f"<mujocoinclude>{text[begin:end]}</mujocoinclude>")
    model = tmp_path / "robot.xml"
    model.write_text(text[:begin] + '<include file="loops.xml"/>' + text[end:])
    case = case_of(model)
    settings = {"timestep": "0.002", "solref": "0.004 1"}
    with pytest.raises(OutputError, match=r"contains the input loops\.xml"):
        write_tuned(case, tuning_of("mujoco").files(case.mechanism, settings), tmp_path)
    main, lines = write_tuned(case, tuning_of("mujoco").files(case.mechanism, settings), tmp_path / "out")
    assert mujoco.MjModel.from_xml_path(str(main)).eq_solref[0].tolist() == [0.004, 1]
    assert 'solref="0.004 1"' not in (tmp_path / "loops.xml").read_text()
    assert len([line for line in lines if line.startswith("+ ")]) == 1


@pytest.mark.extended("tests/validation/test_certificate.py::test_calls_of_a_script_must_be_those_of_the_settings")
@pytest.mark.usefixtures("short_proofs")
def test_pybullet_gets_a_script_that_is_run_as_given(loopcheck: Command, tmp_path: Path) -> None:
    """The script is part of the certified files."""
    pytest.importorskip("pybullet")
    folder = tmp_path / "tuned"
    short = ("--motion", motion_file(tmp_path / "m.csv", 3.0))
    arguments = ("--accuracy", "0.05", "--source", "pybullet/as_is", "--out", folder, "--jobs", "1", *short)
    status, out, err = loopcheck("tune", FOUR_BAR, *arguments)
    assert (status, err) == (0, "")
    assert "cannot be judged" not in out
    verify = ("tune", FOUR_BAR, "--verify", folder / "certificate.json", "--jobs", "1", "--out", tmp_path / "v")
    assert loopcheck(*verify)[0] == 0
    script = folder / "tuned_pybullet.py"
    script.write_text(script.read_text() + "# edited\n")
    status, out, _ = loopcheck(*verify)
    assert (status, "tuned_pybullet.py" in out) == (1, True)


@pytest.mark.extended("test_the_search_ends_where_an_error_falls_too_slowly")
def test_what_cannot_be_reached_says_what_stands_in_the_way(
    loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that takes 2 µs for every step, 0.5 µs per simulated millisecond leave steps of 4 ms."""
    monkeypatch.setattr(AskedTuning, "seconds_per_step", lambda *_: 2e-6)  # workers are other processes
    short = ("--motion", motion_file(tmp_path / "m.csv", 3.0))
    arguments = ("--accuracy", "1e-5", "--max-cost", "0.5", "--out", tmp_path / "out", "--jobs", "1", *short)
    status, out, err = loopcheck("tune", FOUR_BAR, *arguments)
    assert (status, err) == (1, "")
    assert "the error must be at most 1e-05 within 0.5 µs per simulated millisecond, the best settings reach" in out
    assert not (tmp_path / "out/tuned.xml").exists()


@pytest.mark.extended("test_noslip_is_left_out_first_and_kept_on_demand")
@pytest.mark.usefixtures("short_proofs")
def test_kept_settings_do_not_change_and_a_refusal_names_the_next_command(loopcheck: Command, tmp_path: Path) -> None:
    keep = ("--keep-setting", "timestep,integrator", "--motion", motion_file(tmp_path / "m.csv", 3.0))
    status, out, _ = loopcheck("tune", FOUR_BAR, "--accuracy", "1e-7", *keep, "--out", tmp_path / "out", "--jobs", "1")
    rows = pd.read_csv(tmp_path / "out/tune.csv")
    assert len(rows) > 2
    assert rows["step"].nunique() == 1
    assert not rows["settings"].str.contains("integrator", na=False).any()
    assert rows["settings"].str.contains("solref", na=False).any()
    assert status == 1
    assert "must be at most 1e-07 with timestep, integrator kept" in out
    command = re.search(r"Next: loopcheck (.*)", out)
    assert command is not None
    status, out, _ = loopcheck(*shlex.split(command[1]), "--out", tmp_path / "next", "--jobs", "1")
    assert status == 0, out


ARM = """<body><joint name="arm{k}" axis="0 1 0"/><geom size=".02" pos=".3 0 0" mass=".1"/></body>"""
FALLING = f"""<mujoco><worldbody><body name="base"><freejoint name="base"/><geom size=".1" mass="3"/>
  {"".join(ARM.format(k=k) for k in range(6))}</body></worldbody>
  <actuator>{"".join(f'<motor joint="arm{k}"/>' for k in range(6))}</actuator></mujoco>"""


def test_a_perturbed_start_is_a_pose_before_the_robot_has_fallen(tmp_path: Path) -> None:
    """The swings return to their starts: a pose near the end is nearer to 5 % of the stroke, but low."""
    (tmp_path / "falling.xml").write_text(FALLING)
    purpose = purpose_of(case_of(tmp_path / "falling.xml"), "mujoco", OWN)
    assert isinstance(purpose, Purpose)
    start = variations(purpose)[0].pose
    assert start is not None
    q, arms = purpose.motion.q, np.arange(7, 13)
    assert q[0, 2] - q[-1, 2] > 1.0
    assert q[0, 2] - start[2] < (q[0, 2] - q[-1, 2]) / 3
    away = np.abs(start[arms] - q[0, arms]) / np.ptp(q[:, arms], axis=0)
    assert 0.02 < away.max() < 0.08
