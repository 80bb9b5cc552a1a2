"""Constants of a serial model: their effects against equations of motion, their optimality, and what chooses them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from loopcheck.analytic.dynamics.powers import scale_of
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.transmission import constants, motions
from loopcheck.analytic.transmission.constants import (
    Constants,
    Grid,
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
    Course,
    MotionEfforts,
    choosing_motions,
    efforts_along,
    fitting_motions,
    is_worse,
    largest_error,
    mean_error,
    random_course,
    stated_motions,
)
from loopcheck.analytic.transmission.recognition import crank_rod_of
from loopcheck.analytic.transmission.regressor import SECOND_MOMENTS, links, regressor
from loopcheck.analytic.transmission.terms import JointTerms, joint_terms
from loopcheck.analytic.transmission.twin import Twin, make_twin, sound_poses
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import Mechanism
from tests.analytic.test_transmission import LEGS, PAIRS, Changed, changed, read, twin_of
from tests.cpu_time import extended_but

__all__ = ["changed"]
ALL = frozenset(Kind)


def inner_box(twin: Twin) -> Array:
    middle, half = twin.ranges.mean(axis=1), np.ptp(twin.ranges, axis=1) / 2
    return np.stack([middle - 0.9 * half, middle + 0.9 * half], axis=1)


BEST = "test_an_armature_is_within_five_percent_of_the_best_for_the_motions_judged"


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


@pytest.fixture(scope="module")
def fits() -> None:
    """Compute what several tests need."""
    for name in PAIRS:
        fitted_pair(name)


def twin_with(whole: Mechanism, plain: Mechanism) -> Twin:
    return make_twin(whole, whole.rest_position, plain, plain.rest_position, {})


def with_joints(mechanism: Mechanism, **values: Mapping[str, Any]) -> Mechanism:
    """Other constants of joints by attribute and name."""
    joints = [
        replace(joint, **{attribute: each[joint.name] for attribute, each in values.items() if joint.name in each})
        for joint in mechanism.joints
    ]
    return replace(mechanism, joints=tuple(joints))


def every_20th(course: Course) -> Course:
    x, xd, xdd = (each[::20] for each in course)
    return x, xd, xdd


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


@pytest.mark.evidence("a fit to several motions", seconds=1)
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


@pytest.mark.evidence("a fit to several motions", seconds=1)
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


@pytest.mark.extended("test_weight_of_rods_is_no_spring")
def test_kinds_that_need_each_other_are_added_at_once() -> None:
    """The rods' weight and a spring partly cancel: alone, each kind is refused or gains less than a tenth."""
    closed, plain = with_joints(read("ankle"), stiffness={"roll": 0.5}), read("ankle_serial")
    twin = twin_with(closed, plain)
    constants = fitted(twin)
    assert {Kind.LINKS, Kind.SPRINGS} <= set(constants.kinds)
    stated = [efforts_along(side, name, course) for name, side, course in stated_motions(twin, inner_box(twin))]
    assert largest_error(stated, constants.mechanism) < 0.2 * largest_error(stated)


@pytest.mark.usefixtures("fits")
@pytest.mark.parametrize("name", PAIRS)
def test_weight_of_rods_is_no_spring(name: str) -> None:
    assert {Kind.ARMATURE, Kind.LINKS} <= set(fitted_pair(name).kinds)
    assert Kind.SPRINGS not in fitted_pair(name).kinds
    assert not any(joint.stiffness for joint in fitted_pair(name).mechanism.joints)


@pytest.mark.usefixtures("fits")
@pytest.mark.parametrize("name", extended_but(["knee"], PAIRS, BEST))
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


@pytest.mark.usefixtures("fits")
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


@pytest.mark.evidence("a fit to several motions", seconds=1)
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


