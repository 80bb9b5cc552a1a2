"""A closed mechanism seen at its serial joints: against a planar formula, other dynamics, and searches."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.spatial import ConvexHull

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.powers import tree_inertia
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.transmission import fit
from loopcheck.analytic.transmission.carrying import carried_masses
from loopcheck.analytic.transmission.fit import fitted_map, sound_box
from loopcheck.analytic.transmission.joint_space import (
    independent_joints,
    joint_efforts,
    joint_motions,
    moved,
    reached_poses,
)
from loopcheck.analytic.transmission.limits import (
    Box,
    effort_facets,
    effort_ranges,
    joint_ranges,
    largest_alone,
    largest_box,
    most,
)
from loopcheck.analytic.transmission.terms import joint_terms, motor_efforts
from loopcheck.analytic.transmission.twin import Twin, make_twin, sound_poses, want_driven, workspace
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, MotionSpec, Robot, load, make_case

LEGS = CATALOGUE / "legs"
PAIRS = ("knee", "ankle")
Changed = Callable[..., Path]


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    """Writes a model of the folder with other text in it."""

    def write(name: str, *changes: tuple[str, str]) -> Path:
        text = (LEGS / f"{name}.xml").read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / f"{name}.xml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def read(path: Path | str) -> Mechanism:
    return read_mechanism(ModelFile(path=LEGS / f"{path}.xml" if isinstance(path, str) else path))


def twin_of(closed: Path | str, serial: Path | str, hold: tuple[str, ...] = (), **given: str) -> Twin:
    mechanism, other = read(closed), read(serial)
    return make_twin(mechanism, mechanism.rest_position, other, other.rest_position, given, hold)


@pytest.fixture(scope="module", params=PAIRS)
def twin(request: pytest.FixtureRequest) -> Twin:
    return twin_of(request.param, f"{request.param}_serial")


def moving(name: str) -> tuple[Case, Motion]:
    robot = Robot(
        name=name, folder=LEGS, title="", mjcf=f"{name}.xml", motion=MotionSpec(law="automatic"), source="test"
    )
    case = make_case(robot, variant="default", mode="home", configuration="horizontal")
    return case, prescribe(case, dt=0.1)


def crank_angle(knee: Array) -> Array:
    """The planar four-bar of knee.xml: the crank's tip at the intersection of two circles, by the law of cosines."""
    pivot, joint = np.array([0, -0.05]), np.array([0, -0.4])
    c, s = np.cos(knee), np.sin(knee)
    heel = joint + np.stack([-0.05 * c + 0.015 * s, 0.05 * s + 0.015 * c], axis=-1)  # about y: z to x
    crank, rod = np.hypot(0.06, 0.005), np.hypot(0.01, 0.34)
    across = heel - pivot
    length = np.linalg.norm(across, axis=-1)
    corner = np.arccos((crank**2 + length**2 - rod**2) / (2 * crank * length))
    direction = np.arctan2(across[..., 1], across[..., 0]) - corner
    angle = np.arctan2(0.005, -0.06) - direction  # turning about y goes from z to x
    return np.asarray((angle + np.pi) % (2 * np.pi) - np.pi)


def test_the_map_of_a_four_bar_is_that_of_planar_trigonometry() -> None:
    twin = twin_of("knee", "knee_serial")
    x, step = np.linspace(-0.5, 0.7, 13), 1e-6
    q, sound = sound_poses(twin.closed, x[:, None])
    assert sound.all()
    assert q[:, 1] == pytest.approx(crank_angle(x), abs=1e-12)
    T = joint_terms(twin.closed, q).transmission[:, 0, 0]
    assert pytest.approx((crank_angle(x + step) - crank_angle(x - step)) / (2 * step), rel=1e-8) == T
    assert np.ptp(T) > 0.1


def test_poses_beyond_a_limit_of_a_passive_joint_are_not_sound(changed: Changed) -> None:
    narrow = changed("knee", ('name="crank" axis="0 1 0"', 'name="crank" axis="0 1 0" range="-0.2 0.3"'))
    x = np.linspace(-0.45, 0.65, 12)
    angle = crank_angle(x)
    expected = (angle > -0.2) & (angle < 0.3)
    assert 0 < expected.sum() < len(x)
    np.testing.assert_array_equal(sound_poses(twin_of(narrow, "knee_serial").closed, x[:, None])[1], expected)


