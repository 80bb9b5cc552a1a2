"""Mobility of mechanisms, and the diagnosis of faulty files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.kinematics.mobility import Mobility, in_words, independent_loops, mobility
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import LoopClosureError, MechanismError
from loopcheck.robots.mechanism import Joint
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.common.targets import cases_of
from tests.conftest import MODELS, CaseMaker

FOUR_BAR = (MODELS / "four_bar.xml").read_text(encoding="utf-8")


def seen(path: Path) -> Mobility:
    case = cases_of([path])[0]
    return mobility(case.mechanism, prescribe(case).q[25])


def changed(folder: Path, old: str, new: str, name: str = "changed.xml") -> Path:
    assert old in FOUR_BAR
    path = folder / name
    path.write_text(FOUR_BAR.replace(old, new), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "counts", "actuation"),
    [
        ("3prr", (2, 3, 3, 3), "fully actuated"),
        ("2pur2rpu", (3, 3, 4, 3), "redundantly actuated"),
        ("6spu", (5, 6, 6, 6), "fully actuated"),
    ],
)
def test_robots_of_the_catalogue_are_what_their_papers_say(name: str, counts: tuple[int, ...], actuation: str) -> None:
    robot = load(name)
    case = make_case(robot, variant="default", mode=_first_mode(name), configuration="horizontal")
    found = mobility(case.mechanism, prescribe(case).q[10])
    assert (found.loops, found.dof, found.actuators, found.driven) == counts
    assert found.actuation == actuation
    assert found.unactuated == ()


@pytest.mark.parametrize(("name", "loops"), [("3rrr", 2), ("2t1r", 3), ("6x6r", 5), ("andrews", 3), ("puma560", 0)])
def test_loops_are_those_of_the_graph_of_bodies(name: str, loops: int) -> None:
    """Joints less bodies plus one on the drawing: 9 − 8 + 1, 11 − 9 + 1, 36 − 32 + 1 and 10 − 8 + 1."""
    assert independent_loops(load(name).mechanism()) == loops


def test_bodies_without_a_joint_are_one_with_their_parents() -> None:
    """The load of the 3-RRR is fixed to its platform, so that a loop that ends at either is the same."""
    plain = load("3rrr").mechanism()
    names = [body.name for body in plain.bodies]
    moved = {names.index("platform"): names.index("load")}
    closures = [
        replace(each, body1=moved.get(each.body1, each.body1), body2=moved.get(each.body2, each.body2))
        for each in plain.rigid_closures
    ]
    assert independent_loops(replace(plain, closures=tuple(closures))) == independent_loops(plain)
    assert any(plain.rigid_closures[k] != closure for k, closure in enumerate(closures))


def test_a_base_that_floats_closes_no_loop_with_the_world() -> None:
    floating = load("3prr").mechanism()
    base = Joint(
        name="base", kind="free", body=0, anchor=np.zeros(3), axis=np.array([0, 0, 1.0]), rest_position=np.eye(7)[3]
    )
    carried = [j for j, joint in enumerate(floating.joints) if joint.body == 0]
    joints = tuple(base if j in carried else joint for j, joint in enumerate(floating.joints))
    assert independent_loops(replace(floating, joints=joints, keyframes={})) == 1


def test_what_nothing_drives_is_named_with_what_holds_it() -> None:
    found = seen(MODELS / "spinning_rod.xml")
    assert (found.dof, found.driven, found.actuation) == (3, 1, "underactuated")
    assert found.unactuated == ("'ball' is held only by its spring", "'pendulum' is held only by its spring")


def test_a_base_that_floats_is_named() -> None:
    assert seen(MODELS / "floating_rotors.xml").unactuated == (
        "'base' floats (6 dof)",
        "'neck' is held only by its spring (3 dof)",
    )


def test_a_rod_between_balls_spins(model_case: CaseMaker, tmp_path: Path) -> None:
    text = (MODELS / "spinning_rod.xml").read_text(encoding="utf-8").replace('stiffness="0.4" damping="0.03"', "")
    (tmp_path / "rod.xml").write_text(text, encoding="utf-8")
    assert "'ball' spins" in seen(tmp_path / "rod.xml").unactuated


def test_a_tree_is_said_to_be_one_and_checked() -> None:
    found = seen(MODELS / "pendulum_tree.xml")
    assert "no loop (tree structure)" in in_words(found)
    assert found.warnings == ()


def test_a_linkage_without_an_equality_is_odd(tmp_path: Path) -> None:
    start, end = FOUR_BAR.index("<equality>"), FOUR_BAR.index("</equality>") + len("</equality>")
    path = tmp_path / "four_bar.xml"
    path.write_text(FOUR_BAR[:start] + FOUR_BAR[end:], encoding="utf-8")
    assert "is named like a linkage but has no equality" in seen(path).warnings[0]


@pytest.mark.parametrize(
    ("second", "is_odd"), [("closing_pin_2", True), ("closing_pin_3", False), ("other_pin_2", False)]
)
def test_frames_of_a_loop_that_is_cut_are_odd(second: str, *, is_odd: bool, tmp_path: Path) -> None:
    path = tmp_path / "leg.xml"
    site = '<site name="{0}" pos="0 0 {1}"/>'
    text = (MODELS / "pendulum_tree.xml").read_text(encoding="utf-8")
    path.write_text(
        text.replace("</worldbody>", f"{site.format('closing_pin_1', 7)}{site.format(second, 9)}</worldbody>"),
        encoding="utf-8",
    )
    assert (
        any("'closing_pin_1' and 'closing_pin_2' are named like" in warning for warning in seen(path).warnings)
        == is_odd
    )


def test_a_closure_that_is_there_twice_is_named(tmp_path: Path) -> None:
    closure = FOUR_BAR[FOUR_BAR.index("<connect") : FOUR_BAR.index("</equality>")].strip()
    name = closure.split('name="')[1].split('"')[0]
    again = closure.replace(f'name="{name}"', 'name="again"')
    found = seen(changed(tmp_path, "</equality>", f"{again}</equality>"))
    assert (found.loops, found.dof, found.counted, found.redundant) == (1, 1, -3, 4)
    assert found.warnings == tuple(
        f"closure '{each}' is redundant: the remaining closures already imply it" for each in (name, "again")
    )


def test_closures_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    path = changed(
        tmp_path,
        "</equality>",
        '<joint name="hold" joint1="crank" polycoef="0.05"/><joint name="keep" joint1="crank"/></equality>',
    )
    with pytest.raises(
        LoopClosureError, match="The closures contradict each other: without 'hold' or 'keep' the loops close"
    ):
        prescribe(cases_of([path])[0])


def test_a_locked_mechanism_is_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, "</equality>", '<joint name="hold" joint1="rocker"/></equality>')
    with pytest.raises(MechanismError, match="the loops lock the mechanism: 0 of 3 degrees of freedom"):
        prescribe(cases_of([path])[0])


def test_an_actuator_on_a_locked_joint_is_odd(tmp_path: Path) -> None:
    inertial = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    extra = f'<body name="stuck"><joint name="stuck"/>{inertial}</body></worldbody>'
    path = changed(tmp_path, "</worldbody>", extra)
    text = path.read_text(encoding="utf-8")
    text = text.replace("</equality>", '<joint name="hold" joint1="stuck"/></equality>')
    path.write_text(text.replace("</actuator>", '<motor name="idle" joint="stuck"/></actuator>'), encoding="utf-8")
    assert "actuator 'idle' has no effect: the loops lock its joint" in seen(path).warnings


def test_a_singular_start_is_left_by_a_sidestep() -> None:
    case: Case = cases_of([MODELS / "singular" / "flat_four_bar.xml"])[0]
    flat = mobility(case.mechanism, case.guess)
    motion = prescribe(case)
    assert flat.dof == 2
    assert mobility(case.mechanism, motion.q[0]).dof == 1
    assert 0 < np.abs(motion.q[0] - case.guess).max() < 0.5


def _first_mode(name: str) -> str:
    return "plus" if name == "3prr" else "home"