@pytest.mark.extended(BEST)
def test_a_joint_that_turns_the_other_way_gets_the_same_constants(changed: Changed) -> None:
    turned = changed("knee_serial", ('axis="0 1 0" range="-0.5 0.7"', 'axis="0 -1 0" range="-0.7 0.5"'))
    plain, other = (fitted(twin_of("knee", serial), {Kind.ARMATURE}) for serial in ("knee_serial", turned))
    assert other.mechanism.joints[0].armature == pytest.approx(plain.mechanism.joints[0].armature, rel=1e-12)


@pytest.mark.extended(BEST)
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
        still = replace(motion, closed=0 * motion.closed)
        assert not still.errors(motion.serial).any()
    assert np.argmax(expected) != 0
    assert largest_error(stated) == pytest.approx(max(expected), rel=1e-9)
    of_each = [motion.errors(motion.serial).mean() for motion in stated]
    assert mean_error(stated) == mean_error(stated, twin.serial.mechanism) == pytest.approx(np.mean(of_each), rel=1e-9)
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
        assert (x.max(axis=0) + x.min(axis=0)) / 2 == pytest.approx(box.mean(axis=1))
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
    assert stated[6].course[0] == pytest.approx(fast[0])
    assert stated[6].course[2] == pytest.approx(fast[2])
    of_choice = [
        (side.closed.mechanism.gravity @ down / 9.81**2, bool(np.abs(course[1]).max() < 0.1))
        for _, side, course in choosing_motions(twin, box)
    ]
    upright, level = pytest.approx(1), pytest.approx(np.sqrt(0.5))
    assert of_choice == [(upright, False)] * 3 + [(upright, True), (level, False), (level, True)]
    assert stated[6].twin.serial.mechanism.gravity == pytest.approx(inclined)


Kinds = frozenset[Kind]
A, D, L, S = Kind


def chosen(
    errors: Mapping[Kinds, float], worse: Collection[Kinds] = (), able: Collection[Kind] = ALL, usable: Kinds = ALL
) -> tuple[Kind, ...]:
    """Kinds that are chosen where sets of kinds leave given errors (1 without an entry), and some are worse."""

    def error(of: list[Any], kinds: Any = None) -> float:
        assert [motion.name for motion in of] == ["choice"]
        return errors.get(kinds, 1.0) if isinstance(kinds, frozenset) else errors.get(frozenset(), 1.0)

    def found_worse(of: list[Any], kinds: Any) -> str:
        assert [motion.name for motion in of] == ["choice", motions.TILTED]
        return "worse" if kinds in worse else ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants._Search, "with_kinds", lambda _, kinds: frozenset(kinds))
        patch.setattr(constants._Search, "can_use", lambda _, kind: kind in usable)
        for name, other in (("mean_error", error), ("is_worse", found_worse), ("grids_of", lambda *_: [])):
            patch.setattr(constants, name, other)
        choice = cast(Any, [SimpleNamespace(name="choice"), SimpleNamespace(name=motions.TILTED)])
        return fitted_constants(pair("knee")[0], np.zeros((1, 2)), [], choice, able).kinds


def test_a_kind_is_added_that_lowers_the_error_by_a_tenth_and_by_a_thousandth_of_the_peak() -> None:
    def of(*kinds: Kind) -> Kinds:
        return frozenset(kinds)

    assert chosen({}) == ()
    assert chosen({of(A): 0.95}) == (A,)
    assert chosen({of(A): 0.9995}) == ()
    assert chosen({of(D): 0.91}) == ()
    assert chosen({of(D): 0.89}) == (D,)
    assert chosen({of(): 1.5e-3, **{of(kind): 6e-4 for kind in Kind}}) == ()
    assert chosen({of(): 1.5e-3, **{of(kind): 4e-4 for kind in Kind}}) == (A,)
    assert chosen({of(D): 0.5, of(L): 0.6}, worse={of(D)}) == (L,)
    assert chosen({of(L): 0.5, of(D, L): 0.4, of(A, L): 0.47, of(A, D, L): 0.38}) == (A, D, L)
    assert chosen({of(A): 0.5, of(D): 0.5}, able={D}) == (D,)
    assert chosen({of(A): 0.5, of(S): 0.4}, usable=of(A)) == (A,)


