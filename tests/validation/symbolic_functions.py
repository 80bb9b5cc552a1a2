"""Equations of closed loops as CasADi functions, against the reference and differences of it.

`test_symbolic` runs these tests in a process of its own: OpenSim brings another CasADi, and a process has one of them.
"""

import numpy as np
import pytest

from loopcheck import symbolic
from loopcheck.analytic.batch import inverse_dynamics
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import case_of
from tests.conftest import MODELS

H = 1e-4
"""Step of differences [m or rad]."""


def efforts(case: Case, q: Array, d: Array, dd: Array, ddd: Array) -> Array:
    """Efforts by the natural orthogonal complement, loops closed to round-off."""
    drive = Drive(q=d[None], qd=dd[None], qdd=ddd[None])
    return inverse_dynamics(case.mechanism, drive, q, evaluator="plain").effort[0]


@pytest.mark.parametrize("name", ["3prr", "four_bar"])
def test_efforts_of_the_reference_with_exact_jacobian_and_hessian(name: str) -> None:
    case = case_of(name, configuration="vertical")
    motion, functions = prescribe(case), symbolic(name, configuration="vertical")
    k = len(motion.t) // 2
    law = motion.law(motion.t[k : k + 1])
    d, dd, ddd = law.q[0], law.qd[0], law.qdd[0]
    found = np.array(functions.efforts(motion.q[k], d, dd, ddd)).ravel()
    wanted = Noc().compute_efforts(case, motion).effort[k]
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    import casadi as ca

    at = [ca.SX.sym(each, len(d)) for each in ("d", "dd", "ddd")]
    near = ca.DM(motion.q[k])
    first = functions.efforts(near, *at)[0]
    jacobian = ca.Function("J", at, [ca.jacobian(first, at[0])])
    hessian = ca.Function("H", at, [ca.hessian(first, at[0])[0]])
    J, second = np.array(jacobian(d, dd, ddd)), np.array(hessian(d, dd, ddd))
    steps = H * np.eye(len(d))
    ends = [[efforts(case, motion.q[k], d + s * e, dd, ddd)[0] for s in (1, -1)] for e in steps]
    np.testing.assert_allclose(J[0], [(a - b) / (2 * H) for a, b in ends], rtol=1e-5, atol=1e-5 * np.abs(J).max())
    middle = efforts(case, motion.q[k], d, dd, ddd)[0]
    curvature = [(a - 2 * middle + b) / H**2 for a, b in ends]
    np.testing.assert_allclose(np.diag(second), curvature, rtol=1e-3, atol=1e-3 * np.abs(second).max())


def test_a_step_closes_the_loops_quadratically() -> None:
    functions = symbolic("four_bar")
    q, d = functions.q, np.array([functions.q[0] + 0.05])
    moves = []
    for _ in range(3):
        closer = np.array(functions.close(q, d)).ravel()
        moves.append(np.abs(closer - q).max())
        q = closer
    assert moves[0] > 10 * moves[1] > 100 * moves[2]
    assert functions.drives == ("crank",)


def test_what_is_not_traced_and_bad_poses_are_refused() -> None:
    with pytest.raises(HarnessError, match="hybrid_dynamics"):
        symbolic(MODELS / "spinning_rod.xml")
    with pytest.raises(HarnessError, match=r"q: shape must be \(3\)"):
        symbolic("four_bar", np.zeros(2))
