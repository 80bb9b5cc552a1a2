"""Start poses of generated motions, beside singular poses and inside limits, and their actuation."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.continuation import close, closed_beside
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.analytic.motion.limits import excess
from loopcheck.analytic.motion.prescribe import depends_on_gravity, prescribe, refuse_lost_actuation
from loopcheck.engines.mujoco.routes.kkt import KKT
from loopcheck.robots.errors import SingularityError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import DEFAULT, HOME, Case, Robot, make_case

INERTIAL = '<inertial pos="0.05 0.1 0" mass="1" diaginertia="0.01 0.01 0.01"/>'


def body(name: str, x: float, y: float, inside: str = "", joint: str = "") -> str:
    """A link on a hinge at a place of its parent [m]."""
    return f'<body name="{name}" pos="{x} {y} 0"><joint name="{name}" axis="0 0 1" {joint}/>{INERTIAL}{inside}</body>'


def site(name: str, x: float, y: float) -> str:
    """A point of a link [m]."""
    return f'<site name="{name}" pos="{x} {y} 0"/>'


def case_of(folder: Path, bodies: str, motors: str) -> Case:
    """A planar mechanism with coincident sites `end` and `tip`."""
    actuators = "".join(f'<motor name="{name}" joint="{name}"/>' for name in motors.split())
    (folder / "robot.xml").write_text(
        f"<mujoco><worldbody>{bodies}</worldbody>"
        f'<equality><connect name="loop" site1="end" site2="tip"/></equality><actuator>{actuators}</actuator></mujoco>',
        encoding="utf-8",
    )
    robot = Robot(name="robot", folder=folder, title="", mjcf="robot.xml", source="test")
    return make_case(robot, variant=DEFAULT, mode=HOME, configuration="horizontal")


FIVE_BAR = body("left", 0, 0, body("left_rod", 0, 0.2, site("end", 0.2, 0))) + body(
    "right", 0.4, 0, body("right_rod", 0, 0.2, site("tip", -0.2, 0))
)
"""A five-bar with its rods in a line at the start: its motors cannot hold their common point."""


def test_a_start_that_is_singular_in_actuation_leaves_no_motor_idle(tmp_path: Path) -> None:
    case = case_of(tmp_path, FIVE_BAR, "left right")
    motion = prescribe(case)
    cranks = motion.q[:, [0, 2]]
    assert (np.ptp(cranks, axis=0) > 0.1).all()
    effort = Noc().compute_efforts(case, motion).effort
    assert (np.abs(effort).max(axis=0) > 0.01).all()
    assert (rod_angle(case.mechanism, motion) > 0.02).all()  # never through the line of the rods
    (note,) = motion.notes
    assert re.search(
        r"singular pose of the file: (left|right) cannot move", note
    )  # the motors are alike: round-off selects one


def rod_angle(mechanism: Mechanism, motion: Motion) -> np.ndarray:
    """Sine of the angle between the rods of the five-bar, from their orientations [-]."""
    R = poses(mechanism, motion.q).R
    return np.abs(np.cross(R[:, 1, :, 0], R[:, 3, :, 0])[:, 2])


def test_a_motion_through_singular_actuation_is_refused_by_actuator_and_time(tmp_path: Path) -> None:
    case = case_of(tmp_path, FIVE_BAR, "left right")
    regular = prescribe(case)
    through = replace(regular, q=np.concatenate([regular.q[:-1], case.guess[None]]))  # ends where the rods are in line
    refuse_lost_actuation(case.mechanism, regular, "five-bar")
    with pytest.raises(
        SingularityError, match=r"t = 2.000000 s.*'(left|right)' cannot move a further degree"
    ) as refused:
        refuse_lost_actuation(case.mechanism, through, "five-bar")
    assert refused.value.time == 2.0


def test_redundant_motors_are_right_where_one_of_them_stands_still(tmp_path: Path) -> None:
    """Against the same linkage with a motor on its crank alone: the joint effect of both motors is the same."""
    x = (0.7**2 - 0.15**2 + 0.6**2) / 1.2
    end = np.array([x, np.sqrt(0.49 - x**2)])
    a, b, c = 3 / 7 * end, 4 / 7 * end, end - [0.6, 0]
    crank = body("crank", 0, 0, body("coupler", a[0], a[1], site("end", b[0], b[1])))
    bodies = crank + body("rocker", 0.6, 0, site("tip", c[0], c[1]))
    one = case_of(tmp_path, bodies, "crank")

    def law(t: np.ndarray) -> Drive:
        w = np.pi
        return Drive(
            *(x[:, None] for x in (0.4 - 0.4 * np.cos(w * t), 0.4 * w * np.sin(w * t), 0.4 * w**2 * np.cos(w * t)))
        )

    motion = assemble(one.mechanism, law, one.guess, np.linspace(0, 1, 21))
    alone = Lagrange().compute_efforts(one, motion).effort[:, 0]
    assert abs(motion.qd[1, 2] / motion.qd[1, 0]) < 0.2 < abs(motion.qd[10, 2] / motion.qd[10, 0])  # it stands at first
    two = case_of(tmp_path, bodies, "crank rocker")
    ratio = np.divide(motion.qd[:, 2], motion.qd[:, 0], out=np.zeros(21), where=motion.qd[:, 0] != 0)
    for source in (Noc(), Lagrange(), KKT):
        found = source.compute_efforts(two, motion)
        np.testing.assert_allclose(
            found.effort[:, 0] + ratio * found.effort[:, 1], alone, atol=1e-9 * np.abs(alone).max()
        )
    assert "changes" in Noc().compute_efforts(two, motion).settings["independent coordinates"]


def rocking(*, crank: str = "", coupler: str = "", rocker: str = "") -> str:
    """A four-bar, with attributes of its joints."""
    moving = body("crank", 0, 0, body("coupler", 0.1, 0.3, site("end", 0.5, 0.1), coupler), crank)
    return moving + body("rocker", 0.5, 0, site("tip", 0.1, 0.4), rocker)


def test_a_joint_that_touches_its_limit_is_inside_it(tmp_path: Path) -> None:
    """Crank and rocker start 1e-7 rad below their limits: more than round-off, less than loops may be open."""
    limits = f'range="{np.degrees(1e-7)} 80"'
    case = case_of(tmp_path, rocking(crank=limits, rocker=limits), "crank")
    motion = prescribe(case)
    assert np.ptp(motion.q[:, 0]) == pytest.approx(0.6)
    assert excess(case.mechanism, motion.q).max(axis=0) == pytest.approx([1e-7, 0, 1e-7], rel=1e-3)
    assert not motion.notes


def test_a_start_beyond_the_touched_zone_is_named(tmp_path: Path) -> None:
    limits = f'range="{np.degrees(1e-5)} 80"'
    motion = prescribe(case_of(tmp_path, rocking(crank=limits), "crank"))
    assert "the pose of the file is outside joint limits; the motion starts inside: 'crank'" in motion.notes[0]


@pytest.mark.extended("test_a_start_outside_the_limits_moves_inside_them")
def test_a_limit_that_leaves_no_room_is_named_and_left(tmp_path: Path) -> None:
    bodies = rocking(coupler='range="-0.05 0.05"')
    motion = prescribe(case_of(tmp_path, bodies, "crank"))
    assert np.ptp(motion.q[:, 0]) > 0.1
    (note,) = motion.notes
    assert "'coupler' (-0.0008727 to 0.0008727 rad)" in note


ROD = '<body name="rod"><joint name="leg" type="slide" axis="1 0 0" range="0.55 0.68"/>'
"""A leg that can be 0.55 m to 0.68 m long, and has no length in the file."""


@pytest.mark.parametrize("lever", ["", 'range="20 95" ref="100"'])
def test_a_start_outside_the_limits_moves_inside_them(tmp_path: Path, lever: str) -> None:
    """Also if the lever that the leg holds has limits of its own."""
    leg = body("sleeve", 0, 0, f"{ROD}{INERTIAL}{site('end', 0, 0)}</body>")
    case = case_of(tmp_path, leg + body("lever", 0.5, 0, site("tip", 0, 0.2), lever), "leg")
    motion = prescribe(case)
    assert excess(case.mechanism, motion.q).max() == 0.0
    assert np.ptp(motion.q[:, 1]) > 0.02


def stretched(folder: Path, base: str = "", apart: float = 0.12) -> Case:
    """A five-bar whose legs lie side by side in line, apart along them [m]: Newton's step has no such direction."""
    legs = "".join(
        body(f"{side}1", x, 0, body(f"{side}2", 0.3, 0, site(end, 0.3, 0)))
        for side, end, x in (("l", "end", -apart / 2), ("r", "tip", apart / 2))
    )
    return case_of(folder, f'<body name="base">{base}{INERTIAL}{legs}</body>' if base else legs, "l1 r1")