def test_links_and_springs_are_tried_where_there_are_some(changed: Changed) -> None:
    twin, _, stated = pair("knee")
    site = '<site name="hip"/><body name="shank"'
    tendons = (
        '<fixed name="t" stiffness="3"><joint joint="crank" coef="1"/></fixed>',
        '<spatial name="s" stiffness="3" springlength="0.1"><site site="hip"/><site site="heel"/></spatial>',
    )
    closed = [twin.closed.mechanism]
    for each in tendons:
        path = changed("knee", ('<body name="shank"', site), ("<equality>", f"<tendon>{each}</tendon><equality>"))
        closed.append(read(path))
    closed.append(with_joints(closed[0], stiffness={"crank": 1.0}))
    uses = []
    for mechanism in closed:
        own = replace(twin, closed=replace(twin.closed, mechanism=mechanism))
        search = constants._Search(twin=own, grids=(), fit=stated)
        uses.append(search.can_use(Kind.SPRINGS))
        assert all(search.can_use(kind) for kind in (Kind.ARMATURE, Kind.DAMPING, Kind.LINKS))
        assert not replace(search, fit=()).can_use(Kind.LINKS)
    assert uses == [False, True, True, True]
    for mechanism in closed[1:]:
        bare = constants._bare(mechanism)
        rotors: list[Any] = [*bare.joints, *bare.tendons]
        springs: list[Any] = [*rotors, *bare.point_springs]
        assert not any(part.stiffness or part.damping for part in springs)
        assert not any(part.armature for part in rotors)


def test_springs_are_those_of_a_bounded_least_squares_search() -> None:
    generator = np.random.default_rng(4)
    T, x = generator.normal(size=(30, 2, 2)) + 2 * np.eye(2), generator.normal(size=(30, 2))
    weights = generator.uniform(size=30)
    terms = JointTerms(transmission=T, mass=T, damping=T, spring=x, weight=x)
    grid = Grid(joints=(0, 1), motors=(0, 1), half=np.ones(2), x=x, weights=weights, closed=terms, serial_q=x)
    stiffness, effort = np.array([4.0, 0.7]), np.array([0.3, -2.0])
    assert grid.springs(stiffness * x + effort) == pytest.approx(np.stack([stiffness, effort], axis=1), abs=1e-12)
    holding = np.stack([-3 * x[:, 0] + 40, np.sin(3 * x[:, 1]) + 2 * x[:, 1]], axis=1)
    inverse = np.linalg.inv(T).swapaxes(1, 2)
    wanted = np.einsum("paj,pj->pa", inverse, holding)
    share = np.sqrt(weights)[:, None] / np.sqrt((weights[:, None] * wanted**2).sum(axis=0))
    units = [np.stack([x[:, 0], 0 * x[:, 0]], axis=1), np.stack([0 * x[:, 1], x[:, 1]], axis=1)]
    units += [np.tile(unit, (30, 1)) for unit in np.eye(2)]
    columns = [(np.einsum("paj,pj->pa", inverse, unit) * share).ravel() for unit in units]
    least = [0, 0, -np.inf, -np.inf]
    expected = lsq_linear(np.transpose(columns), (wanted * share).ravel(), (least, np.inf), tol=1e-15).x
    found = grid.springs(holding)
    assert found[0, 0] == 0
    assert found.T.ravel() == pytest.approx(expected, abs=1e-5)


