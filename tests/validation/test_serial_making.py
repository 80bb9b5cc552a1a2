"""`loopcheck serial --make`: stand-ins derived from closed mechanisms."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.transmission.twin import make_twin, sound_poses, workspace
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.validation.serial.making import write_stand_in
from tests.analytic.test_transmission import crank_angle
from tests.validation.test_serial import ANKLE, KNEE, case_of, read


def test_a_stand_in_is_the_tree_that_carries_most(tmp_path: Path) -> None:
    """The knee's has shank and half of the rod at its joint, with an inertia computed by hand, and all masses."""
    path, notes, _ = write_stand_in(case_of(KNEE[0]), (), (), tmp_path)
    made, closed = read(path), read(KNEE[0])
    assert [joint.name for joint in made.joints] == ["knee"]
    assert not made.closures
    assert [actuator.name for actuator in made.actuators] == ["knee"]
    assert sum(body.mass for body in made.bodies) == pytest.approx(sum(body.mass for body in closed.bodies))
    assert notes == ["wrote stand_in.xml: moves by knee"]
    samples = workspace(
        make_twin(closed, closed.rest_position, made, made.rest_position, {}), np.linspace(-0.4, 0.6, 5)[:, None]
    )
    assert samples.serial.mass[:, 0, 0] == pytest.approx(0.02 + 2 * 0.18**2 + 0.125 * (0.05**2 + 0.015**2), rel=1e-6)


def test_no_digit_of_a_mass_is_lost(tmp_path: Path) -> None:
    """MuJoCo writes six digits, which is 1e-6 of an effort."""
    text = KNEE[0].read_text(encoding="utf-8")
    (tmp_path / "knee.xml").write_text(text.replace('mass="0.25"', 'mass="0.12345678901234"'), encoding="utf-8")
    made = read(write_stand_in(case_of(tmp_path / "knee.xml"), (), (), tmp_path).path)
    closed = read(tmp_path / "knee.xml")
    assert sum(body.mass for body in made.bodies) == pytest.approx(sum(body.mass for body in closed.bodies), rel=1e-13)


def test_a_joint_that_carries_a_kept_one_follows(tmp_path: Path) -> None:
    """A foot on the shank, with the crank kept instead of the knee: the knee goes with the crank by a polynomial."""
    foot = '''<body name="foot" pos="0 0 -0.4"><joint name="ankle" axis="0 1 0" range="-.3 .3"/>
      <inertial mass="0.5" pos="0.05 0 0" diaginertia="1e-3 1e-3 1e-3"/></body><site name="heel"'''
    motor = '<motor name="ankle" joint="ankle"/></actuator>'
    text = KNEE[0].read_text(encoding="utf-8")
    walking = tmp_path / "leg.xml"
    walking.write_text(
        text.replace('<site name="heel"', foot)
        .replace("</actuator>", motor)
        .replace('name="crank" axis="0 1 0"', 'name="crank" axis="0 1 0" range="-.3 .3"'),
        encoding="utf-8",
    )
    path, notes, _ = write_stand_in(case_of(walking), ("crank", "ankle"), (), tmp_path / "made")
    made = read(path)
    assert {joint.name for joint in made.joints} == {"knee", "crank", "ankle"}
    assert [closure.name for closure in made.closures] == ["knee follows crank"]
    assert "knee carries a kept joint: it follows crank" in notes[1]
    closed = read(walking)
    twin = make_twin(closed, closed.rest_position, made, made.rest_position, {})
    samples = workspace(twin, np.array([[0.25, 0.2], [-0.2, -0.1], [0.1, 0.0]]))
    assert samples.pose_error.max() < 1e-3
    crank = made.q_slices[[joint.name for joint in made.joints].index("crank")].start
    x = np.array([[0.25, 0.0], [-0.2, 0.0]])
    assert sound_poses(twin.serial, x)[0][:, crank] == pytest.approx(crank_angle(x[:, 0]), abs=1e-3)


def test_what_cannot_be_made_is_named(tmp_path: Path) -> None:
    case = case_of(KNEE[0])
    with pytest.raises(NotFoundError, match="unknown joint: 'hip'"):
        write_stand_in(case, ("hip",), (), tmp_path)
    with pytest.raises(MechanismError, match="joints to keep must move independently, got crank"):
        write_stand_in(case, ("knee", "crank"), (), tmp_path)
    with pytest.raises(MechanismError, match="got roll behind a kept joint"):
        write_stand_in(case_of(both_on_one_body(tmp_path)), ("pitch",), ("roll",), tmp_path)


def both_on_one_body(folder: Path) -> Path:
    """The ankle with pitch and roll on the foot, instead of a cross between them."""
    text = ANKLE[0].read_text(encoding="utf-8")
    pitch = '<joint name="pitch" axis="0 1 0" range="-0.5 0.4" damping="0.02"/>'
    roll = '<joint name="roll" axis="1 0 0" range="-0.25 0.25" damping="0.02"/>'
    path = folder / "ankle_of_one.xml"
    path.write_text(text.replace(pitch, "").replace(roll, pitch + roll), encoding="utf-8")
    return path