SLIDE = """<body name="{0}"><joint name="{0}" type="slide" axis="1 0 0"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>"""
CURVE = """<mujoco><worldbody>{bodies}</worldbody>
  <equality><joint name="curve" joint1="x" joint2="l" polycoef="0 -1 0 {cubic} 0"/></equality>
  <actuator><motor name="m" joint="l"/></actuator></mujoco>"""


def on_a_cubic(size: float, folder: Path, start: float = 1.0) -> Twin:
    """A slide x = l³/size² - l, moved by a motor at l, which starts at l = start times size.

    Below x = -0.385 size, with the flat point of the curve at l = size/√3, its mode ends; another mode goes on far
    away.
    """
    bodies = "".join(SLIDE.format(name) for name in ("x", "l"))
    closed, serial = folder / "curve.xml", folder / "slide.xml"
    closed.write_text(CURVE.format(bodies=bodies, cubic=size**-2), encoding="utf-8")
    motor = '<actuator><motor name="m" joint="x"/></actuator>'
    serial.write_text(f"<mujoco><worldbody>{SLIDE.format('x')}</worldbody>{motor}</mujoco>", encoding="utf-8")
    return make_twin(read(closed), np.array([start**3 - start, start]) * size, read(serial), np.zeros(1), {})


def test_no_pose_of_another_working_mode_is_reached(tmp_path: Path) -> None:
    """A step of 0.05 leads beyond the end of the mode, and Newton's method may find the other mode."""
    size = 0.05
    space = on_a_cubic(size, tmp_path).closed
    x = size * np.linspace(-1.2, 0.3, 41)
    q, reached = reached_poses(space, x[:, None])
    assert (q[:, 1] > size / np.sqrt(3)).all()
    assert not reached[x < -0.385 * size].any()
    assert reached[x > -0.35 * size].all()


def test_poses_near_a_singular_loop_are_not_sound(tmp_path: Path) -> None:
    """The motor's rate per rate of x is 1/(3 l² - 1): 1.1 at the start, and beyond 20 times that not sound."""
    space = on_a_cubic(1.0, tmp_path, start=0.8).closed
    far = 6.0  # a long way, so that steps on all ways are short
    x = np.array([-0.3, -0.38, -0.38475, far])
    q, reached = reached_poses(space, x[:, None])
    assert reached.all()
    slope = 3 * q[:, 1] ** 2 - 1
    assert slope[1] / 0.92 > 0.1
    assert slope[2] / 0.92 < 0.04
    assert sound_poses(space, x[:, None])[1].tolist() == [True, True, False, True]


def test_the_narrowest_of_several_limits_of_a_motor_counts(changed: Changed) -> None:
    """Force range -60 to 60 at the motor; control range times gain; force range of the joint over the gear of 4."""
    motor = 'name="knee_motor" joint="crank" forcerange="-60 60"'
    several = motor + ' ctrlrange="-5 50" gear="4"'
    path = changed("knee", (motor, several), ('name="crank" axis', 'name="crank" actuatorfrcrange="-400 160" axis'))
    limits = effort_ranges(twin_of(path, "knee_serial").closed, [0])
    assert (limits.low[0], limits.high[0]) == (-5, 40)