def test_armature_and_damping_are_added_to_those_of_the_file_by_what_is_missing() -> None:
    twin, box, _ = pair("ankle")
    heavy = with_joints(twin.serial.mechanism, armature={"pitch": 1e-3, "roll": 2e-3})
    own = replace(twin, serial=replace(twin.serial, mechanism=heavy))
    grids = grids_of(own, box)
    points = np.cos((2 * np.arange(9) + 1) / 18 * np.pi)
    u = np.array(list(product(points, points)))
    x, half = box.mean(axis=1) + u * np.ptp(box, axis=1) / 2, np.ptp(box, axis=1) / 2
    order = np.lexsort(grids[0].x.T)
    assert grids[0].x[order] == pytest.approx(x[np.lexsort(x.T)], abs=1e-12)
    bodies = [replace(body, inertia=0.5 * body.inertia) for body in heavy.bodies]
    other = replace(own.serial, mechanism=replace(heavy, bodies=tuple(bodies)))
    q, serial_q = sound_poses(own.closed, x)[0], sound_poses(own.serial, x)[0]
    closed = joint_terms(own.closed, q)
    weights = np.exp(-((u / 0.35) ** 2).sum(axis=1) / 2)
    inverse = np.linalg.inv(closed.transmission).swapaxes(1, 2)
    for kinds, serial in (({A, D}, own.serial), ({A, D, L}, other)):
        search = constants._Search(twin=own, grids=grids, fit=())
        search.__dict__["_with_links"] = other.mechanism
        mechanism = search.with_kinds(kinds)
        terms = joint_terms(serial, serial_q)
        for name, whole, part in (("armature", closed.mass, terms.mass), ("damping", closed.damping, terms.damping)):
            used = np.sqrt(np.einsum("p,paj->a", weights, (inverse @ whole * half) ** 2))
            share = np.sqrt(weights)[:, None, None] / used[:, None]
            columns = [(inverse @ np.diag(unit) * half * share).ravel() for unit in np.eye(2)]
            added = np.linalg.lstsq(np.transpose(columns), (inverse @ (whole - part) * half * share).ravel())[0]
            assert (added > 0).all()
            before, found = (
                np.array([getattr(each.joints[j], name) for j in own.serial.joints]) for each in (heavy, mechanism)
            )
            assert found - before == pytest.approx(added, rel=1e-6)


