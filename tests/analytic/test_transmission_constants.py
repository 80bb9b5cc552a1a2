"""Constants of a serial model: their effects against equations of motion, their optimality, and what chooses them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from loopcheck.analytic.transmission import motions
from loopcheck.analytic.transmission.constants import (
    Constants,
    Kind,
    armatures_at,
    armatures_of,
    best_in_hindsight,
    fitted_constants,
    grids_of,
    nearest_diagonal,
    usual_poses,
    with_armatures,
)
from loopcheck.analytic.transmission.joint_space import JointSpace, joint_efforts, moved
from loopcheck.analytic.transmission.motions import (
    MotionEfforts,
    choosing_motions,
    efforts_along,
    fitting_motions,
    is_worse,
    largest_error,
    random_course,
    stated_motions,
)
from loopcheck.analytic.transmission.regressor import SECOND_MOMENTS, links, regressor
from loopcheck.analytic.transmission.twin import Twin, make_twin, sound_poses
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from tests.analytic.test_transmission import LEGS, PAIRS, Changed, changed, read, twin_of

__all__ = ["changed"]
ALL = frozenset(Kind)


def inner_box(twin: Twin) -> Array:
    middle, half = twin.ranges.mean(axis=1), np.ptp(twin.ranges, axis=1) / 2
    return np.stack([middle - 0.9 * half, middle + 0.9 * half], axis=1)


@cache
def pair(name: str) -> tuple[Twin, Array, list[MotionEfforts]]:
    """A pair of models with the stated motions."""
    twin = twin_of(name, f"{name}_serial")
    box = inner_box(twin)
    return twin, box, [efforts_along(side, motion, course) for motion, side, course in stated_motions(twin, box)]


def fitted(twin: Twin, able: Collection[Kind] = ALL) -> Constants:
    box = inner_box(twin)
    fit, choice = (
        [efforts_along(side, name, course) for name, side, course in make(twin, box)]
        for make in (fitting_motions, choosing_motions)
    )
    return fitted_constants(twin, box, fit, choice, able)


@cache
def fitted_pair(name: str) -> Constants:
    return fitted(pair(name)[0])


def twin_with(whole: Mechanism, plain: Mechanism) -> Twin:
    return make_twin(whole, whole.rest_position, plain, plain.rest_position, {})


def with_joints(mechanism: Mechanism, **values: Mapping[str, Any]) -> Mechanism:
    """Other constants of joints by attribute and name."""
    joints = [
        replace(joint, **{attribute: each[joint.name] for attribute, each in values.items() if joint.name in each})
        for joint in mechanism.joints
    ]
    return replace(mechanism, joints=tuple(joints))


def efforts(space: JointSpace, x: Array, xd: Array, xdd: Array) -> Array:
    q, sound = sound_poses(space, x)
    assert sound.all()
    return joint_efforts(space, q, *moved(space, q, xd, xdd))


def test_efforts_are_linear_in_the_moments_of_links_as_the_equations_of_motion_say() -> None:
    twin, box, _ = pair("ankle")
    held = [replace(body, gravity_compensation=0.3) for body in twin.serial.mechanism.bodies]
    space = replace(twin.serial, mechanism=replace(twin.serial.mechanism, bodies=tuple(held)))
    (x, xd, xdd), generator = random_course(box, 3), np.random.default_rng(3)
    q = sound_poses(space, x)[0]
    Y = regressor(space, q, *moved(space, q, xd, xdd))
    before = efforts(space, x, xd, xdd)
    bodies, theta = list(space.mechanism.bodies), []
    for b in links(space):
        body, d, more = bodies[b], generator.uniform(-0.1, 0.1, 3), np.diag(generator.uniform(1, 2, 3) * 1e-2)
        more[0, 1] = more[1, 0] = 3e-3
        bodies[b] = replace(body, center=body.center + d, inertia=body.inertia + np.trace(more) * np.eye(3) - more)
        moments = more + body.mass * np.outer(d, d)
        theta += [body.mass * d, np.array([moments[place] for place in SECOND_MOMENTS])]
    other = replace(space, mechanism=replace(space.mechanism, bodies=tuple(bodies)))
    after = efforts(other, x, xd, xdd)
    assert np.abs(after - before).max() > 0.5
    assert before + Y @ np.concatenate(theta) == pytest.approx(after, abs=1e-11)


def test_the_diagonal_is_that_of_a_bounded_least_squares_search() -> None:
    generator = np.random.default_rng(0)
    inverse, root = generator.normal(size=(40, 3, 2)), generator.normal(size=(40, 2, 2))
    whole, half = root @ root.swapaxes(1, 2), np.array([0.3, 2.0])
    missing, weights = whole - np.diag([0.2, 3.0]), generator.uniform(size=40)
    weights /= weights.sum()
    used = np.sqrt(np.einsum("p,paj->a", weights, (inverse @ whole * half) ** 2))
    share = np.sqrt(weights)[:, None, None] / used[:, None]
    columns = [(inverse @ unit * half * share).ravel() for unit in (np.diag([1.0, 0.0]), np.diag([0.0, 1.0]))]
    expected = lsq_linear(np.transpose(columns), (inverse @ missing * half * share).ravel(), (0, np.inf)).x
    assert expected[0] > 0.1
    assert expected[1] == pytest.approx(0, abs=1e-9)
    assert nearest_diagonal(inverse, missing, whole, half, weights) == pytest.approx(expected, abs=1e-9)


def test_a_constant_diagonal_is_taken_as_it_is() -> None:
    generator = np.random.default_rng(1)
    weights, half = np.full(20, 0.05), np.array([0.5, 1.0])
    missing = np.tile(np.diag([0.1000009, 0.225002025]), (20, 1, 1))
    whole = missing + generator.uniform(0.1, 0.2, size=(20, 1, 1))
    found = nearest_diagonal(generator.normal(size=(20, 2, 2)), missing, whole, half, weights)
    assert found.tolist() == [0.1000009, 0.225002025]
    none = nearest_diagonal(generator.normal(size=(20, 2, 2)), 0 * missing - 1e-13, whole, half, weights)
    assert none.tolist() == [0.0, 0.0]


def test_usual_poses_lie_about_the_middle_the_same_to_both_sides() -> None:
    for joints, count in ((1, 41), (2, 81), (3, 729), (4, 625), (6, 729), (10, 1024)):
        u, weights = usual_poses(joints)
        assert u.shape == (count, joints)
        assert weights.sum() == pytest.approx(1)
        assert weights @ u == pytest.approx(np.zeros(joints), abs=1e-12)
    u, weights = usual_poses(2)
    ratio = weights[np.abs(u).sum(axis=1).argmin()] / weights[np.abs(u[:, 0] - u[4, 0]).argmin()]
    distance = np.sum(u[np.abs(u[:, 0] - u[4, 0]).argmin()] ** 2) / 0.35**2
    assert np.log(ratio) == pytest.approx(distance / 2)


def test_constants_that_were_taken_away_are_given_back() -> None:
    """A robot and the same with other rotors, dampers and springs, and another foot."""
    plain = read("ankle_serial")
    whole = with_joints(
        plain,
        armature={"pitch": 0.02, "roll": 0.005},
        damping={"pitch": 0.2, "roll": 0.1},
        stiffness={"pitch": 1.5, "roll": 0.4},
        spring_reference={"pitch": np.array([0.3]), "roll": np.array([-0.1])},
    )
    last = whole.bodies[-1]
    last = replace(last, center=last.center + np.array([0.02, 0.005, 0.01]), inertia=1.5 * last.inertia)
    twin = twin_with(replace(whole, bodies=(*whole.bodies[:-1], last)), plain)
    constants = fitted(twin)
    assert set(constants.kinds) == set(Kind)
    box = inner_box(twin)
    stated = [efforts_along(side, name, course) for name, side, course in stated_motions(twin, box)]
    assert largest_error(stated) > 0.2
    assert largest_error(stated, constants.mechanism) < 2e-3
    joints = {joint.name: joint for joint in constants.mechanism.joints}
    assert [joints[name].damping for name in ("pitch", "roll")] == pytest.approx([0.2, 0.1], rel=1e-12)
    assert [joints[name].stiffness for name in ("pitch", "roll")] == pytest.approx([1.5, 0.4], rel=1e-9)
    assert [joints[name].spring_reference[0] for name in ("pitch", "roll")] == pytest.approx([0.3, -0.1], rel=1e-9)


def test_rotors_dampers_and_springs_do_not_hide_in_links() -> None:
    plain = read("ankle_serial")
    whole = with_joints(
        plain,
        armature={"pitch": 0.05, "roll": 0.01},
        damping={"pitch": 0.7, "roll": 0.4},
        stiffness={"pitch": 5.0, "roll": 4.0},
    )
    twin = twin_with(whole, plain)
    assert fitted(twin, {Kind.LINKS}).kinds == ()
    constants = fitted(twin)
    assert set(constants.kinds) == {Kind.ARMATURE, Kind.DAMPING, Kind.SPRINGS}
    assert constants.mechanism.bodies == plain.bodies
    assert armatures_of(twin, constants.mechanism) == pytest.approx([0.05, 0.01], rel=1e-12)


def test_weight_of_rods_is_no_spring() -> None:
    for name in PAIRS:
        assert {Kind.ARMATURE, Kind.LINKS} <= set(fitted_pair(name).kinds)
        assert Kind.SPRINGS not in fitted_pair(name).kinds
        assert not any(joint.stiffness for joint in fitted_pair(name).mechanism.joints)


@pytest.mark.parametrize("name", PAIRS)
def test_an_armature_is_within_five_percent_of_the_best_for_the_motions_judged(name: str) -> None:
    twin, _, stated = pair(name)
    random = stated[: motions.STATED]
    best = best_in_hindsight(twin, random)
    columns, lacking = [], []
    for motion in random:  # by a search of its own, without bounds
        T, xdd = motion.transmission, motion.course[2]
        of_each = [np.linalg.solve(T.swapaxes(1, 2), (xdd * unit)[..., None])[..., 0] for unit in np.eye(T.shape[2])]
        wanted = np.linalg.solve(T.swapaxes(1, 2), (motion.closed - motion.serial)[..., None])[..., 0]
        peaks = np.abs(np.linalg.solve(T.swapaxes(1, 2), motion.closed[..., None])[..., 0]).max(axis=0)
        columns.append(np.stack([(each / peaks).ravel() for each in of_each], axis=1))
        lacking.append((wanted / peaks).ravel())
    expected = np.linalg.lstsq(np.concatenate(columns), np.concatenate(lacking), rcond=None)[0]
    assert armatures_of(twin, best) == pytest.approx(expected, rel=1e-9)
    own = fitted(twin, {Kind.ARMATURE}).mechanism
    mean = [np.mean([motion.errors(motion.with_constants(each)) for motion in random]) for each in (own, best)]
    assert mean[0] < 1.05 * mean[1] + 1e-3


@pytest.mark.parametrize("name", PAIRS)
def test_links_stay_physical_and_help_on_motions_that_chose_nothing(name: str) -> None:
    twin, _, stated = pair(name)
    constants = fitted_pair(name)
    assert largest_error(stated, constants.mechanism) < 0.25 * largest_error(stated)
    assert not is_worse(stated, constants.mechanism)
    for old, body in zip(twin.serial.mechanism.bodies, constants.mechanism.bodies, strict=True):
        values = np.linalg.eigvalsh(body.inertia)
        assert values[0] + values[1] >= values[2] > 0  # MuJoCo would not compile others
        assert body.mass == old.mass
    assert all(min(joint.armature, joint.damping) >= 0 for joint in constants.mechanism.joints)


def test_an_armature_is_never_below_that_of_the_file() -> None:
    twin, box, _ = pair("knee")
    heavy = with_joints(twin.serial.mechanism, armature={"knee": 1.0})
    own = replace(twin, serial=replace(twin.serial, mechanism=heavy))
    assert armatures_of(own, fitted(own, {Kind.ARMATURE}).mechanism).tolist() == [1.0]
    assert armatures_at(own, np.zeros(1)).tolist() == [1.0]
    stated = [efforts_along(side, name, course) for name, side, course in stated_motions(own, box)]
    assert armatures_of(own, best_in_hindsight(own, stated)).tolist() == [1.0]


def test_the_armature_at_a_pose_is_the_inertia_that_is_missing_there() -> None:
    twin, _, _ = pair("knee")
    x = np.array([[0.2], [0.2]])
    closed, serial = (efforts(space, x, 0 * x, np.array([[0.0], [1.0]])) for space in (twin.closed, twin.serial))
    expected = (closed - serial)[1] - (closed - serial)[0]
    assert armatures_at(twin, np.array([0.2])) == pytest.approx(expected, rel=1e-9)


def test_a_joint_that_turns_the_other_way_gets_the_same_constants(changed: Changed) -> None:
    turned = changed("knee_serial", ('axis="0 1 0" range="-0.5 0.7"', 'axis="0 -1 0" range="-0.7 0.5"'))
    plain, other = (fitted(twin_of("knee", serial), {Kind.ARMATURE}) for serial in ("knee_serial", turned))
    assert other.mechanism.joints[0].armature == pytest.approx(plain.mechanism.joints[0].armature, rel=1e-12)


def test_equal_legs_get_equal_armatures_and_are_not_coupled(tmp_path: Path) -> None:
    """Two of the knees in one file, and one leg alone."""
    twins = []
    for name in ("knee", "knee_serial"):
        text = (LEGS / f"{name}.xml").read_text(encoding="utf-8")
        begin, end = text.index("<worldbody>") + len("<worldbody>"), text.index("</worldbody>")
        leg = text[begin:end]
        names = [part.split('"')[0] for part in text.split(' name="')[1:]]
        for each in sorted(set(names), key=len, reverse=True):
            leg = leg.replace(f'name="{each}"', f'name="other_{each}"')
        rest = text[end:]
        for tag in ("equality", "actuator"):
            if f"<{tag}>" in rest:
                inside = rest[rest.index(f"<{tag}>") + len(tag) + 2 : rest.index(f"</{tag}>")]
                double = inside
                for each in sorted(set(names), key=len, reverse=True):
                    double = double.replace(f'"{each}"', f'"other_{each}"')
                rest = rest.replace(inside, inside + double)
        path = tmp_path / f"{name}.xml"
        path.write_text(text[:end] + leg.replace('pos="', 'pos="', 1) + rest, encoding="utf-8")
        twins.append(read(path))
    twin = twin_with(*twins)
    assert len(twin.names) == 2
    grids = grids_of(twin, inner_box(twin))
    assert [(grid.joints, len(grid.motors), len(grid.x)) for grid in grids] == [((0,), 1, 41), ((1,), 1, 41)]
    first, second = armatures_of(twin, fitted(twin, {Kind.ARMATURE}).mechanism)
    assert first == pytest.approx(second, rel=1e-12)
    alone = fitted(twin_of("knee", "knee_serial"), {Kind.ARMATURE}).mechanism.joints[0].armature
    assert first == pytest.approx(alone, rel=1e-9)


def test_joints_with_common_motors_share_a_grid() -> None:
    twin, box, _ = pair("ankle")
    (grid,) = grids_of(twin, box)
    assert grid.joints == grid.motors == (0, 1)
    assert len(grid.x) == 81


def test_a_repair_that_is_worse_anywhere_is_named() -> None:
    twin, _, stated = pair("ankle")
    too_much = with_armatures(twin, 3 * armatures_of(twin, fitted_pair("ankle").mechanism))
    worst = is_worse(stated, too_much)
    assert "it would raise the error of '" in worst
    values = [
        (motion.errors(motion.with_constants(too_much)) - motion.errors(motion.serial)).max() for motion in stated
    ]
    assert f"in the motion '{stated[int(np.argmax(values))].name}'" in worst
    assert is_worse(stated, twin.serial.mechanism) == ""


def test_an_error_is_the_root_mean_square_over_the_peak_of_that_motor_in_that_motion() -> None:
    twin, _, stated = pair("ankle")
    expected = []
    for motion in stated:
        inverse = np.linalg.inv(motion.transmission)
        closed, serial = (np.einsum("tn,tna->ta", each, inverse) for each in (motion.closed, motion.serial))
        rms = np.sqrt(((serial - closed) ** 2).mean(axis=0)) / np.abs(closed).max(axis=0)
        assert motion.errors(motion.serial) == pytest.approx(rms, rel=1e-9)
        expected.append(rms.max())
    assert largest_error(stated) == pytest.approx(max(expected), rel=1e-9)
    assert largest_error(stated, twin.serial.mechanism) == pytest.approx(max(expected), rel=1e-9)


def test_motions_of_a_purpose_are_those_of_no_other() -> None:
    twin, box, stated = pair("ankle")
    assert [motion.name for motion in stated] == [*(f"random {k}" for k in range(5)), "slow", "tilted 45°"]
    first = [
        course[0] for make in (stated_motions, choosing_motions, fitting_motions) for *_, course in make(twin, box)
    ]
    of_purpose = [len(make(twin, box)) for make in (stated_motions, choosing_motions, fitting_motions)]
    places = np.repeat(range(3), of_purpose)
    for k, x in enumerate(first):
        assert all(
            np.abs(x - other).max() > 1e-3 for other, place in zip(first, places, strict=True) if place != places[k]
        )
    for x, xd, xdd in (random_course(box, k) for k in range(3)):
        assert (box[:, 0] < x).all()
        assert (x < box[:, 1]).all()
        assert np.ptp(x, axis=0) == pytest.approx(0.6 * np.ptp(box, axis=1))
        step = 2.0 / 200
        assert np.gradient(x, step, axis=0)[5:-5] == pytest.approx(xd[5:-5], abs=2e-3 * np.abs(xd).max())
        assert np.gradient(xd, step, axis=0)[5:-5] == pytest.approx(xdd[5:-5], abs=2e-3 * np.abs(xdd).max())
    (fast, slow), speed = (random_course(box, 0), stated[5].course), 100.0
    assert slow[0] == pytest.approx(fast[0])
    assert slow[1] * speed == pytest.approx(fast[1])
    assert slow[2] * speed**2 == pytest.approx(fast[2])
    down, inclined = (each.closed.mechanism.gravity for each in (twin, stated[6].twin))
    assert np.linalg.norm(inclined) == pytest.approx(9.81)
    assert down @ inclined / 9.81**2 == pytest.approx(np.cos(np.pi / 4))
    assert min(abs(inclined[0]), abs(inclined[1])) == pytest.approx(9.81 / 2)
    assert stated[6].twin.serial.mechanism.gravity == pytest.approx(inclined)