@pytest.mark.parametrize("name", PAIRS)
def test_motors_give_what_other_dynamics_with_multipliers_say(name: str) -> None:
    case, motion = moving(name)
    space = twin_of(name, f"{name}_serial").closed
    efforts = joint_efforts(space, motion.q, motion.qd, motion.qdd)
    T = joint_terms(space, motion.q).transmission
    expected = Lagrange().compute_efforts(case, motion).effort
    assert motor_efforts(T, efforts) == pytest.approx(expected, abs=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("name", PAIRS)
def test_a_motion_of_the_joints_moves_everything_as_the_motors_did(name: str) -> None:
    _, motion = moving(name)
    space = twin_of(name, f"{name}_serial").closed
    X_T = space.selection.T
    q, reached = reached_poses(space, space.coordinates(motion.q))
    assert reached.all()
    assert q == pytest.approx(motion.q, abs=1e-12)
    qd, qdd = moved(space, q, motion.qd @ X_T, motion.qdd @ X_T)
    assert qd == pytest.approx(motion.qd, abs=1e-11)
    assert qdd == pytest.approx(motion.qdd, abs=1e-9)


def test_terms_add_up_to_the_efforts(twin: Twin) -> None:
    """At rest weights and springs, with accelerations from rest the mass matrix, with tiny rates the damping."""
    space, n = twin.closed, len(twin.names)
    x = np.random.default_rng(1).uniform(0.5 * twin.ranges[:, 0], 0.5 * twin.ranges[:, 1], (4, n))
    q = sound_poses(space, x)[0]
    terms, zero = joint_terms(space, q), np.zeros((4, n))
    still = terms.weight + terms.spring
    assert joint_efforts(space, q, *moved(space, q, zero, zero)) == pytest.approx(still, abs=1e-12)
    for k, unit in enumerate(np.eye(n)):
        force = joint_efforts(space, q, *moved(space, q, zero, zero + unit)) - still
        assert force == pytest.approx(terms.mass[:, :, k], abs=1e-12)
        rates = [joint_efforts(space, q, *moved(space, q, sign * unit + zero, zero)) for sign in (1, -1)]
        assert (rates[0] - rates[1]) / 2 == pytest.approx(terms.damping[:, :, k], abs=1e-12)


def test_functions_of_the_joints_are_the_closed_model(twin: Twin) -> None:
    """Motions too: the differentiated equations in the joints, against the equations of all bodies."""
    functions, error = fitted_map(twin, sound_box(twin), seed=0)
    assert error.max() < 1e-7
    generator = np.random.default_rng(2)
    x, xd, xdd = (
        generator.uniform(functions.low, functions.high, (20, len(twin.names))) * factor for factor in (0.9, 9, 90)
    )
    closed, serial = (
        joint_efforts(space, q, *moved(space, q, xd, xdd))
        for space in (twin.closed, twin.serial)
        for q in (sound_poses(space, x)[0],)
    )
    efforts = functions.missing_efforts(x, xd, xdd)
    assert serial + efforts == pytest.approx(closed, abs=1e-6 * np.abs(closed).max())
    with pytest.raises(ValueError, match=r"(knee|roll): must be within .* got 1"):
        functions.transmission(x + 10)


def test_more_joints_than_a_grid_can_take_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "DEGREES", {1: (6,)})
    twin = twin_of("ankle", "ankle_serial")
    with pytest.raises(
        MechanismError, match=r"at most 1 shared joints, got 2 .the coarsest grid .* has 25 poses.\. Hold"
    ):
        fitted_map(twin, twin.ranges, seed=0)


def test_a_rod_between_balls_may_spin_but_a_second_motor_less_joint_may_not(changed: Changed) -> None:
    spinning = changed("knee", ('name="crank_rod" axis="0 1 0"', 'name="crank_rod" type="ball"'))
    twin, plain = twin_of(spinning, "knee_serial"), twin_of("knee", "knee_serial")
    assert twin.closed.spare == 1
    x = np.linspace(-0.4, 0.6, 5)[:, None]
    terms, expected = (joint_terms(one.closed, sound_poses(one.closed, x)[0]) for one in (twin, plain))
    assert terms.transmission == pytest.approx(expected.transmission, abs=1e-9)
    assert terms.mass == pytest.approx(expected.mass, rel=1e-6)
    assert twin.notes == ()
    ball = ('name="crank_rod" axis="0 1 0"', 'name="crank_rod" type="ball"')
    rounded = twin_of(changed("knee", ball, ('pos="0.005 0 -0.17"', 'pos="0.005 1e-7 -0.17"')), "knee_serial")
    assert rounded.notes[0].startswith("crank_rod may spin: the weight that turns them (")
    with pytest.raises(MechanismError, match=r"1 further degrees of freedom remain, of joints crank_rod"):
        twin_of(changed("knee", ball, ('pos="0.005 0 -0.17"', 'pos="0.005 1e-3 -0.17"')), "knee_serial")
    no_roll = changed(
        "ankle_serial",
        ('<joint name="roll" axis="1 0 0" range="-0.25 0.25" damping="0.02"/>', ""),
        ('<motor name="roll" joint="roll" ctrlrange="-35 35" ctrllimited="true"/>', ""),
    )
    with pytest.raises(
        MechanismError,
        match=r"the shared joints pitch must determine .* 1 further degrees of freedom remain, of joints .*roll",
    ):
        twin_of("ankle", no_roll)


