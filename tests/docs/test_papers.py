"""The page of the papers: made from its values, which are computed again."""

import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from docs.benchmark.timing import FEW
from docs.papers import values
from docs.papers.__main__ import FINDINGS, FOLDER, PAGE, ROWS, VALUES, page
from docs.papers.curves import CURVES
from docs.papers.formulations import PERIOD, machine_code, on_the_tree, recursion, virtual_work, with_sensors
from docs.papers.formulations import SAMPLE as AT
from docs.papers.operations import PRINTED, SAMPLE, Number, cost, graph_of_wang, minimum_norm, of_wang
from docs.papers.state_equations import End, simulated
from docs.papers.values import PAPERS, qr_against_squares, twist_constraints
from loopcheck.analytic.batch.expressions import Graph, Op, Scalar, value_of
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import wang2019, zubizarreta2010
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.studies.control.runs import CONTROLLERS, INDICES

STORED = json.loads(VALUES.read_text(encoding="utf-8"))
TIMES = {"position_ratio", "model_ratio", "sample_ms", "extended_ms", "recursion_time", "checked_time", "dense_time"}
"""Values that a machine measures."""
ONCE = "6spu"
"""The platform whose state equations are simulated: `6x6r` takes the same code, and as long."""
OF_STATES = re.compile(r"6x6r_(coarse|fine|order|energy|feedback)")
"""Values of the other platform. Its peaks are computed again, so a change of its data is found."""
COMPARED = ("extended", "task space")
"""Controllers that run again; `tests/validation/test_ctc.py` holds the classical one."""
END = End(deviation=1.0, energy=1.0)
"""Stands for an end that is not simulated."""
ROUND_OFF = 1e-12
"""Numbers below are round-off, whose size is compared alone."""


@pytest.fixture(scope="module")
def case() -> Case:
    return case_of("2pur2rpu", configuration="horizontal")


def test_the_page_is_made_from_its_values() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(STORED)
    pictures = {f"{name}-{picture}.svg" for name, curves in CURVES.items() for picture, *_ in curves}
    assert {path.name for path in FOLDER.glob("*.svg")} == pictures
    assert set(re.findall(r"\((\S+\.svg)\)", page(STORED))) == pictures


