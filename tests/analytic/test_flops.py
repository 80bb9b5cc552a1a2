"""Cost of a sample of the inverse dynamics of the 2PUR-2RPU, beside table 2 of Wang et al. 2019."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.dynamics import noc
from loopcheck.analytic.kinematics import closures, redundancy, tree
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import wang2019 as paper
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.robot import Case, load, make_case
from tests.flops import count, counted, counting

PRINTED = {"T": 19 * 4 + 33 + 74 + 90, "Ṫ": 7 * 18, "I, C, γ": 7 * 72 + 7 * 145 + 7 * 18, "τ": 18, "τ_a0": 63}
"""Table 2 of the paper; T with the angles, g and k that it is made of."""
TOTAL = 2125
"""The total that it prints."""

ONE = counted([1.5])
TURN = np.eye(3)
SMALL: dict[str, tuple[Callable[[], Any], float]] = {
    "sum and product": (lambda: 2 * ONE + ONE * ONE, 3),
    "power": (lambda: ONE**2, 1),
    "sine": (lambda: np.sin(ONE), 18),
    "root and inverse": (lambda: np.sqrt(ONE) + np.arcsin(ONE / 2), 6 + 1 + 23 + 1),
    "complex product": (lambda: (ONE + 1j) * (ONE + 1j), 1 + 1 + 6),
    "product with a complex number": (lambda: ONE * (1 + 1j), 2),
    "turned tensor": (lambda: counted(TURN) @ np.ones((3, 3)) @ TURN.T, 2 * 45),
    "complex matrix product": (lambda: counted(1j * TURN) @ (1j * np.ones((3, 1))), 3 * (3 * 6 + 2 * 2)),
    "scalar product": (lambda: np.einsum("ti,ti->t", counted(np.ones((4, 3))), np.ones((4, 3))), 4 * 5),
    "cross product": (lambda: np.cross(counted(np.ones((2, 3))), TURN[0]), 2 * 9),
    "sum along an axis": (lambda: counted(np.ones((7, 2))).sum(0), 12),
    "linear equations": (lambda: np.linalg.solve(counted(TURN), np.ones((3, 1))), 18 + 18),
    "constants": (lambda: np.ones(3) @ TURN, 0),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_things_cost_what_they_cost_by_hand(name: str) -> None:
    run, cost = SMALL[name]
    assert count(run) == pytest.approx(cost)


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(load("2pur2rpu"), variant="default", mode="home", configuration="horizontal")


def _of_the_paper(case: Case) -> dict[str, float]:
    p, t = paper.parameters(case.mechanism), np.array([3.7])
    drive = prescribe(case, dt=5.0).law(t)
    x, xd, xdd = map(counted, paper.generalized_motion(p, drive.q, drive.qd, drive.qdd))
    gravity = case.mechanism.gravity
    with counting(paper):
        model = paper.dynamic_model(p, x, xd, gravity)
        tau = (model.I @ xdd[..., None] + model.C @ xd[..., None])[..., 0] - model.gamma
        found = {
            "T": count(lambda: paper.twist_shaping(p, x)),
            "Ṫ": count(lambda: paper.twist_shaping(p, x + 1j * paper.STEP * xd).imag / paper.STEP),
            "τ": count(lambda: (model.I @ xdd[..., None] + model.C @ xd[..., None])[..., 0] - model.gamma),
            "τ_a0": count(lambda: paper.minimum_norm(paper.actuation(p, x), tau)),
        }
        found["I, C, γ"] = count(lambda: paper.dynamic_model(p, x, xd, gravity)) - found["T"] - found["Ṫ"]
    return found


def _of_noc(case: Case) -> float:
    motion, mechanism = prescribe(case, dt=5.0), case.mechanism
    mask = redundancy.independent_dofs(mechanism, motion)
    q, qd, qdd = (counted(each[1:2]) for each in (motion.q, motion.qd, motion.qdd))

    def efforts() -> Any:
        model = noc.noc_model(State(mechanism=mechanism, q=q, qd=qd), mask)
        force = model.force(qdd[:, mask], qd[:, mask])
        return redundancy.minimum_norm(mechanism.selection @ model.L, force, mechanism.effort_scales)

    with counting(tree, closures, noc, redundancy):
        same = noc.Noc().compute_efforts(case, motion).effort[1:2]
        np.testing.assert_allclose(np.asarray(efforts()), same, rtol=1e-12)
        return count(efforts)


def test_the_readme_tells_what_a_sample_costs(case: Case) -> None:
    text = (CATALOGUE / "2pur2rpu" / "README.md").read_text(encoding="utf-8")
    said = {
        name: (printed, int(ours))
        for name, printed, ours in re.findall(r"^\| `(.+?)`.* \| (\d+|–) \| (\d+) \|$", text, re.M)
    }
    found = _of_the_paper(case)
    wanted = {name: (str(PRINTED[name]), round(cost)) for name, cost in found.items()}
    wanted["wang2019.py"] = (str(TOTAL), round(sum(found.values())))
    wanted["analytic/noc"] = ("–", round(_of_noc(case)))
    assert sum(PRINTED.values()) == TOTAL
    assert said == wanted