def test_joints_are_coupled_by_motors_or_by_missing_inertia(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four joints and motors: the first two joints share both motors, or miss a common inertia; the others do not."""
    mixed, diagonal = np.eye(4), np.diag([1.0, 2.0, 3.0, 4.0])
    mixed[:2, :2] = [[2, 3], [2, -3]]
    plain, coupled = 0.5 * diagonal, diagonal.copy()
    coupled[0, 1] = coupled[1, 0] = 0.1

    def terms(side: Any, q: Array) -> JointTerms:
        T, mass = (np.tile(each, (len(q), 1, 1)) for each in side)
        return JointTerms(transmission=T, mass=mass, damping=mass, spring=q, weight=q)

    monkeypatch.setattr(constants, "joint_terms", terms)
    monkeypatch.setattr(constants, "MOST", 9)
    monkeypatch.setattr(
        constants,
        "sound_poses",
        lambda side, x: (x, x[:, 3] < 0.9) if side[1] is plain else (x, x[:, 2] < 0.9),
    )
    box = np.tile([-1.0, 1.0], (4, 1))
    for closed, joints in (
        ((np.eye(4), diagonal), [(0,), (1,), (2,), (3,)]),
        ((mixed, diagonal), [(0, 1), (2,), (3,)]),
        ((np.eye(4), coupled), [(0, 1), (2,), (3,)]),
    ):
        twin = SimpleNamespace(closed=closed, serial=(np.eye(4), plain), motors=(0, 1, 2, 3))
        grids = grids_of(cast(Any, twin), box)
        assert [grid.joints for grid in grids] == [grid.motors for grid in grids] == joints
        for k in (2, 3):  # poses that one of the mechanisms cannot take are left out
            grid = grids[k - 4]
            assert len(grid.x) < 41
            assert 0.8 < grid.x.max() < 0.9
            assert len(grid.weights) == len(grid.serial_q) == len(grid.closed.mass) == len(grid.x)


def moments_of(old: Any, body: Any) -> Array:
    """First and second moments of mass about the old mass centre, less the old ones, shape (9,)."""
    d = body.center - old.center
    second = [np.trace(each.inertia) / 2 * np.eye(3) - each.inertia for each in (old, body)]
    more = second[1] + body.mass * np.outer(d, d) - second[0]
    return np.concatenate([body.mass * d, [more[place] for place in SECOND_MOMENTS]])


def test_links_are_found_from_their_moments_and_held_where_efforts_do_not_show_them() -> None:
    twin, _, _ = pair("knee")
    old = twin.serial.mechanism.bodies[-1]
    inertia = old.inertia + np.array([[0.01, 2e-3, 1e-3], [2e-3, 0.012, -1e-3], [1e-3, -1e-3, 0.005]])
    meant = replace(old, center=old.center + np.array([0.02, -0.01, 0.03]), inertia=inertia)
    found = constants._fitted_links(twin.serial, 1e4 * np.eye(9), 1e4 * moments_of(old, meant)).bodies[-1]
    assert found.center == pytest.approx(meant.center, abs=1e-7)
    assert found.inertia == pytest.approx(meant.inertia, abs=1e-7)
    assert found.mass == old.mass
    A, b = np.zeros((9, 9)), np.zeros(9)
    A[0, 0], b[0] = 1e-3, 1e-3  # seen as little as a link is held
    per_size = A[0, 0] * old.mass * np.sqrt(np.trace(old.inertia) / 2 / old.mass)
    size = np.sqrt(np.trace(old.inertia) / 2 / old.mass)
    expected = size * per_size * b[0] / (per_size**2 + 3e-4**2)
    held = constants._fitted_links(twin.serial, A, b).bodies[-1]
    assert held.center - old.center == pytest.approx([expected, 0, 0], abs=1e-9)
    assert held.inertia == pytest.approx(old.inertia, rel=1e-3, abs=1e-6)
    A[0, 0], A[3, 3], b = 0, 1e3, -1e3 * np.eye(9)[3]  # no mass along x and less
    thin = constants._fitted_links(twin.serial, A, b).bodies[-1].inertia
    values = np.linalg.eigvalsh(np.trace(thin) / 2 * np.eye(3) - thin)
    assert values[0] == pytest.approx(1e-3 * np.trace(old.inertia) / 6, rel=1e-3)
    flat = replace(
        twin.serial.mechanism, bodies=(*twin.serial.mechanism.bodies[:-1], replace(old, inertia=np.diag([1.0, 1, 2])))
    )
    kept = constants._fitted_links(replace(twin.serial, mechanism=flat), 0 * A, 0 * b).bodies[-1]
    assert kept.inertia == pytest.approx(np.diag([1.0, 1, 2]), abs=3e-3)


def test_links_are_fitted_to_efforts_over_the_peaks_of_the_motors(monkeypatch: pytest.MonkeyPatch) -> None:
    twin, box, _ = pair("ankle")
    fit = [efforts_along(twin, name, every_20th(course)) for name, _, course in fitting_motions(twin, box)]
    monkeypatch.setattr(constants, "_fitted_links", lambda *given: given)
    space, A, b = cast(Any, constants._Search(twin=twin, grids=(), fit=fit)._with_links)
    assert space is twin.serial
    none = {
        name: dict.fromkeys((joint.name for joint in twin.closed.mechanism.joints), 0.0)
        for name in ("armature", "damping")
    }
    bare = [replace(each, mechanism=with_joints(each.mechanism, **none)) for each in (twin.closed, twin.serial)]
    square, right, count = np.zeros((18, 18)), np.zeros(18), 0
    for motion in fit:
        T_T = motion.transmission.swapaxes(1, 2)
        peaks = np.abs(np.linalg.solve(T_T, motion.closed[..., None])[..., 0]).max(axis=0)
        closed, serial = (efforts(each, *motion.course) for each in bare)
        Y = regressor(bare[1], *motion.serial_state)
        each = np.linalg.solve(T_T, np.concatenate([Y, (closed - serial)[..., None]], axis=2)) / peaks[:, None]
        square += np.einsum("tai,taj->ij", each[..., :-1], each[..., :-1])
        right += np.einsum("tai,ta->i", each[..., :-1], each[..., -1])
        count += each.shape[0] * each.shape[1]
    assert pytest.approx(square / count, rel=1e-8, abs=1e-10) == A.T @ A
    assert A.T @ b == pytest.approx(right / count, rel=1e-8, abs=1e-10)


def test_a_repair_is_worse_by_more_than_a_thousandth_of_the_peak() -> None:
    def motion(name: str, before: list[float], after: list[float]) -> Any:
        twin = SimpleNamespace(motor_names=("left", "right"))
        return SimpleNamespace(
            name=name, twin=twin, serial=np.array(before), errors=np.asarray, with_constants=lambda _: np.array(after)
        )

    model = cast(Any, None)
    assert is_worse([motion("a", [0.1, 0.2], [0.1009, 0.05])], model) == ""
    assert is_worse([], model) == ""
    of_three = [
        motion("a", [0.1, 0.2], [0.15, 0.201]),
        motion("b", [0.1, 0.5], [0.2, 0.51]),
        motion("c", [0.1, 0.2], [0.1, 0.21]),
    ]
    words = "it would raise the error of 'left' in the motion 'b' from 10 to 20 % of the peak"
    assert is_worse(of_three, model) == words
    assert largest_error(of_three) == 0.5
    assert mean_error(of_three) == pytest.approx(0.2)


def test_functions_of_the_pose_count_in_their_box_and_on_a_level_base() -> None:
    _twin, _, stated = pair("knee")
    x, xd, xdd = stated[0].course

    def functions(low: float, high: float) -> Any:
        return SimpleNamespace(
            low=np.array([low]), high=np.array([high]), missing_efforts=lambda *state: state[0] + state[1] + state[2]
        )

    assert stated[0].with_functions(functions(x.min(), x.max())) == pytest.approx(stated[0].serial + x + xd + xdd)
    for each in (functions(x.min() + 1e-6, 9), functions(-9, x.max() - 1e-6), None):
        assert np.isnan(stated[0].with_functions(each)).all()
    assert stated[6].with_functions(functions(-9, 9)).shape == x.shape
    assert np.isnan(stated[6].with_functions(functions(-9, 9))).all()


def test_cranks_and_rods_complete_the_serial_model() -> None:
    twin, _, stated = pair("ankle")
    crank_rod = crank_rod_of(twin.closed, twin.motors)
    q, T = sound_poses(twin.closed, stated[0].course[0])[0], stated[0].transmission
    state = crank_rod.motor_state(*stated[0].course, stated[0].serial)
    assert state.transmission == pytest.approx(T, abs=1e-9)
    expected = [one.T @ own for one, own in zip(T, state.efforts, strict=True)]
    assert stated[0].with_functions(crank_rod) == pytest.approx(np.array(expected), abs=1e-9)
    assert len(q) == len(expected)


def test_efforts_are_those_of_the_motors_asked_for_at_sound_poses_alone() -> None:
    twin, _, stated = pair("ankle")
    one = efforts_along(replace(twin, motors=(1,)), "one", every_20th(stated[0].course))
    assert one.transmission == pytest.approx(stated[0].transmission[::20, 1:])
    q, qd, qdd = one.closed_state
    scale = scale_of(State(mechanism=twin.closed.mechanism, q=q, qd=qd), qdd).scale
    assert one.scale == pytest.approx(scale[1:2])
    assert scale[0] != scale[1]
    knee, x = pair("knee")[0], np.array([[0.1], [0.2], [3.0], [3.1]])
    with pytest.raises(HarnessError, match=r"the wide motion must stay in the sound poses of knee\.xml at 3, but"):
        efforts_along(knee, "wide", (x, 0 * x, 0 * x))
    assert np.isnan(mean_error([]))
