"""Verdicts on files with few digits: sources agree as far as the digits go, and seeded faults stay visible."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.dynamics.couples import offset_couples
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.audit.audit import audit, expected_terms
from loopcheck.validation.check.efforts.as_is import settled
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import outcome_of
from loopcheck.validation.check.efforts.outcome import STIFF_ON_GAPS, Failed, Outcome, Ran, Reference
from loopcheck.validation.check.efforts.rules import Evidence
from loopcheck.validation.common import sources
from loopcheck.validation.common.targets import cases_of
from tests.conftest import CaseMaker
from tests.exported_legs import Leg
from tests.outcomes import ran

ROUTES = ("analytic/noc", "analytic/lagrange", "mujoco/kkt", "pinocchio/kkt", "pybullet/kkt")


def moved(leg: Leg, folder: Path, model_case: CaseMaker) -> tuple[Case, Motion]:
    path = folder / "leg.xml"
    path.write_text(leg.text(), encoding="utf-8")
    case = model_case(path, amplitude=0.3, duration=0.1, frequency=2.0)
    return case, prescribe(case)


def outcomes(case: Case, motion: Motion, simulated: Mechanism | None = None) -> list[Ran | Failed]:
    """By source; engines have the mechanism of the case, or another."""
    other = case if simulated is None else replace(case, mechanism=simulated)
    found = []
    for source in ROUTES:
        compute = partial(sources.load(source).compute_efforts, case if source in sources.ANALYTIC else other, motion)
        found.append(outcome_of(case, motion, source, compute))
    return found


def verdicts(found: Sequence[Outcome], evidence: Evidence | None = None) -> dict[str, str]:
    rows = summarize(found, evidence)
    return dict(zip(rows["source"], rows["verdict"], strict=True))


@pytest.mark.parametrize(
    "leg",
    [
        Leg(seed=1),
        Leg(closure="weld", digits=5, seed=2),
        Leg(carrier="fixed", closure="connect", seed=3),
        Leg(carrier="two hinges", scale=0.03, degrees=True, seed=4),
    ],
    ids=str,
)
def test_sources_agree_as_far_as_the_digits_go(leg: Leg, tmp_path: Path, model_case: CaseMaker) -> None:
    found = outcomes(*moved(leg, tmp_path, model_case))
    assert verdicts(found) == {source: "reference" if source == "analytic/noc" else "agree" for source in ROUTES}


def test_engines_are_audited_as_the_same_robot(tmp_path: Path, model_case: CaseMaker) -> None:
    case, motion = moved(Leg(seed=1), tmp_path, model_case)
    terms = expected_terms(case, motion)
    for engine in ("mujoco", "pinocchio", "pybullet"):
        assert {row["verdict"] for row in audit(case, terms, engine)} == {"agree"}, engine


@pytest.mark.parametrize("leg", [Leg(seed=1), Leg(carrier="fixed", closure="weld", seed=2)], ids=str)
@pytest.mark.parametrize(("mass", "shift"), [(1 + 1e-6, 0.0), (1.0, 1e-5)])
def test_seeded_faults_disagree(leg: Leg, mass: float, shift: float, tmp_path: Path, model_case: CaseMaker) -> None:
    case, motion = moved(leg, tmp_path, model_case)
    (tmp_path / "wrong.xml").write_text(replace(leg, mass=mass, shift=shift).text(), encoding="utf-8")
    model = ModelFile(path=tmp_path / "wrong.xml")
    found = verdicts(outcomes(case, motion, replace(case.mechanism, model=model)))
    assert (found["analytic/lagrange"], found["mujoco/kkt"]) == ("agree", "disagree")


def test_four_digits_are_too_few(tmp_path: Path, model_case: CaseMaker) -> None:
    rows = summarize(outcomes(*moved(Leg(carrier="fixed", digits=4, seed=1), tmp_path, model_case)))
    judged = rows[rows["source"] != "analytic/noc"]
    assert set(judged["verdict"]) == {"not comparable"}
    assert judged["note"].str.startswith("the digits of the file leave this effort open by ").all()
    assert judged["note"].str.contains("Write it with more digits").all()


@pytest.mark.parametrize(("part", "verdict"), [(0.5, "agree"), (2.9, "agree"), (3.1, "disagree")])
def test_an_error_between_the_tolerance_and_three_times_the_resolution_agrees(
    part: float, verdict: str, tmp_path: Path, model_case: CaseMaker
) -> None:
    """Of a route with rows of its own; another route has the rows of the reference, and no such excuse."""
    reference, *_, candidate = outcomes(*moved(Leg(seed=1), tmp_path, model_case))
    assert isinstance(reference, Reference)
    assert reference.unresolved is not None
    candidate = ran(candidate)
    effort = candidate.history.effort.copy()
    effort[3] += part * reference.unresolved
    for own_rows, expected in ((True, verdict), (False, "disagree")):
        wrong = replace(candidate, history=replace(candidate.history, effort=effort, own_rows=own_rows))
        rows = summarize([reference, wrong]).query("source == 'pybullet/kkt'")
        assert set(rows["verdict"]) == {expected}
        note = "agree to 3 r: the file resolves no more (error "
        assert rows["note"].str.startswith(note).all() == (expected == "agree")


@pytest.mark.parametrize(("requested", "verdict"), [((), "not supported"), (("mujoco/forward",), "not comparable")])
def test_simulations_that_make_contradictions_rigid_are_no_disagreement(
    requested: tuple[str, ...], verdict: str, tmp_path: Path, model_case: CaseMaker
) -> None:
    reference, _, candidate, *_ = outcomes(*moved(Leg(seed=1), tmp_path, model_case))
    candidate = ran(candidate)
    chattering = replace(candidate.history, source="mujoco/forward", effort=2 * candidate.history.effort)
    wrong = Ran(case=candidate.case, source="mujoco/forward", history=chattering)
    evidence = Evidence(requested=[frozenset({name}) for name in requested])
    rows = summarize([reference, wrong], evidence).query("source == 'mujoco/forward'")
    assert set(rows["verdict"]) == {verdict}
    assert rows["note"].str.startswith(STIFF_ON_GAPS).all()
    exact = replace(
        candidate.case,
        mechanism=replace(
            candidate.case.mechanism,
            closing=candidate.case.mechanism.closing[:0] or type(candidate.case.mechanism.closing)(),
        ),
    )
    rows = summarize([reference, replace(wrong, case=exact)], evidence).query("source == 'mujoco/forward'")
    assert set(rows["verdict"]) == {"disagree"}


def test_a_target_has_the_accuracy_of_its_loops_and_no_offsets(tmp_path: Path) -> None:
    """The engine of the file takes the anchors at their mean; its unmodified simulation has the file."""
    (tmp_path / "leg.xml").write_text(Leg(closure="connect", offset=0.01, seed=5).text(), encoding="utf-8")
    case = cases_of([tmp_path / "leg.xml"])[0]
    assert 1e-8 < case.mechanism.closing.accuracy < 1e-5
    assert [offset.length for offset in case.mechanism.offsets] == pytest.approx([0.01], rel=1e-3)
    assert case.mechanism.model.overrides.keys() == {"anchors"}
    assert not case.mechanism.model.as_written.overrides
    motion = prescribe(case, dt=0.25)
    rows = summarize(outcomes(case, motion))
    engines = rows[~rows["source"].str.startswith("analytic")]
    assert set(engines["verdict"]) == {"agree"}
    assert (
        engines["note"]
        .str.contains(
            "the file's offset along the pin \\(10 mm at 'equality0'\\) acts as a couple: .* more in soft loops"
        )
        .all()
    )
    assert np.isfinite(engines["relative_error"]).all()


@pytest.mark.extended("test_a_target_has_the_accuracy_of_its_loops_and_no_offsets")
def test_soft_loops_pull_along_a_pin_with_an_offset(tmp_path: Path) -> None:
    """In the unmodified simulation the offset costs more than the couple of rigid loops."""
    errors, couples = {}, {}
    for offset in (0.0, 0.01):
        (tmp_path / "leg.xml").write_text(Leg(closure="connect", offset=offset, seed=5).text(), encoding="utf-8")
        case = cases_of([tmp_path / "leg.xml"])[0]
        motion = prescribe(case)
        as_is = sources.load("mujoco/as_is").compute_efforts(case, motion).as_is
        assert as_is is not None
        errors[offset] = settled(case.mechanism, as_is).largest[0]
        effort = sources.load(sources.REFERENCE).compute_efforts(case, motion).effort
        couples[offset] = offset_couples(case.mechanism, motion, effort)[0]
    assert errors[0.01] > 1.3 * couples[0.01] > 2 * errors[0.0]
