"""Conventions of logged wrenches against MuJoCo's own poses and forces."""

from collections.abc import Mapping

import numpy as np
import pytest

from loopcheck.analytic.logs.closing.closed_log import ClosedLog, closed_log
from loopcheck.analytic.logs.closing.closed_motion import States
from loopcheck.analytic.logs.logged_wrenches import CONVENTIONS, WrenchLog, alternatives, to_common, wrench_log
from loopcheck.robots.arrays import Array
from loopcheck.robots.log import COMMON, Convention, Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.validation.common.targets import case_of
from tests.mujoco_wrenches import CHAIN, Readings, prescribed

DRIVES = ("shoulder", "elbow")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Mechanism:
    path = tmp_path_factory.mktemp("chain") / "chain.xml"
    path.write_text(CHAIN)
    return case_of(path).mechanism


@pytest.fixture(scope="module")
def read() -> Readings:
    return prescribed(samples=40)


def closed(
    chain: Mechanism, read: Readings, wrenches: Mapping[str, Array], convention: Convention = COMMON
) -> ClosedLog:
    log = Log(
        name="run", t=read.t, joints=read.joints, q=read.q, qd=read.qd, actuators=DRIVES, effort=read.effort,
        wrenches=wrenches, convention=convention,
    )  # fmt: skip
    return closed_log(chain, log, np.zeros(2))


def in_convention(read: Readings, convention: Convention) -> dict[str, Array]:
    return {name: read.by(name, on=convention.on, point=convention.point, axes=convention.axes) for name in read.joints}


def errors(wrenches: WrenchLog, read: Readings) -> dict[tuple[Convention, str], float]:
    """Largest error of each alternative over the largest force or moment, at MuJoCo's exact motion."""
    rate = 3.0 + np.arange(2)
    states = States(q=read.q, qd=read.qd, qdd=-(rate**2) * read.q)
    size = np.repeat([np.abs(read.wrench[..., :3]).max(), np.abs(read.wrench[..., 3:]).max()], 3)
    found = alternatives(wrenches, states, wrenches.effort, np.zeros_like(read.effort))
    return {(one.convention, one.change): float(np.abs(one.residual.reshape(-1, 2, 6) / size).max()) for one in found}


def test_wrenches_of_every_convention_are_converted(chain: Mechanism, read: Readings) -> None:
    state = States(q=read.q, qd=read.qd, qdd=read.qd).kinematics_of(chain)
    common = np.stack([*in_convention(read, COMMON).values()], axis=1)
    for convention in CONVENTIONS:
        logged = np.stack([*in_convention(read, convention).values()], axis=1)
        converted = (to_common(state, convention) @ logged[..., None])[..., 0]
        np.testing.assert_allclose(converted, common, atol=1e-12 * np.abs(common).max(), err_msg=str(convention))


@pytest.mark.parametrize("convention", CONVENTIONS, ids=str)
def test_a_chain_tells_all_conventions_apart(convention: Convention, chain: Mechanism, read: Readings) -> None:
    """Each fits its own readings alone, and so does the swap of force and moment."""
    logged = in_convention(read, convention)
    found = errors(wrench_log(closed(chain, read, logged), COMMON, None), read)
    assert found.pop((convention, "")) < 1e-10
    assert min(found.values()) > 0.03
    swapped = {name: values[:, [3, 4, 5, 0, 1, 2]] for name, values in logged.items()}
    found = errors(wrench_log(closed(chain, read, swapped), COMMON, None), read)
    assert found.pop((convention, "force and moment swapped")) < 1e-10
    assert min(found.values()) > 0.03


@pytest.mark.parametrize(
    ("times", "change"),
    [(-1, "the effort of the drive, which they lack"), (1, "the effort of the drive once instead of twice")],
)
def test_drives_that_are_left_out_or_counted_twice_are_told(
    times: int, change: str, chain: Mechanism, read: Readings
) -> None:
    logged = in_convention(read, COMMON)
    for k, name in enumerate(read.joints):
        axis = chain.joints[k].axis
        logged[name] = logged[name] + times * read.effort[:, [k]] * np.concatenate([axis, np.zeros(3)])
    found = errors(wrench_log(closed(chain, read, logged), COMMON, None), read)
    assert found.pop((COMMON, change)) < 1e-10
    assert min(found.values()) > 0.03


def test_only_what_logged_components_determine_is_judged(chain: Mechanism, read: Readings) -> None:
    """Two forces in world axes determine no force along a skew axis of the body; the third component is anything."""
    convention = Convention("child", "joint", "world")
    logged = in_convention(read, convention)
    for values in logged.values():
        values[:, [0, 1, 2, 5]] = np.nan
    wrenches = wrench_log(closed(chain, read, logged, convention), convention, None)
    states = States(q=read.q, qd=read.qd, qdd=-((3.0 + np.arange(2)) ** 2) * read.q)
    maps = wrenches.moving(states).reshape(-1, 2, 6, 2, 6)
    needed = wrenches.needed(states.kinematics_of(chain), states.qdd).effort.reshape(-1, 2, 6)
    for k, name in enumerate(read.joints):
        turn = read.turns["child"][:, k]
        along = np.einsum("nji,nj->ni", turn, [0.0, 0.0, 1.0] * np.ones((len(read.t), 1)))
        force = read.by(name)[:, 3:]
        visible = force - along * (along * force).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(needed[:, k], np.concatenate([np.zeros_like(force), visible], axis=1), atol=1e-10)
        assert not maps[:, k, :3].any() or np.abs(maps[:, k, :3]).max() < 1e-12
        logged_part = np.einsum("nij,nj->ni", maps[:, k, :, k], np.nan_to_num(logged[name]))
        np.testing.assert_allclose(logged_part, needed[:, k], atol=1e-10)


def test_columns_of_wrenches_follow_the_rows_of_a_log(read: Readings) -> None:
    """Efforts until their times: row 1 of the wrenches belongs to row 0 of the motion."""
    from loopcheck.robots.log import Held

    log = Log(
        name="run", t=read.t, joints=read.joints, q=read.q, actuators=DRIVES, effort=read.effort,
        wrenches={"elbow": read.by("elbow")}, effort_time=Held(0.01, until=True),
    )  # fmt: skip
    np.testing.assert_array_equal(log.from_their_times().wrenches["elbow"], read.by("elbow")[1:])