def test_held_joints_stay(changed: Changed) -> None:
    twin = twin_of("ankle", "ankle_serial", hold=("roll",))
    assert twin.names == ("pitch",)
    q = sound_poses(twin.closed, np.array([[0.2]]))[0]
    assert abs(q[0, 1]) < 1e-12
    floating = changed(
        "knee", ('<body name="thigh" pos="0 0 1">', '<body name="thigh" pos="0 0 1"><freejoint name="b"/>')
    )
    free, plain = (twin_of(path, "knee_serial") for path in (floating, "knee"))
    terms, expected = (joint_terms(one.closed, sound_poses(one.closed, np.array([[0.3]]))[0]) for one in (free, plain))
    assert terms.mass == pytest.approx(expected.mass, rel=1e-9)
    assert terms.weight == pytest.approx(expected.weight, rel=1e-9)


def test_pairs_by_name_map_and_axis(changed: Changed) -> None:
    renamed = changed(
        "knee_serial", ('joint name="knee" axis="0 1 0"', 'joint name="k" axis="0 -1 0"'), ('joint="knee"', 'joint="k"')
    )
    (by_axis,), (by_map,) = twin_of("knee", renamed).pairs, twin_of("knee", renamed, knee="k").pairs
    assert (by_axis.serial, by_axis.sign, by_axis.by) == ("k", -1.0, "axis")
    assert (by_map.serial, by_map.sign, by_map.by) == ("k", -1.0, "map")
    samples = workspace(twin_of("knee", renamed), np.array([[-0.3], [0.4]]))
    assert samples.pose_error.max() < 1e-7


def test_effort_limits_of_a_serial_model_keep_both_ends(changed: Changed) -> None:
    """A motor on a gear of -2 with a range of its own on each side; a joint without a motor has no limit."""
    one_sided = changed(
        "knee_serial",
        ('<motor name="knee" joint="knee"/>', '<motor name="knee" joint="knee" gear="-2" forcerange="-30 50"/>'),
        (' actuatorfrcrange="-60 60"', ""),
    )
    ranges = joint_ranges(twin_of("knee", one_sided).serial)
    assert (ranges.low[0], ranges.high[0]) == (-100, 60)


def test_models_without_common_poses_are_refused_with_both_counts() -> None:
    with pytest.raises(MechanismError, match=r"0 of 2 in common: the closed mechanism reaches \d, the serial model \d"):
        workspace(twin_of("knee", "knee_serial"), np.array([[40.0], [-40.0]]))


def test_bad_input_is_named(changed: Changed) -> None:
    with pytest.raises(NotFoundError, match=r"unknown hinge or slide of knee\.xml: 'hip'"):
        twin_of("knee", "knee_serial", hip="knee")
    with pytest.raises(NotFoundError, match="unknown joint: 'hip'"):
        twin_of("knee", "knee_serial", hold=("hip",))
    with pytest.raises(MechanismError, match=r"must share a joint with knee\.xml"):
        twin_of("knee", "ankle_serial")
    with pytest.raises(MechanismError, match=r"'pitch' does not match 'roll' .* got 90 degrees"):
        twin_of("ankle", "ankle_serial", roll="pitch")
    no_motor = changed("knee", ('joint="crank" forcerange="-60 60"', 'joint="crank_rod" forcerange="-60 60"'))
    want_driven(twin_of(no_motor, "knee_serial"))
    idle = changed(
        "ankle", ('<motor name="right_motor" joint="right_crank" ctrlrange="-30 30" ctrllimited="true"/>', "")
    )
    with pytest.raises(MechanismError, match="motors must move all shared joints, got left_motor"):
        want_driven(twin_of(idle, "ankle_serial"))
    assert sound_poses(twin_of(idle, "ankle_serial").closed, np.array([[0.1, 0.1]]))[1].all()


def test_shared_joints_that_depend_on_each_other_are_refused(changed: Changed) -> None:
    tied = changed("knee_serial", ('<inertial mass="2"', '<joint name="crank" axis="0 1 0"/><inertial mass="2"'))
    with pytest.raises(MechanismError, match="shared joints must be independent in the initial pose, got knee, crank"):
        twin_of("knee", tied)


def rows_of_ankle() -> Array:
    space = twin_of("ankle", "ankle_serial").closed
    x = np.array(list(product((-0.4, 0.3), (-0.2, 0.2))))
    T = joint_terms(space, sound_poses(space, x)[0]).transmission
    return np.asarray(np.linalg.inv(T).swapaxes(1, 2).reshape(-1, 2))