def test_a_stretched_linkage_starts_from_a_closed_pose_beside(tmp_path: Path) -> None:
    case = stretched(tmp_path)
    mechanism, guess = case.mechanism, case.guess
    assert close(mechanism, guess[None], np.ones(mechanism.nv, dtype=bool))[1] > 0.1
    found = closed_beside(mechanism, guess)
    ends = poses(mechanism, found)
    tips = [ends.p[:, k] + ends.R[:, k] @ [0.3, 0, 0] for k in (1, 3)]  # by the kinematics of the tree alone
    np.testing.assert_allclose(tips[0], tips[1], atol=1e-6)
    distances = np.abs(found - guess).max(axis=1)
    assert (np.diff(distances) >= 0).all()
    motion = prescribe(case)
    assert np.abs(motion.q[0] - guess).max() < 1.6
    assert not depends_on_gravity(case)


def test_a_linkage_that_is_too_short_has_no_closed_pose_beside(tmp_path: Path) -> None:
    case = stretched(tmp_path, apart=1.3)  # two legs of 0.6 m
    assert not len(closed_beside(case.mechanism, case.guess))


def test_a_stretched_linkage_that_falls_moves_with_gravity(tmp_path: Path) -> None:
    """Motions of undriven dofs are not shared by configurations, whether or not the file starts closed."""
    assert depends_on_gravity(stretched(tmp_path, '<joint name="x" type="slide" axis="1 0 0"/>'))
