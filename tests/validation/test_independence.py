"""Independence of the sources of a verdict: a single code base never counts as two."""

from dataclasses import replace

import pytest

from loopcheck import engines
from loopcheck.validation.check.independence import OURS, Basis, bases, lineage
from loopcheck.validation.check.sections.answer import answer
from loopcheck.validation.check.sections.verdicts import verdicts
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import Results, table
from tests.validation.test_report import EMPTY, summary_row

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
    """A run of a case with a verdict for each source, written with two underscores for the slash."""
    rows = [summary_row("analytic/noc", "reference")]
    rows += [summary_row(source.replace("__", "/"), read, 1e-12) for source, read in verdict.items()]
    return replace(EMPTY, summary=table("summary", rows), run={"lineages": LINEAGES})


@pytest.mark.parametrize(
    ("verdict", "text", "independent"),
    [
        ({"analytic__paper": "agree"}, "closed form", True),
        ({"analytic__paper": "agree", "mujoco__kkt": "agree"}, "closed form; MuJoCo", True),
        ({"mujoco__kkt": "agree", "pybullet__kkt": "agree"}, "2 code bases: Bullet, MuJoCo", True),
        ({"mujoco__kkt": "agree", "mujoco__forward": "agree"}, "no independent confirmation: only MuJoCo", False),
        ({"analytic__lagrange": "agree"}, "no independent confirmation: only loopcheck", False),
        ({"mujoco__kkt": "agree", "pybullet__kkt": "informational"}, "no independent confirmation: only MuJoCo", False),
        ({"mujoco__kkt": "agree", "pybullet__kkt": "not run"}, "no independent confirmation: only MuJoCo", False),
        (
            {"analytic__lagrange": "agree", "analytic__paper": "disagree"},
            "no independent confirmation: only loopcheck",
            False,
        ),
        (
            {"mujoco__kkt": "agree", "mujoco__forward": "disagree", "pybullet__kkt": "agree"},
            "no independent confirmation: only Bullet",
            False,
        ),
    ],
)
def test_basis_of_a_case(verdict: dict[str, str], text: str, independent: bool) -> None:
    found = results(**verdict)
    basis = bases(found)[CASE]
    assert (basis.text, basis.is_independent) == (text, independent)
    assert text in str(verdicts(found))
    assert f"Equations confirmed independently: {int(independent)} of 1 cases." in str(answer(found))


def test_a_case_without_agreement_rests_on_nothing() -> None:
    found = results(mujoco__kkt="disagree", pybullet__kkt="not run")
    assert bases(found) == {}
    assert "Equations confirmed independently: 0 of 1 cases." in str(answer(found))


def test_tables_without_lineages_claim_nothing() -> None:
    """A folder that an older version wrote."""
    old = results(mujoco__kkt="agree", pybullet__kkt="agree", analytic__paper="agree")
    assert bases(replace(old, run={}))[CASE] == Basis(closed_form=False, lineages=())


def test_every_source_has_a_lineage() -> None:
    assert {name: lineage(name) for name in LINEAGES} == LINEAGES
    for name in engines.names():
        assert lineage(name) not in ("", OURS, "closed form")
    assert {lineage(name) for name in sources.ANALYTIC} == {OURS, "closed form"}


@pytest.mark.parametrize(
    ("laws", "load", "independent"),
    [
        ({"mujoco/kkt": ["pull"], "pybullet/kkt": ["pull"]}, "pull", False),
        ({"mujoco/kkt": ["pull"], "pybullet/kkt": ["pull"]}, "ball_spring", True),
        ({"pybullet/kkt": ["pull"]}, "pull", True),
    ],
)
def test_code_bases_with_the_same_law_of_a_load_count_as_one(
    laws: dict[str, list[str]], load: str, *, independent: bool
) -> None:
    found = results(mujoco__kkt="agree", pybullet__kkt="agree")
    found = replace(found, run={**found.run, "laws": laws, "loads": {CASE[0]: [load]}})
    basis = bases(found)[CASE]
    assert basis.is_independent == independent
    assert ("count as one" in basis.text) == (not independent)