def test_every_row_has_a_known_finding() -> None:
    rows = re.findall(r"^\| .+ \| .+ \| .+ \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = [finding for finding in rows if finding != "finding" and "---" not in finding]
    assert len(found) > 70
    assert set(found) <= set(FINDINGS)
    assert ROWS.read_text(encoding="utf-8").count("[[") == 0


@pytest.mark.extended("test_the_operations_are_those_of_the_equations")
@pytest.mark.parametrize("name", PAPERS)
def test_values_are_computed_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed runs once, without a clock; machine code has a test of its own."""
    chosen = {controller: CONTROLLERS[controller] for controller in COMPARED}
    monkeypatch.setattr(values, "CONTROLLERS", chosen)
    monkeypatch.setattr(
        values, "simulated", lambda robot, *at, **how: simulated(robot, *at, **how) if robot == ONCE else END
    )
    monkeypatch.setattr(values, "_time", lambda run: (run(), 1.0)[1])
    monkeypatch.setattr(values, "times", lambda ways: dict.fromkeys([*ways, "dense"], np.ones(1)))
    again = PAPERS[name]()
    assert again.keys() == STORED[name].keys()
    for key, value in again.items():
        stored = STORED[name][key]
        if key in TIMES or OF_STATES.fullmatch(key):
            continue
        if key in INDICES:
            assert {*str(value).split("; ")} < {*stored.split("; ")}, key
        elif isinstance(value, str):
            assert value == stored, key
        elif abs(stored) < ROUND_OFF:
            assert abs(value) < 10 * ROUND_OFF, key
        else:
            assert math.isclose(value, stored, rel_tol=0.05 if abs(stored) < 1e-6 else 1e-3), key


def test_the_operations_are_those_of_the_equations(case: Case) -> None:
    """The numbers on the graph are the efforts of the reference, and all rows have their place in the table."""
    counts = of_wang(case)
    assert sum(value for name, value in counts.items() if name != "total") == counts["total"]
    assert counts["total"] <= sum(PRINTED.values()) == 2125
    assert counts["total"] < of_wang(case, turns_tensors=True)["total"]
    stages = graph_of_wang(case)[1]
    traced = [value_of(x) for x in stages["τ_a"].ravel()]
    wanted = Noc().compute_efforts(case, prescribe(case, dt=5.0).assemble(np.array([SAMPLE]))).effort[0]
    np.testing.assert_allclose(traced, wanted, rtol=1e-10)
    A, tau = np.random.default_rng(1).normal(size=(4, 3)), np.array([1.0, -2.0, 0.5])
    graph = Graph()
    rows: list[list[Scalar]] = [[graph.input(float(a)) for a in row] for row in A]
    found = minimum_norm(rows, [graph.input(float(x)) for x in tau])
    np.testing.assert_allclose([value_of(x) for x in found], wang2019.minimum_norm(A[None], tau[None])[0], rtol=1e-12)
    assert cost(graph, found) == 3 * (7 + 6 + 4 + 1) + 3 * (7 + 8 + 2) + 4 * 5


def test_the_formulations_of_the_2t1r_have_the_efforts_of_the_reference() -> None:
    """Virtual work and generic recursion against `noc`; on the tree, Lagrange against Newton and Euler."""
    case = case_of("2t1r")
    motion = prescribe(case)
    wanted = Noc().compute_efforts(case, motion.assemble(motion.t[AT : AT + 1])).effort[0]
    work = virtual_work(case, motion)
    for traced in (work, recursion(case, motion)[0]):
        np.testing.assert_allclose([value_of(x) for x in traced.outputs], wanted, rtol=1e-10)
    one, other = ([value_of(x) for x in traced.outputs] for traced in on_the_tree(case, motion))
    np.testing.assert_allclose(one, other, atol=1e-10 * np.abs(one).max())
    sines = [value_of(x) for each in work.arguments for x in each]
    angles = [x for op, x in zip(work.graph.ops, work.graph.values, strict=True) if op is Op.INPUT][9:]
    np.testing.assert_allclose(np.sin(angles), sines, rtol=1e-14)
    assert work.operations == STORED["staicu2006"]["work"]


def test_machine_code_has_the_forces_of_the_graph() -> None:
    pytest.importorskip("llvmlite")
    case = case_of("2t1r")
    work = virtual_work(case, prescribe(case))
    found = machine_code(work)()
    np.testing.assert_allclose(found.T, np.tile([value_of(x) for x in work.outputs], (FEW, 1)), rtol=1e-10)


def test_the_models_of_the_3rrr_have_the_torques_of_the_reference() -> None:
    """The pose is that of the motion, and a step of Newton's method comes near from the sample before."""
    case = case_of("3rrr", configuration="vertical")
    motion = prescribe(case, dt=0.1).assemble(np.arange(AT + 1) / 100)  # the first samples of the page's motion
    wanted = Noc().compute_efforts(case, motion.assemble(motion.t[AT : AT + 1])).effort[0]
    parts, steps = with_sensors(case, motion)
    found = {name: [value_of(x) for x in part.outputs] for name, part in parts.items()}
    for name in ("active", "redundant"):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-10)
    p = zubizarreta2010.parameters(case.mechanism)
    at = motion.law(motion.t[AT] - np.array([PERIOD, 0.0])).q
    x, q = zubizarreta2010.positions(p, at, zubizarreta2010.passive_guess(case))
    np.testing.assert_allclose(found["pose"], x[1], atol=1e-12)
    step = zubizarreta2010.passive_joints(p, at[1:], q[:1, 3:], iterations=1)[0, 3:]
    np.testing.assert_allclose(found["step"], step, atol=1e-12)
    assert {f"{name}_operations": part.operations for name, part in parts.items()}.items() <= STORED[
        "zubizarreta2010"
    ].items()
    assert steps == STORED["zubizarreta2010"]["steps"]


def root(x: Any) -> Any:
    return np.sqrt(1 - x**2) - 2 / x


def quotient(x: Any) -> Any:
    return np.sin(x) * np.cos(x) / (1 + x)


@pytest.mark.parametrize("function", [root, quotient])
def test_numbers_carry_their_rates(function: Callable[[Any], Any]) -> None:
    """Against the complex step."""
    graph = Graph()
    y = function(np.array([Number(graph.input(0.3), graph.input(2.0))], dtype=object))[0]
    assert value_of(y.value) == pytest.approx(function(0.3), rel=1e-14)
    assert value_of(y.rate) == pytest.approx(2.0 * function(0.3 + 1e-30j).imag / 1e-30, rel=1e-13)


def test_the_squares_lose_what_the_decomposition_keeps() -> None:
    """In coordinates that share no axis with the vanishing column; against fractions."""
    condition, by_qr, by_squares = qr_against_squares(turn=True)
    assert 1e6 < condition < 1e9
    assert by_qr < 1e-8 < 1e-5 < by_squares
    assert max(qr_against_squares(turn=False)[1:]) < 1e-14


def test_no_twist_of_the_complement_is_hindered(case: Case) -> None:
    largest, rank = twist_constraints(case, prescribe(case))
    assert largest < 1e-14
    assert rank == 6 * len(case.mechanism.bodies) - 3


@pytest.mark.evidence("two integrations of a hexapod", seconds=1)
def test_the_state_equations_are_of_order_four() -> None:
    """Halving the step divides the deviation by sixteen."""
    coarse, fine = (simulated("6spu", h, 0.2) for h in (0.02, 0.01))
    assert math.log2(coarse.deviation / fine.deviation) == pytest.approx(4, abs=0.3)
    assert fine.energy < 1e-6
