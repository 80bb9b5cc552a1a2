"""Reading of spatial tendons: their use decides their form, and unsupported ones are refused by name."""

from pathlib import Path

import pytest

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf import describe, read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import WORLD, CoordinateClosure, Mechanism, PathClosure

ARM = """<mujoco><compiler angle="radian"/><worldbody>
  <geom name="pulley" type="cylinder" size=".01 .01" pos=".5 0 .2"/>
  <site name="w" pos="0 0 1"/><site name="x" pos="0 0 1"/><site name="v" pos="1 0 1"/>
  <body name="arm"><joint name="j" axis="0 1 0"/><geom size=".05" pos=".5 0 0"/><site name="tip" pos="1 0 0"/>
    <site name="mid" pos=".5 0 .1"/></body></worldbody>
  <tendon>{tendons}</tendon>{rest}</mujoco>"""
LINE = '<spatial name="t" {}><site site="w"/><site site="tip"/></spatial>'
BENT = '<spatial name="t" {}><site site="w"/><site site="mid"/><site site="tip"/></spatial>'
WRAPPED = '<spatial name="t" {}><site site="w"/><geom geom="pulley"/><site site="tip"/></spatial>'
MOTOR = '<actuator><motor name="m" tendon="t"/><motor name="n" joint="j"/></actuator>'


def read(folder: Path, tendons: str, rest: str = "", actuated: tuple[str, ...] = ()) -> Mechanism:
    file = folder / "arm.xml"
    file.write_text(ARM.format(tendons=tendons, rest=rest), encoding="utf-8")
    return read_mechanism(ModelFile(path=file, actuated=actuated))


def test_a_driven_length_is_a_slide_that_moves_no_body(tmp_path: Path) -> None:
    keys = MOTOR + '<keyframe><key name="up" qpos="-1.5707963267948966"/></keyframe>'
    mechanism = read(tmp_path, BENT.format('limited="true" range=".3 3"'), keys)
    slide, (closure,) = mechanism.joints[-1], mechanism.closures
    assert isinstance(closure, PathClosure)
    assert (slide.name, slide.body, slide.limits, closure.slide) == ("t", WORLD, (0.3, 3.0), 1)
    assert mechanism.spanning_tree == (1, 1)
    straight = (0.5**2 + 0.9**2) ** 0.5 + (0.5**2 + 0.1**2) ** 0.5
    assert slide.rest_position[0] == pytest.approx(straight, abs=1e-14)
    assert mechanism.keyframes["up"][1] == pytest.approx(2 * (0.1**2 + 0.5**2) ** 0.5, abs=1e-12)  # tip at w
    assert [segment.body1 for segment in closure.segments] == [0, 0]


@pytest.mark.parametrize(
    ("tendon", "rest", "springs", "slides", "closures"),
    [
        (LINE.format('stiffness="3" damping="1"'), "", 1, 0, 0),
        (BENT.format('stiffness="3"'), "", 0, 1, 1),
        (LINE.format('armature="3"'), "", 0, 1, 1),
        (BENT.format(""), "", 0, 0, 0),
        (LINE.format(""), '<equality><tendon tendon1="t"/></equality>', 0, 0, 1),
        (LINE.format('stiffness="3"'), '<equality><tendon tendon1="t"/></equality>', 0, 1, 2),
        (LINE.format('stiffness="3"'), '<equality><tendon tendon1="t" active="false"/></equality>', 1, 0, 0),
        (
            BENT.format(""),
            '<option><flag equality="disable"/></option><equality><tendon tendon1="t"/></equality>',
            0,
            0,
            0,
        ),
    ],
)
def test_the_use_decides_the_form(
    tendon: str, rest: str, springs: int, slides: int, closures: int, tmp_path: Path
) -> None:
    mechanism = read(tmp_path, tendon, rest)
    counts = (len(mechanism.point_springs), len(mechanism.joints) - 1, len(mechanism.closures))
    assert counts == (springs, slides, closures)


