"""Requirements on inverse-dynamics routes: they compute passive rates themselves, for any gears and scales."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.projection import independent_drives, loop_motions, loop_motions_along, null_space
from loopcheck.robots.efforts import Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common import sources
from tests.conftest import MODELS, CaseMaker
from tests.engines.mechanisms import PLAIN_FOUR_BAR, Own
from tests.errors import relative_error

NAMES = [name for name in engines.names() if name.endswith("/kkt") and not engines.on_request(name)]
LIFT_AND_FINGER = MODELS / "lift_and_finger.xml"


def loaded(name: str) -> Source:
    if name not in sources.ANALYTIC and not engines.installed(name.split("/")[0]):
        pytest.skip(f"{name}: its engine is not installed")
    return sources.load(name)


@pytest.fixture(scope="module")
def geared(
    tmp_path_factory: pytest.TempPathFactory, model_case: CaseMaker
) -> Callable[[str, float], tuple[Case, Motion]]:
    """A lift with a finger and its motion, with a gear on the motor of a joint; the same for all routes."""
    folder = tmp_path_factory.mktemp("geared")  # of files that stay: MuJoCo's routes read them again
    text = LIFT_AND_FINGER.read_text(encoding="utf-8")

    @cache
    def make(joint: str, gear: float) -> tuple[Case, Motion]:
        path = folder / f"{joint}{gear:g}.xml"
        path.write_text(text.replace(f'joint="{joint}"/>', f'joint="{joint}" gear="{gear}"/>'), encoding="utf-8")
        case = model_case(path, configuration="vertical", amplitude=0.1)
        return case, prescribe(case)

    return make


@pytest.mark.parametrize("name", [*NAMES, "analytic/lagrange", "analytic/noc"])
@pytest.mark.parametrize("gear", [1e-6, 3e5, 1e6])
@pytest.mark.parametrize("joint", ["lift", "crank"])
def test_effort_times_gear_is_the_same_for_any_gear(
    name: str, gear: float, joint: str, geared: Callable[[str, float], tuple[Case, Motion]]
) -> None:
    """A gear of 3e5 on the lift made the finger undriven, and its effort zero."""
    effort, in_gear = (loaded(name).compute_efforts(*geared(joint, ratio)).effort for ratio in (1.0, gear))
    k = [actuator.coordinate.name for actuator in geared(joint, gear)[0].mechanism.actuators].index(joint)
    in_gear = in_gear * np.where(np.arange(len(in_gear[0])) == k, gear, 1)
    assert (np.abs(in_gear - effort).max(axis=0) < 1e-13 * np.abs(effort).max(axis=0)).all()


def test_motions_of_drives_are_not_mixed() -> None:
    """Two independent loops, with a mass ratio of a million: the last digit of each is independent of the other."""
    random = np.random.default_rng(1)
    J = np.zeros((6, 10))
    J[::2, ::2], J[1::2, 1::2] = random.normal(size=(3, 5)), 0.01 * random.normal(size=(3, 5))
    W = np.eye(10)[:4]
    loop = loop_motions(J, W)
    np.testing.assert_allclose(J @ loop.D, 0, atol=1e-14)
    np.testing.assert_allclose(W @ loop.D, np.eye(4), atol=1e-14)
    assert np.abs(loop.D[1::2, ::2]).max() < 1e-25
    assert np.abs(loop.D[::2, 1::2]).max() < 1e-25


def test_redundant_rows_and_drives_drop_out() -> None:
    random = np.random.default_rng(2)
    J = random.normal(size=(3, 6))
    tripled = np.concatenate([J, 1e-3 * J, 30 * J])
    W = np.concatenate([np.eye(6)[:4], J[:1]])  # the fourth follows from the others, the last cannot move
    assert len(independent_drives(tripled, W)) == 3
    assert 4 not in independent_drives(tripled, W)
    assert null_space(tripled).shape == (6, 3)
    M, force, scale = np.diag(random.uniform(1, 2, 6)), random.normal(size=6), np.array([1.0, 20.0, 0.3, 5.0])
    loop = loop_motions(tripled, W[independent_drives(tripled, W)])
    (effort,) = loop.efforts(M, force[:, None], W[:4], scale).T
    N = null_space(J)
    np.testing.assert_allclose(N.T @ W[:4].T @ effort, N.T @ force, atol=1e-13)
    (internal,) = null_space(N.T @ W[:4].T).T
    assert abs((internal / scale) @ (effort / scale)) < 1e-13  # of least norm


@pytest.mark.parametrize("drives", [2, 3, 5], ids=["undriven dof", "all dofs", "redundant drives"])
def test_motions_in_several_poses_are_those_of_each(drives: int) -> None:
    """One pose has fewer independent rows; in another the first drive follows from the second."""
    random = np.random.default_rng(4)
    J, W = random.normal(size=(300, 3, 6)), np.eye(6)[:drives]
    J[7, 2] = J[7, 0]
    J[280, 1] = [1, -2, 0, 0, 0, 0]
    seen: list[int] = []
    for k, loop in loop_motions_along(J, W):
        seen += list(k)
        for i, pose in enumerate(k):
            alone = loop_motions(J[pose], W)
            np.testing.assert_allclose(loop.D[i], alone.D, rtol=0, atol=1e-11 * np.abs(alone.D).max())
            np.testing.assert_allclose(loop.Z[i] @ loop.Z[i].T, alone.Z @ alone.Z.T, atol=1e-11)
    assert sorted(seen) == list(range(300))


def test_rates_that_nothing_drives_come_from_the_motion() -> None:
    random = np.random.default_rng(3)
    J, W = random.normal(size=(2, 6)), np.eye(6)[:2]
    loop = loop_motions(J, W)
    assert loop.Z.shape == (6, 2)
    qd = null_space(J) @ random.normal(size=4)
    np.testing.assert_allclose(loop.velocities(qd), qd, atol=1e-14)
    M, force = np.diag(random.uniform(1, 2, 6)), random.normal(size=6)
    (effort,) = loop.efforts(M, force[:, None], W, np.ones(2)).T
    left = force - M @ loop.Z @ np.linalg.solve(loop.Z.T @ M @ loop.Z, loop.Z.T @ force) - W.T @ effort
    np.testing.assert_allclose(null_space(J).T @ left, 0, atol=1e-13)


@pytest.mark.parametrize("name", ["analytic/noc", "analytic/lagrange", "mujoco/kkt"])
def test_efforts_do_not_hang_on_how_the_plane_of_a_loop_stands_in_the_world(name: str, own: Own) -> None:
    """Nearly square to an axis, the row along it is short and follows from the others as far as hinges are parallel.

    At length one it dominated: a hinge 1e-12 rad out of line, in a plane tilted by 4e-4 rad, was 2e-10 of the effort.
    """
    flat = PLAIN_FOUR_BAR.replace('name="rocker" axis="0 1 0"', 'name="rocker" axis="1e-12 1 0"')
    tilt = Rotation.from_euler("XYZ", (0.02, 0, 0.01), degrees=True)
    gravity = " ".join(f"{component:.17g}" for component in tilt.apply([0, 0, -9.81]))
    frame = f'<option gravity="{gravity}"/><worldbody><frame euler="0.02 0 0.01">'
    tilted = flat.replace("<worldbody>", frame).replace("</worldbody>", "</frame></worldbody>")
    efforts = []
    for plane, text in (("flat", flat), ("tilted", tilted)):
        case = own(plane, text)
        efforts.append(loaded(name).compute_efforts(case, prescribe(case)).effort)
    assert relative_error(efforts[1], efforts[0]) < 2e-12
