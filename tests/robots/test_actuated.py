"""`--actuated`: joints that get a motor, or those actuators of the file that act."""

from pathlib import Path

import pytest

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism

MODEL = """<mujoco><worldbody>
  <body><joint name="hip" axis="0 1 0"/><geom size=".1"/>
    <body pos=".5 0 0"><joint name="knee" axis="0 1 0"/><geom size=".1"/><site name="foot"/></body></body></worldbody>
  <actuator><motor name="m1" joint="hip" gear="3"/><motor name="m2" joint="knee" gear="5"/>
    <general name="push" site="foot" gear="1 0 0 0 0 0"/></actuator></mujoco>"""


def read(folder: Path, *actuated: str, text: str = MODEL) -> Mechanism:
    path = folder / "leg.xml"
    path.write_text(text, encoding="utf-8")
    return read_mechanism(ModelFile(path=path, actuated=actuated))


@pytest.mark.parametrize(
    ("actuated", "expected", "idle"),
    [
        (("m2",), [("m2", 5)], "m1, push"),
        (("m2", "m1"), [("m1", 3), ("m2", 5)], "push"),
        (("knee",), [("knee", 1)], ""),
        (("knee", "hip"), [("knee", 1), ("hip", 1)], ""),
    ],
)
def test_named_actuators_act_and_named_joints_get_a_motor(
    actuated: tuple[str, ...], expected: list[tuple[str, float]], idle: str, tmp_path: Path
) -> None:
    mechanism = read(tmp_path, *actuated)
    assert [(actuator.name, actuator.gear) for actuator in mechanism.actuators] == expected
    said = [f"actuators without effort, as --actuated does not name them: {idle}"] if idle else []
    assert [sentence for sentence in mechanism.left_out if "actuators" in sentence] == said


@pytest.mark.parametrize(
    ("actuated", "message"),
    [
        ((), r"not supported: actuator 'push' .*\. If these have no effort: --actuated m1,m2$"),
        (("push",), r"not supported: actuator 'push' \([^.]*$"),
        (("m1", "knee"), r"--actuated must name joints or actuators, not both, got m1, knee$"),
        (("ankle",), "unknown joint or tendon in leg.xml: 'ankle'. Known: hip, knee, m1, m2, push$"),
        (("m1", "m1"), "must be unique, got m1, m1$"),
    ],
)
def test_other_names_are_refused_with_a_remedy(actuated: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=message):
        read(tmp_path, *actuated)


def test_no_remedy_is_offered_for_what_else_is_not_supported(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"not supported: .*drag of a medium[^.]*$"):
        read(tmp_path, text=MODEL.replace("<worldbody>", '<option density="1"/><worldbody>'))