def test_the_largest_box_is_that_of_a_dense_search() -> None:
    rows = rows_of_ankle()
    box = largest_box(rows, np.full(len(rows), -30.0), np.full(len(rows), 30.0))
    sides = np.stack(np.meshgrid(np.linspace(0, 80, 801), np.linspace(0, 80, 801)), axis=-1).reshape(-1, 2)
    corners = np.array([[1, 1], [1, -1]])  # others are these turned round
    safe = np.abs((sides[:, None] * corners) @ rows.T).max(axis=(1, 2)) <= 30
    best = sides[safe][np.prod(sides[safe], axis=1).argmax()]
    assert np.prod(box.high) == pytest.approx(np.prod(best), rel=0.01)
    assert np.prod(box.high) >= np.prod(best) * (1 - 1e-9)
    assert box.low == pytest.approx(-box.high, rel=1e-4)
    reached = most(rows, box)
    assert reached.high.max() <= 30 * (1 + 1e-9)
    assert reached.high.max() == pytest.approx(30, rel=1e-6)
    alone = largest_alone(rows, np.full(len(rows), -30.0), np.full(len(rows), 30.0))
    for k in range(2):
        safe = np.abs(sides[:, k, None] * rows[:, k]).max(axis=1) <= 30
        assert alone.high[k] == pytest.approx(sides[safe, k].max(), abs=0.2)


def test_what_more_motors_than_joints_can_give_is_the_hull_of_a_dense_search(changed: Changed) -> None:
    """The ankle with a third motor at its pitch, of uneven limits: efforts of 9,261 choices of the motors."""
    third = changed(
        "ankle",
        ("</actuator>", '<motor name="third" joint="pitch" forcerange="-5 12" forcelimited="true"/></actuator>'),
    )
    space = twin_of(third, "ankle_serial").closed
    T = joint_terms(space, sound_poses(space, np.array([[0.3, 0.2], [-0.4, -0.1]]))[0]).transmission
    limits = effort_ranges(space, range(3))
    assert (limits.low[2], limits.high[2]) == (-5, 12)
    facets = effort_facets(T, limits)
    ways = np.array(list(product(*(np.linspace(*ends, 21) for ends in zip(limits.low, limits.high, strict=True)))))
    hulls = [ConvexHull(ways @ ratios) for ratios in T]
    around = np.stack([np.cos(np.linspace(0, 2 * np.pi, 60)), np.sin(np.linspace(0, 2 * np.pi, 60))], axis=1)
    for hull, rows, low, high in zip(hulls, facets.rows, facets.low, facets.high, strict=True):
        farthest = 1 / (hull.equations[:, :2] / -hull.equations[:, 2:]).dot(around.T).max(axis=0)
        along = rows @ around.T
        reached = 1 / np.maximum(along / high[:, None], along / low[:, None]).max(axis=0)
        assert reached == pytest.approx(farthest, rel=1e-9)
    box = largest_box(facets.rows.reshape(-1, 2), facets.low.ravel(), facets.high.ravel())
    corners = np.array(list(product(*zip(box.low, box.high, strict=True))))
    over = [(corners @ hull.equations[:, :2].T + hull.equations[:, 2]).max() for hull in hulls]
    assert max(over) == pytest.approx(0, abs=1e-6 * box.high.max())
    generator = np.random.default_rng(0)
    for _ in range(500):
        sides = np.abs([box.low, box.high]) * np.exp(generator.uniform(-0.3, 0.3, (2, 2)))
        other = np.array(list(product(*zip(-sides[0], sides[1], strict=True))))
        scale = max((other @ (hull.equations[:, :2] / -hull.equations[:, 2:]).T).max() for hull in hulls)
        assert np.prod(sides.sum(axis=0) / scale) <= np.prod(box.high - box.low) * (1 + 1e-6)


