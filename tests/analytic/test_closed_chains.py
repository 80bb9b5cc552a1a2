"""Random closed chains: sources that share no dynamics must agree on every chain.

A thousand of them: `pytest tests/analytic/test_closed_chains.py --hypothesis-profile=thousand`.
"""

from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loopcheck import engines
from loopcheck.analytic.dynamics.energy import power_imbalance
from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.closures import closure_jacobian, closure_jacobian_rate, null_space
from loopcheck.analytic.kinematics.tree import poses, twists
from loopcheck.engines.mujoco.routes.kkt import KKT
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.closed_chains import Shape, closed_chain
from tests.conftest import CaseMaker

AGREEMENT = 1e-10
"""Round-off of exact equations away from singular poses, relative to the peak [-]."""
STATES = 3

SHAPES = st.one_of(
    st.builds(Shape, planar=st.booleans(), loops=st.integers(1, 3)),
    st.builds(Shape, planar=st.just(False), loops=st.integers(2, 4), floating=st.just(True)),
)


@pytest.mark.extended("test_sources_agree_on_a_closed_chain")
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_sources_agree_on_any_closed_chain(
    shape: Shape, seed: int, tmp_path_factory: pytest.TempPathFactory, model_case: CaseMaker
) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.getbasetemp() / "chain.xml"
    assume(closed_chain(shape, rng, path))
    _agree(model_case(path), rng)


@pytest.mark.parametrize(
    "shape",
    [Shape(planar=True, loops=2), Shape(planar=False, loops=1), Shape(planar=False, loops=3, floating=True)],
    ids=["planar", "spatial", "floating"],
)
def test_sources_agree_on_a_closed_chain(shape: Shape, tmp_path: Path, model_case: CaseMaker) -> None:
    rng = np.random.default_rng(2)
    assert closed_chain(shape, rng, tmp_path / "chain.xml")
    _agree(model_case(tmp_path / "chain.xml"), rng)


def _agree(case: Case, rng: np.random.Generator) -> None:
    found = errors(case, states(case, rng))
    assert max(found.values()) < AGREEMENT, f"{found}\n{case.mechanism.model.path.read_text(encoding='utf-8')}"


def test_a_loop_that_moves_no_motor_costs_nothing(tmp_path: Path, model_case: CaseMaker) -> None:
    """A driven pendulum beside a slide that is held: the pendulum's closed form."""
    inertial = '<inertial pos="0.3 0 0" mass="2" diaginertia="0.1 0.2 0.3"/>'
    path = tmp_path / "held.xml"
    path.write_text(
        f"""<mujoco><worldbody>
        <body name="arm"><joint name="arm" axis="0 1 0"/>{inertial}</body>
        <body name="held"><joint name="held" type="slide" axis="0 0 1"/>{inertial}</body>
        </worldbody><equality><weld body1="held"/></equality><actuator><motor joint="arm"/></actuator></mujoco>""",
        encoding="utf-8",
    )
    q, qdd = np.array([[0.4, 0.0]]), np.array([[1.5, 0.0]])
    motion = Motion(t=np.zeros(1), q=q, qd=qdd, qdd=qdd, law=_no_law, assemble=_no_law)
    wanted = (0.2 + 2 * 0.3**2) * 1.5 - 2 * 9.81 * 0.3 * np.cos(0.4)
    for source in (Noc(), Lagrange(), KKT):
        assert source.compute_efforts(model_case(path), motion).effort[0, 0] == pytest.approx(wanted, rel=1e-12)


def states(case: Case, rng: np.random.Generator) -> Motion:
    """The closed pose with random velocities and accelerations that keep the loops closed."""
    mechanism = case.mechanism
    q = np.tile(case.guess, (STATES, 1))
    at = poses(mechanism, q)
    moving = twists(mechanism, at, np.zeros((STATES, mechanism.nv)))
    Phi = closure_jacobian(mechanism, at, moving.K, q)
    N = null_space(Phi[0])
    qd = rng.normal(size=(STATES, N.shape[1])) @ N.T
    turning = closure_jacobian_rate(mechanism, at, twists(mechanism, at, qd), q, qd) @ qd[..., None]
    qdd = rng.normal(size=(STATES, N.shape[1])) @ N.T - (np.linalg.pinv(Phi, rcond=1e-5) @ turning)[..., 0]
    return Motion(t=np.arange(float(STATES)), q=q, qd=qd, qdd=qdd, law=_no_law, assemble=_no_law)


def errors(case: Case, motion: Motion) -> dict[str, float]:
    """Disagreement with the reference and power imbalance, relative to their peaks [-]; gap that MuJoCo sees [m]."""
    noc, lagrange, kkt = (source.compute_efforts(case, motion) for source in (Noc(), Lagrange(), KKT))
    found = {
        "lagrange": _error(lagrange.effort, noc.effort),
        "mujoco/kkt": _error(kkt.effort, noc.effort),
        "power": power_imbalance(case.mechanism, motion, noc.effort) or 0.0,
        "gap": (kkt.closure_drift or Deviation()).largest,
    }
    if engines.installed("pybullet"):
        with suppress(NotRepresentableError):  # a ball joint that is turned far
            bullet = engines.load("pybullet/kkt").compute_efforts(case, motion)
            found["pybullet/kkt"] = _error(bullet.effort, noc.effort)
    return found


def _error(candidate: Array, reference: Array) -> float:
    """Largest error over the largest effort of the chain [-]: some of its motors sit on joints that loops lock."""
    return float(np.abs(candidate - reference).max() / np.abs(reference).max())


def _no_law(t: object) -> NoReturn:
    raise NotImplementedError("states at one pose only")
