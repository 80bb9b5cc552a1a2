"""Rules of the graph at zero against mpmath, and accelerations at poses where a division is 0/0 against MuJoCo."""

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from loopcheck.analytic.batch import forward_dynamics, hybrid_dynamics
from loopcheck.analytic.batch.expressions import Graph, Op, sign, value_of
from loopcheck.analytic.batch.gradient import SLOPES
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism

mujoco = pytest.importorskip("mujoco")

NUMBERS = (0.0, -0.0, 2.0, -3.0)
RULES: dict[Op, Callable[[Any, Any, float], Any]] = {
    Op.ADD: lambda x, y, k: x + y,
    Op.SUB: lambda x, y, k: x - y,
    Op.MUL: lambda x, y, k: x * y,
    Op.DIV: lambda x, y, k: x / y,
    Op.SHIFT: lambda x, y, k: x + k,
    Op.SCALE: lambda x, y, k: k * x,
    Op.REFLECT: lambda x, y, k: k - x,
    Op.INVERSE: lambda x, y, k: k / x,
    Op.SQRT: lambda x, y, k: mpmath.sqrt(x),
    Op.SIN: lambda x, y, k: mpmath.sin(x),
    Op.COS: lambda x, y, k: mpmath.cos(x),
    Op.ABS: lambda x, y, k: abs(x),
}


@pytest.mark.parametrize("op", SLOPES)
def test_slopes_are_those_of_mpmath_or_not_finite(op: Op) -> None:
    """Where a rule has no derivative: not finite, or for |x| the mean of both sides."""
    of = RULES[op]
    for x, y, k in product(NUMBERS, NUMBERS, NUMBERS):
        if op is Op.SQRT and x < 0:
            continue
        graph = Graph()
        args = [graph.input(x), graph.input(y)][: 2 if op in (Op.ADD, Op.SUB, Op.MUL, Op.DIV) else 1]
        pole = op in (Op.DIV, Op.INVERSE) and not (y if op is Op.DIV else x)
        with np.errstate(all="ignore"):
            value = float(np.divide(x if op is Op.DIV else k, args[-1].value)) if pole else float(of(x, y, k))
        node = graph.node(op, value, *args, constant=k)
        slopes = SLOPES[op](node, args[0], args[-1], k)
        for number, slope in enumerate(slopes):
            if pole or (op is Op.SQRT and x == 0):
                assert not math.isfinite(value_of(slope)) or (op is Op.INVERSE and k == 0)
                continue
            along = (lambda a: of(a, y, k), x) if number == 0 else (lambda a: of(x, a, k), y)  # noqa: B023
            exact = mpmath.diff(*along, direction=0, h=mpmath.mpf("1e-9"))
            assert value_of(slope) == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize(("x", "y"), [*product((*NUMBERS, math.inf, math.nan), repeat=2)])
def test_a_graph_divides_as_numpy(x: float, y: float) -> None:
    graph = Graph()
    with np.errstate(all="ignore"):
        wanted = float(np.divide(x, y))
    np.testing.assert_equal(value_of(graph.input(x) / graph.input(y)), wanted)
    np.testing.assert_equal(value_of(x / graph.input(y)), wanted if x else 0.0)  # zeros vanish from a graph


@pytest.mark.parametrize("x", [0.0, -0.0, 5e-324, -5e-324, 1e-200, -2.0, 1e300])
def test_the_sign_is_numpys(x: float) -> None:
    graph = Graph()
    for at_zero in (0.0, 1.0):
        if x == 0 or abs(x) > 1e-280:
            assert value_of(sign(graph.input(x), at_zero)) == (np.sign(x) or at_zero)
    assert abs(value_of(sign(graph.input(x)))) <= 1


