"""What a verdict rests on: one lineage never reads as two."""

from dataclasses import replace

import pytest

import engines
from tests.validation.test_report import EMPTY, summary_row
from validation.judge import sources
from validation.judge.independence import OURS, Basis, bases, lineage
from validation.judge.results import Results, table
from validation.studies.run.sections.answer import answer
from validation.studies.run.sections.verdicts import verdicts

LINEAGES = {
    "analytic/noc": "loopcheck",
    "analytic/lagrange": "loopcheck",
    "analytic/paper": "closed form",
    "mujoco/kkt": "MuJoCo",
    "mujoco/forward": "MuJoCo",
    "pybullet/kkt": "Bullet",
}
CASE = ("bar", "default", "up", "vertical")


def results(**verdict: str) -> Results:
    """A run of one case with a verdict for each source, written with two underscores for the slash."""
    rows = [summary_row("analytic/noc", "reference")]
    rows += [summary_row(source.replace("__", "/"), read, 1e-12) for source, read in verdict.items()]
    return replace(EMPTY, summary=table("summary", rows), run={"lineages": LINEAGES})


@pytest.mark.parametrize(
    ("verdict", "text", "independent"),
    [
        ({"analytic__paper": "agree"}, "closed form", True),
        ({"analytic__paper": "agree", "mujoco__kkt": "agree"}, "closed form; MuJoCo", True),
        ({"mujoco__kkt": "agree", "pybullet__kkt": "agree"}, "2 lineages: Bullet, MuJoCo", True),
        ({"mujoco__kkt": "agree", "mujoco__forward": "agree"}, "agreement only: MuJoCo", False),
        ({"analytic__lagrange": "agree"}, "agreement only: loopcheck", False),
        ({"mujoco__kkt": "agree", "pybullet__kkt": "informational"}, "agreement only: MuJoCo", False),
        ({"mujoco__kkt": "agree", "pybullet__kkt": "not run"}, "agreement only: MuJoCo", False),
        ({"analytic__lagrange": "agree", "analytic__paper": "disagree"}, "agreement only: loopcheck", False),
        (
            {"mujoco__kkt": "agree", "mujoco__forward": "disagree", "pybullet__kkt": "agree"},
            "agreement only: Bullet",
            False,
        ),
    ],
)
def test_basis_of_a_case(verdict: dict[str, str], text: str, independent: bool) -> None:
    found = results(**verdict)
    basis = bases(found)[CASE]
    assert (basis.text, basis.is_independent) == (text, independent)
    assert text in str(verdicts(found))
    assert ("agreement only" in str(answer(found))) == (not independent)


def test_a_case_without_agreement_rests_on_nothing() -> None:
    found = results(mujoco__kkt="disagree", pybullet__kkt="not run")
    assert bases(found) == {}
    assert "in 1 nothing agrees" in str(answer(found))


def test_tables_without_lineages_claim_nothing() -> None:
    """A folder that an older version wrote."""
    old = results(mujoco__kkt="agree", pybullet__kkt="agree", analytic__paper="agree")
    assert bases(replace(old, run={}))[CASE] == Basis(closed_form=False, lineages=())


def test_every_source_has_a_lineage() -> None:
    assert {name: lineage(name) for name in LINEAGES} == LINEAGES
    for name in engines.names():
        assert lineage(name) not in ("", OURS, "closed form")
    assert {lineage(name) for name in sources.ANALYTIC} == {OURS, "closed form"}
