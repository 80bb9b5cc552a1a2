"""USD with loops becomes the mechanism that it describes; likely mistakes get one line."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.linkage_from_mechanism import linkage_of
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.mjcf import read_mechanism
from loopcheck.robots.mjcf_patch import Patch, patched
from loopcheck.robots.model_file import ModelFile, files_of
from loopcheck.robots.usd_writer import usd_text
from tests.four_bar_efforts import four_bar_error
from tests.usd_models import (
    COUPLER_ANGLE,
    COUPLER_JOINT,
    CRANK_JOINT,
    LINKS,
    LOOP,
    ROCKER_JOINT,
    SCENE,
    usda,
    write_usd,
)

pytest.importorskip("pxr")
FLOATS = 2e-6
MODEL = Path(__file__).parents[1] / "models" / "four_bar.xml"


def read(path: Path) -> Mechanism:
    return read_mechanism(ModelFile(path=path))


def backwards(joint: str) -> str:
    """The joint with its bodies exchanged, and with the opposite axes, so that its position stays the same."""
    exchanged = re.sub(r"(body|localPos|localRot)([01])", lambda m: f"{m[1]}{1 - int(m[2])}", joint)

    def opposite(match: re.Match[str]) -> str:
        w, x, y, z = map(float, match[1].split(","))
        return f"= ({-z!r}, {y!r}, {-x!r}, {w!r})" if match else ""  # times a turn of 180° about Z

    return re.sub(r"= \(([^()]*,[^()]*,[^()]*,[^()]*)\)", opposite, exchanged)


def of_any_kind(joint: str) -> str:
    """The same joint as one with six limits."""
    locked = "".join(
        f"float limit:{dof}:physics:low = 1\nfloat limit:{dof}:physics:high = -1\n"
        for dof in ("transX", "transY", "transZ", "rotY", "rotZ")
    )
    return joint.replace("PhysicsRevoluteJoint", "PhysicsJoint").replace("uniform token", f"{locked} uniform token")


SUBLAYER = "(\n subLayers = [@model.usda@]"
JOINTS = CRANK_JOINT + COUPLER_JOINT + ROCKER_JOINT
OUTSIDE, DISABLED = "uniform bool physics:excludeFromArticulation = 1", "bool physics:jointEnabled = 0"
MODELS = {
    "units and axes": usda(),
    "no flag at the loop": usda(LINKS + JOINTS + LOOP.replace(OUTSIDE, "") + SCENE),
    "bodies exchanged": usda(LINKS + LOOP + backwards(CRANK_JOINT) + backwards(COUPLER_JOINT) + ROCKER_JOINT + SCENE),
    "joints with six limits": usda(
        LINKS + of_any_kind(LOOP) + CRANK_JOINT + of_any_kind(COUPLER_JOINT) + ROCKER_JOINT + SCENE
    ),
    "disabled joint": usda(
        LINKS + LOOP + JOINTS + SCENE + LOOP.replace('"loop"', '"other"').replace(OUTSIDE, DISABLED).replace("40", "9")
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_efforts_are_those_of_the_closed_form(name: str, tmp_path: Path) -> None:
    assert four_bar_error(read(write_usd(tmp_path, MODELS[name]))) < FLOATS


def test_the_pose_of_the_file_is_the_position_at_rest(tmp_path: Path) -> None:
    """The coupler is at zero where it continues the crank, not in the pose of the file."""
    mechanism = read(write_usd(tmp_path))
    home = mechanism.rest_position
    assert not mechanism.keyframes
    at = dict(zip((joint.name for joint in mechanism.joints), home, strict=True))
    assert at["crank_joint"] == pytest.approx(0.0, abs=1e-6)
    assert at["coupler_joint"] == pytest.approx(COUPLER_ANGLE, abs=1e-6)


def test_limits_and_drives_are_converted_from_units_of_the_stage(tmp_path: Path) -> None:
    more = (
        "float physics:lowerLimit = -90\nfloat physics:upperLimit = 45\nfloat drive:angular:physics:maxForce = 100\n"
        "double mjc:damping = 3\ndouble mjc:armature = 40\n"
    )
    limited = CRANK_JOINT.replace("uniform token", f"{more} uniform token")
    mechanism = read(write_usd(tmp_path, usda().replace(CRANK_JOINT, limited)))
    joint = next(joint for joint in mechanism.joints if joint.name == "crank_joint")
    assert joint.limits == pytest.approx((-np.pi / 2, np.pi / 4))
    assert joint.damping == pytest.approx(3 * 0.5 * 0.01**2)
    assert joint.armature == pytest.approx(40 * 0.5 * 0.01**2)
    assert mechanism.actuators[0].limits[0].high == pytest.approx(100 * 0.5 * 0.01**2)


def test_a_changed_standard_attribute_overrules_the_double(tmp_path: Path) -> None:
    original = read(MODEL)
    path = tmp_path / "model.usda"
    text = usd_text(linkage_of(original, original.rest_position))
    path.write_text(text, encoding="utf-8")
    assert [body.mass for body in read(path).bodies] == [body.mass for body in original.bodies]
    path.write_text(text.replace("float physics:mass = 0.8", "float physics:mass = 0.75"), encoding="utf-8")
    changed = read(path)
    assert [body.mass for body in changed.bodies] == [1.2, 0.75, 0.9]
    assert "the standard attribute was changed and counts: physics:mass of /World/coupler" in changed.left_out[-1]


def test_usd_core_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_usd(tmp_path)
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(HarnessError, match=r"usd-core must be installed .* Run: pip install 'loopcheck\[usd\]'"):
        read(path)


def test_referenced_files_belong_to_the_model(tmp_path: Path) -> None:
    path = write_usd(tmp_path)
    whole = tmp_path / "whole.usda"
    whole.write_text(path.read_text(encoding="utf-8").split("def Xform")[0].replace("(", SUBLAYER, 1), encoding="utf-8")
    assert {file.name for file in files_of(whole)} == {"whole.usda", "model.usda"}
    assert four_bar_error(read(whole)) < FLOATS
    path.unlink()
    with pytest.raises(HarnessError, match=r"whole.usda: all referenced files must be there: .*model.usda"):
        read(whole)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", r"model.usda: must be a readable USD file: .*not a valid usda layer"),
        (usda(SCENE), r"must have rigid bodies \(PhysicsRigidBodyAPI\), got none"),
        (
            usda().replace("float physics:mass", "float physics:weight"),
            "/World/crank: physics:mass and physics:diagonalI",
        ),
        (usda().replace("physics:diagonalInertia", "physics:diagonal"), "diagonalInertia must be stated, got 0.8 and"),
        (
            usda()
            .replace("centerOfMass", "center")
            .replace('"picture" {', '"picture" (apiSchemas = ["PhysicsCollisionAPI"]) {'),
            "/World/crank: physics:centerOfMass must be stated",
        ),
        (usda().replace("(2, 2, 2)", "(2, -2, 2)"), "/World/crank: axes must be at right angles, without a mirror"),
        (
            usda().replace("body1 = </World/rocker>", "body1 = </World/roker>"),
            "physics:body1 must be a prim, got /World/rok",
        ),
        (
            usda().replace("PhysicsRevoluteJoint", "PhysicsDistanceJoint", 1),
            "type of a joint must be one of .* PhysicsDist",
        ),
        (usda().replace("PhysicsRevoluteJoint", "PhysicsJoint", 1), "not supported: a joint with free transX, transY"),
        (usda().replace("mass = ", "mass = nan #", 1), "physics:mass must be a number, got"),
    ],
)
def test_likely_mistakes_get_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError) as refused:
        read(write_usd(tmp_path, text))
    assert re.search(message, str(refused.value)), refused.value
    assert "\n" not in str(refused.value)


def test_settings_are_not_written_into_a_usd(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="settings of a simulation must be written into an MJCF, got a USD"):
        patched(ModelFile(path=write_usd(tmp_path)), Patch(option={"timestep": "0.001"}, equalities={}), 1)