def test_a_constant_length_counts_from_the_pose_of_the_file(tmp_path: Path) -> None:
    """The rest length of a spring has no part in it."""
    rest = '<equality><tendon tendon1="t" polycoef=".25 7 7 7 7"/></equality>'
    (rod,) = read(tmp_path, LINE.format('springlength=".1"'), rest).closures
    assert isinstance(rod, PathClosure)
    assert rod.slide is None
    assert rod.length == pytest.approx(2**0.5 + 0.25, abs=1e-14)


def test_two_tendons_are_coupled_by_their_slides(tmp_path: Path) -> None:
    other = LINE.format("").replace('"t"', '"u"').replace('"w"', '"v"')
    rest = '<equality><tendon name="e" tendon1="t" tendon2="u" polycoef="0 2 0 0 0"/></equality>'
    mechanism = read(tmp_path, LINE.format("") + other, rest)
    coupling, *lengths = mechanism.closures
    assert isinstance(coupling, CoordinateClosure)
    assert (coupling.follower.joints, coupling.leader and coupling.leader.joints) == ((1,), (2,))
    assert [closure.name for closure in lengths] == ["length of t", "length of u"]
    assert "check the tension of cables): t, u" in mechanism.left_out[-1]


def test_a_joint_may_have_the_name_of_a_tendon(tmp_path: Path) -> None:
    mechanism = read(tmp_path, BENT.format("").replace('"t"', '"j"'), MOTOR.replace('"t"', '"j"'))
    assert [joint.name for joint in mechanism.joints] == ["j", "length of tendon j"]


def test_a_part_without_length_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "arm.xml"
    text = ARM.format(tendons=BENT.format(""), rest=MOTOR).replace('name="w" pos="0 0 1"', 'name="w" pos=".5 0 .1"')
    file.write_text(text, encoding="utf-8")
    with pytest.raises(MechanismError, match="spatial tendon 't': sites 'w' and 'mid' must be apart in the pose of"):
        read_mechanism(ModelFile(path=file))


def test_parts_of_one_body_have_a_constant_length(tmp_path: Path) -> None:
    """Also of no length at all."""
    tendon = LINE.format("").replace('<site site="tip"/>', '<site site="x"/><site site="tip"/>')
    (closure,) = read(tmp_path, tendon, MOTOR).closures
    assert isinstance(closure, PathClosure)
    assert len(closure.segments) == 1


def test_a_wrapped_tendon_is_refused_with_a_remedy(tmp_path: Path) -> None:
    """The remedy works, and the checks of the file say the same."""
    refusal = (
        r"not supported: actuator 'm' on spatial tendon 't', which wraps around geom 'pulley' .only straight parts are "
        r"supported: lead it over a site on the body of the geom instead.\. If these have no effort: --actuated n$"
    )
    with pytest.raises(MechanismError, match=refusal):
        read(tmp_path, WRAPPED.format(""), MOTOR)
    assert [actuator.name for actuator in read(tmp_path, WRAPPED.format(""), MOTOR, ("n",)).actuators] == ["n"]
    description = describe(tmp_path / "arm.xml")
    assert description.unsupported[0].startswith("actuator 'm' on spatial tendon 't', which wraps around geom 'pulley'")
    assert [actuator.name for actuator in description.mechanism.actuators] == ["n"]
    for spring, rest in (('stiffness="1"', ""), ("", '<equality><tendon tendon1="t"/></equality>')):
        with pytest.raises(
            MechanismError, match=r"not supported: spatial tendon 't', which wraps around .* instead\)$"
        ):
            read(tmp_path, WRAPPED.format(spring), rest)


def test_tendons_can_be_actuated(tmp_path: Path) -> None:
    mechanism = read(tmp_path, BENT.format(""), actuated=("t",))
    assert [actuator.coordinate.joints for actuator in mechanism.actuators] == [(1,)]
    assert mechanism.actuator_units == ("N",)