def test_motors_that_pull_alike_make_no_facet_of_their_own(changed: Changed) -> None:
    """Two motors on a joint have the effect of a single motor of their sum."""
    text = '<motor name="knee_motor" joint="crank" forcerange="-60 60"/>'
    twice = changed("knee", (text, text + '<motor name="second" joint="crank" gear="2" forcerange="-5 10"/>'))
    space = twin_of(twice, "knee_serial").closed
    T = joint_terms(space, sound_poses(space, np.array([[0.3]]))[0]).transmission
    facets = effort_facets(T, effort_ranges(space, range(2)))
    both = np.sort([-70 * T[0, 0, 0], 80 * T[0, 0, 0]])
    ends = np.sort([facets.low[0, 0] / facets.rows[0, 0, 0], facets.high[0, 0] / facets.rows[0, 0, 0]])
    assert ends == pytest.approx(both)
    spatial = np.array([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    limits = Box(low=np.array([-1.0, -2.0, -3.0]), high=np.array([4.0, 5.0, 6.0]))
    facets = effort_facets(spatial, limits)
    box = largest_box(facets.rows[0], facets.low[0], facets.high[0])
    assert box.low == pytest.approx([-3, -3])
    assert box.high == pytest.approx([9, 6])


def test_no_random_box_within_uneven_limits_is_larger() -> None:
    rows = rows_of_ankle()
    low, high = np.resize([-30.0, -10.0], len(rows)), np.resize([20.0, 40.0], len(rows))
    box = largest_box(rows, low, high)
    inside = most(rows, box)
    assert (inside.high <= high * (1 + 1e-9)).all()
    assert (inside.low >= low * (1 + 1e-9)).all()
    volume = np.prod(box.high - box.low)
    generator = np.random.default_rng(0)
    largest = 0.0
    for spread in np.repeat([0.05, 3.0], 2000):
        up, down = np.array([box.high, -box.low]) * np.exp(generator.uniform(-spread, spread, (2, 2)))
        reached = most(rows, Box(low=-down, high=up))
        scale = max((reached.high / high).max(), (reached.low / low).max())
        largest = max(largest, float(np.prod((up + down) / scale)))
    assert 0.95 * volume < largest <= volume * (1 + 1e-6)
    alone = largest_alone(rows, low, high)
    assert (alone.low < 0).all()
    assert (alone.high > 0).all()
    for ends in (alone.low, alone.high):
        used = np.maximum(rows * ends / high[:, None], rows * ends / low[:, None]).max(axis=0)
        assert used == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("seed", [18, 26, 39])
def test_a_box_exceeds_no_limit_by_the_tolerance_of_the_optimizer(seed: int) -> None:
    """The optimizer alone exceeds the limits of these rows by up to 40 ulp."""
    generator = np.random.default_rng(seed)
    rows, high, low = generator.normal(size=(40, 3)), generator.uniform(1, 3, 40), -generator.uniform(0.5, 2, 40)
    inside = most(rows, largest_box(rows, low, high))
    assert max((inside.high / high).max(), (inside.low / low).max()) <= 1 + 2 * np.finfo(float).eps


def test_a_start_is_inside_limits(changed: Changed) -> None:
    """A knee at zero in its file, outside of its limits."""
    bent = changed("knee", ('range="-0.5 0.7"', 'range="0.2 0.7"'))
    twin = twin_of(bent, "knee_serial")
    assert 0.2 < twin.closed.coordinates(twin.closed.start[None])[0, 0] < 0.7
    assert "outside joint limits; the motion starts inside" in twin.notes[0]
    assert twin_of("knee", "knee_serial").notes == ()


def test_springs_are_the_slope_of_their_energy(changed: Changed) -> None:
    sprung = changed(
        "knee", ('name="crank_rod" axis="0 1 0"', 'name="crank_rod" axis="0 1 0" stiffness="3" springref="0.2"')
    )
    space, plain = twin_of(sprung, "knee_serial").closed, twin_of("knee", "knee_serial").closed
    x, step = np.linspace(-0.4, 0.6, 6)[:, None], 1e-5
    energies = [1.5 * (sound_poses(space, x + side)[0][:, 2] - 0.2) ** 2 for side in (step, -step)]
    terms, expected = (joint_terms(one, sound_poses(one, x)[0]) for one in (space, plain))
    assert terms.spring[:, 0] == pytest.approx((energies[0] - energies[1]) / (2 * step), abs=1e-8)
    assert terms.weight == pytest.approx(expected.weight, abs=1e-12)
    assert np.abs(terms.spring).max() > 0.05


def test_rods_spin_as_no_force_makes_them(changed: Changed) -> None:
    """Of all motions with the same joint rates, that of least kinetic energy: no force acts along the others."""
    hinges = [(f'<joint name="{side}_rod_x" axis="1 0 0"/>', "") for side in ("left", "right")]
    balls = [(f'name="{side}_rod_y" axis="0 1 0"', f'name="{side}_rod" type="ball"') for side in ("left", "right")]
    space, hinged = (twin_of(path, "ankle_serial").closed for path in (changed("ankle", *hinges, *balls), "ankle"))
    assert space.spare == 2
    q = sound_poses(space, np.array([[0.3, 0.2]]))[0]
    state = State(mechanism=space.mechanism, q=q, qd=np.zeros((1, space.mechanism.nv)))
    D, M = joint_motions(space, state)[0], tree_inertia(state)[0]
    Z = null_space(np.concatenate([state.Phi[0], space.selection]), rcond=1e-9)
    assert Z.shape[1] == 2
    energy = np.einsum("vn,vw,wn->n", D, M, D)
    for spin in Z.T:
        for size in (0.1, -0.1):
            more = D + size * spin[:, None]
            assert (np.einsum("vn,vw,wn->n", more, M, more) > energy).all()
    own = joint_terms(space, q)
    other = joint_terms(hinged, sound_poses(hinged, np.array([[0.3, 0.2]]))[0])
    assert own.transmission == pytest.approx(other.transmission, abs=1e-9)
    assert own.mass == pytest.approx(other.mass, rel=1e-3)


def test_a_foot_carries_more_than_the_crank_and_the_rod_that_move_it(changed: Changed) -> None:
    """A rod of .25 kg hangs by half on the crank; alone it would be heavier with the crank than a light shank."""
    light = changed("knee", ('<inertial mass="2"', '<inertial mass="0.28"'))
    masses = dict(zip(("thigh", "shank", "crank", "rod"), carried_masses(read(light)), strict=True))
    share = 0.005 * 0.01 + 0.17 * 0.34  # of the rod's mass centre on the way from its joint to its end
    share /= 0.01**2 + 0.34**2
    assert masses["rod"] == pytest.approx(0.25 * (1 - share))
    assert masses["crank"] == pytest.approx(0.15 + 0.25 * (1 - share))
    assert masses["shank"] == pytest.approx(0.28 + 0.25 * share)
    assert masses["thigh"] == pytest.approx(4 + 0.28 + 0.15 + 0.25)
    mechanism = read(light)
    assert independent_joints(mechanism, mechanism.rest_position, ["crank", "knee"]) == ("knee",)


def test_a_stand_in_with_loops_may_start_where_they_are_closed() -> None:
    """Its keyframe is then its start, and must stay unchanged."""
    case = make_case(load("four_bar"), variant="default", mode="home", configuration="horizontal")
    twin = make_twin(case.mechanism, case.guess, case.mechanism, case.guess, {})
    (own,), (other,) = (space.coordinates(case.guess[None]) for space in (twin.closed, twin.serial))
    places = [[joint.name for joint in case.mechanism.joints].index(name) for name in twin.names]
    np.testing.assert_allclose(own, case.guess[places], atol=1e-12)  # this keyframe closes the loop
    np.testing.assert_allclose(other, own, atol=1e-12)


def test_efforts_of_as_many_motors_as_joints_map_by_the_transposed_transmission() -> None:
    """The power of motors is that of the joints, whatever the rates."""
    T, generator = np.array([[[2.0, -1.0], [0.5, 3.0]]]), np.random.default_rng(4)
    facets = effort_facets(T, Box(low=np.array([-5.0, -7.0]), high=np.array([6.0, 8.0])))
    tau, rates = generator.normal(size=2), generator.normal(size=2)
    motors = facets.rows[0] @ tau
    assert motors @ (T[0] @ rates) == pytest.approx(tau @ rates, rel=1e-12)
    assert (facets.low[0].tolist(), facets.high[0].tolist()) == ([-5.0, -7.0], [6.0, 8.0])


def test_a_fitted_map_keeps_the_power_between_motors_and_joints() -> None:
    twin = twin_of("ankle", "ankle_serial")
    found, _ = fitted_map(twin, np.array([[-0.1, 0.1], [-0.1, 0.1]]), 0)
    x, rates, tau = (np.random.default_rng(k).uniform(-0.1, 0.1, (5, 2)) for k in range(3))
    motor_rates = np.einsum("tan,tn->ta", found.transmission(x), rates)
    at_joints, at_motors = found.joint_efforts(x, tau), found.motor_efforts(x, tau)
    assert (at_joints * rates).sum(axis=1) == pytest.approx((tau * motor_rates).sum(axis=1), rel=1e-12)
    assert (at_motors * motor_rates).sum(axis=1) == pytest.approx((tau * rates).sum(axis=1), rel=1e-12)