LIMB = '<inertial pos=".1 0 0" mass="1" diaginertia=".1 .2 .3"/>'
HINGE = '<joint name="j" axis="0 1 0" {}/>'
TENDON = '<tendon><spatial name="t" {}><site site="w"/><site site="e"/></spatial></tendon>'
FIXED = '<tendon><fixed name="t" stiffness="20" springlength="0 .5"><joint joint="j" coef="1"/></fixed></tendon>'
SITE = '<site name="e" pos="{}"/>'
TURNED = (0.0, 0.6, 0.0, 0.8)
CASES: dict[str, tuple[str, str, str, tuple[float, ...]]] = {
    "a tendon across a ball": ('<joint name="j" type="ball"/>', ".5 0 0", 'stiffness="20"', (0.9, 0.1, 0.3, 0.2)),
    "points that meet": (HINGE.format(""), ".3 0 0", 'stiffness="20" springlength="0"', (0.0,)),
    "points that met": (HINGE.format(""), ".3 0 0", 'stiffness="20" springlength="0"', (0.4,)),
    "a slack tendon at its end": (HINGE.format(""), "", "", (0.0,)),
    "a taut tendon": (HINGE.format(""), "", "", (0.7,)),
    "a ball turned by half a turn": ('<joint name="j" type="ball" stiffness="3"/>', "", "", TURNED),
}


def mechanism_of(case: str, folder: Path, more: str = "") -> tuple[Mechanism, Any, Array]:
    """A mechanism, its compiled model, and a pose."""
    joint, site, spring, q = CASES[case]
    tendon = TENDON.format(spring + more) if site else FIXED if "tendon" in case else ""
    at = "0 0 1" if "ball" in case else ".3 0 0"
    path = folder / "zero.xml"
    path.write_text(
        f'<mujoco><worldbody><site name="w" pos="{at}"/><body>{joint}{LIMB}{SITE.format(site) if site else ""}'
        f"</body></worldbody>{tendon}</mujoco>",
        encoding="utf-8",
    )
    return (
        read_mechanism(ModelFile(path=path)),
        mujoco.MjModel.from_xml_path(str(path)),
        np.array(q) / (np.linalg.norm(q) if len(q) == 4 else 1.0),
    )


@pytest.mark.parametrize("evaluator", ["numpy", "llvm"])
@pytest.mark.parametrize("case", CASES)
def test_accelerations_are_those_of_mujoco(case: str, evaluator: str, tmp_path: Path) -> None:
    """As traced at the pose, and at other poses by the same graph; derivatives are finite."""
    if evaluator == "llvm":
        pytest.importorskip("llvmlite")
    mechanism, model, q = mechanism_of(case, tmp_path)
    data, qd = mujoco.MjData(model), np.linspace(0.1, 0.3, model.nv)
    poses = np.array([q, q])
    mujoco.mj_integratePos(model, poses[1], qd, 0.5)
    wanted = []
    for data.qpos[:] in poses:
        data.qvel[:] = qd
        mujoco.mj_forward(model, data)
        wanted.append(np.array(data.qacc))
    rates, none = np.array([qd, qd]), np.zeros((2, 0))
    forward = forward_dynamics(mechanism, poses, rates, none, evaluator=evaluator, derivatives=["q", "qd"])
    hybrid = hybrid_dynamics(mechanism, poses, rates, none, evaluator=evaluator, derivatives=["q", "qd"])
    for batch in (forward, hybrid):
        np.testing.assert_allclose(batch.qdd, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())
        assert all(np.isfinite(block).all() for block in batch.derivatives.values())


@pytest.mark.parametrize("more", [' damping="2"', ' springlength="0 .2"', ' springlength=".2"'])
def test_a_force_without_direction_is_refused(more: str, tmp_path: Path) -> None:
    CASES["points"] = (HINGE.format(""), ".3 0 0", 'stiffness="20"' + ' springlength="0"' * ("damping" in more), (0.0,))
    mechanism, _, q = mechanism_of("points", tmp_path, more)
    for function in (forward_dynamics, hybrid_dynamics):
        with pytest.raises(
            MechanismError, match="the points of tendon 't' must be apart, got the same point at sample 1"
        ):
            function(mechanism, np.array([[0.1], q]), np.full((2, 1), 0.1), np.zeros((2, 0)))
