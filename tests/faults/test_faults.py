"""Each row of the table of faults is found, nothing is found without a fault, and the table is complete."""

import importlib
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.compare import relative_error
from loopcheck.validation.check.efforts.outcome import Reference
from loopcheck.validation.check.independence import FROM_FILES, IN_WORDS, Shared, shares
from loopcheck.validation.common import sources
from loopcheck.validation.common.verdicts import FILE
from tests.conftest import want_engine
from tests.errors import relative_error as relative_to_peaks
from tests.faults.adapters import OMITTED
from tests.faults.edits import EDITS
from tests.faults.finders import FINDERS, computed, outcome_with_fault, ran, ready
from tests.faults.seeds import READINGS, SHARED, WRONG, rounded
from tests.faults.table import AS_IS, ENGINES, JUDGED, SHARED_INPUT, TABLE, Row, is_cheap

FOUND = "test_a_fault_is_found"
_SOUND = {(row.found_by, row.route, row.robot): row for row in TABLE}
SOUND = [
    row for row in _SOUND.values() if row.found_by != SHARED_INPUT or ("comparison", row.route, row.robot) not in _SOUND
]
"""A row for each part of the harness, source or engine, and robot; without a fault, both comparisons are the same."""


def parameters(rows: Iterable[Row]) -> list[Any]:
    """Rows as parameters; those that take long are extended."""
    mark = pytest.mark.extended(FOUND)
    return [pytest.param(row, id=row.name, marks=[] if is_cheap(row) else mark) for row in rows]


@pytest.fixture
def found_by(row: Row, request: pytest.FixtureRequest) -> str:
    """The part of the harness, with all that is computed once for all its faults."""
    engine = row.route.split("/")[0]
    if row.route != FILE and engine != "analytic":
        want_engine(engine, request.config)
    assert ready(row.robot).reference, ready(row.robot).expected
    if row.found_by == "as_is":
        ran(row.route, row.robot)
    elif row.found_by == "comparison":
        computed(row.route, row.robot)
    elif "/" in row.route and engine != "analytic":
        importlib.import_module(f"loopcheck.engines.{engine}.audit")
    return row.found_by


@pytest.mark.parametrize("row", parameters(TABLE))
def test_a_fault_is_found(row: Row, found_by: str) -> None:
    found = FINDERS[found_by](row.fault, row.route, row.robot)
    assert row.words in found
    assert found


@pytest.mark.parametrize("row", parameters(SOUND))
def test_nothing_is_found_without_a_fault(row: Row, found_by: str) -> None:
    if found_by == "as_is" and ran(row.route, row.robot)[1].reason:
        pytest.skip("the run does not settle without a fault")
    assert FINDERS[found_by]("", row.route, row.robot) == ""


def test_every_fault_of_every_source_and_engine_is_in_the_table() -> None:
    """A judged source, an unmodified simulation or an engine without a fault fails here, and a fault without a row."""
    seeded = {(row.route, row.fault.removeprefix("edit: ")) for row in TABLE}
    assert {*JUDGED, *AS_IS, *ENGINES, FILE} == {route for route, _ in seeded}
    assert {fault for _, fault in seeded} >= {*WRONG, *SHARED}
    assert seeded >= {(route, fault) for faults in (OMITTED, EDITS) for route in faults for fault in faults[route]}
    for route in JUDGED:  # no judged source has few faults
        assert {*READINGS, "gravity flipped"} <= {fault for source, fault in seeded if source == route}


def test_every_shared_input_has_a_fault_and_is_declared() -> None:
    """Faults of inputs that a source shares are in the rows of the files, all others in the rows of the source."""
    assert {*SHARED} == {*IN_WORDS} == {*get_args(Shared)}
    assert {row.fault for row in TABLE if row.route == FILE} == {*FROM_FILES}
    assert {*shares(sources.REFERENCE)} == {*IN_WORDS}
    assert "gears" not in shares("mujoco/forward")
    for route in JUDGED:
        assert {*shares(route)} <= {*IN_WORDS}


@pytest.mark.parametrize(
    "fault", ["mass 1 %", "inertia about the joint", "mass centre", "joint damping", "velocity term"]
)
@pytest.mark.parametrize("route", ["analytic/lagrange", "mujoco/kkt", "pinocchio/kkt", "pybullet/kkt"])
def test_the_error_of_a_source_is_the_effect_of_the_fault_on_the_reference(
    route: str, fault: str, request: pytest.FixtureRequest
) -> None:
    """Two codes, given the same wrong robot, are wrong alike: the fault did reach the engine."""
    if not route.startswith("analytic/"):
        want_engine(route.split("/")[0], request.config)
    reference = ready("3prr").reference
    assert isinstance(reference, Reference)
    of_route, of_reference = (outcome_with_fault(fault, name, "3prr").compared for name in (route, sources.REFERENCE))
    assert of_route is not None
    assert of_reference is not None
    error, effect = (
        relative_error(history.effort, reference.history.effort, reference.scale)
        for history in (of_route, of_reference)
    )
    assert error == pytest.approx(effect, rel=1e-6)
    assert effect > 1e-5


def test_a_fault_in_code_ends_with_its_context(prr: Case, prr_motion: Motion) -> None:
    right = Noc().compute_efforts(prr, prr_motion).effort
    with SHARED["velocity term"](prr) as case:
        wrong = Noc().compute_efforts(case, prescribe(case)).effort
    assert np.abs(wrong - right).max() > 0.01 * np.abs(right).max()
    np.testing.assert_array_equal(Noc().compute_efforts(prr, prescribe(prr)).effort, right)


def test_rounding_is_that_of_single_precision(prr: Case, prr_motion: Motion) -> None:
    other = rounded(prr_motion)
    assert np.abs(other.q - prr_motion.q).max() < 2**-24 * np.abs(prr_motion.q).max() * 1.01
    assert (other.law(prr_motion.t).q.astype(np.float32) == other.law(prr_motion.t).q).all()
    assert (other.assemble(prr_motion.t[:2]).qd == other.qd[:2]).all()
    efforts = (Noc().compute_efforts(prr, motion).effort for motion in (other, prr_motion))
    assert 1e-9 < relative_to_peaks(*efforts) < 1e-5
