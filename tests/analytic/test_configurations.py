"""Names of configurations describe the robot, independent of the axes of its file."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.motion.configurations import named_gravities, normal
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import names
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import configurations, load

INERTIAL = '<inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.03"/>'


def of_bodies(folder: Path, bodies: str, motors: str, *, frame: str = "", gravity: str = "0 0 -9.81") -> Mechanism:
    """A mechanism, all of it in a frame of its own."""
    actuators = "".join(f'<motor name="{name}" joint="{name}"/>' for name in motors.split())
    text = f'<mujoco><option gravity="{gravity}"/><worldbody><frame {frame}>{bodies}</frame></worldbody>'
    (folder / "robot.xml").write_text(f"{text}<actuator>{actuators}</actuator></mujoco>", encoding="utf-8")
    return read_mechanism(ModelFile(path=folder / "robot.xml"))


ARM = f"""<body><joint name="shoulder" axis="0 0 1"/>{INERTIAL}
<body pos="0.3 0 0"><joint name="elbow" axis="0 0 1"/>{INERTIAL}{{hand}}</body></body>"""
HAND = """<body pos="0.3 0 0"><joint name="hand" type="ball"/>
<inertial pos="0 0 0" mass="1" diaginertia="0.01 0.02 0.03"/></body>"""
"""An unactuated top on a ball joint at its mass centre."""


def known_normal(mechanism: Mechanism) -> Array:
    """The normal of a planar mechanism (3,)."""
    n = normal(mechanism)
    assert n is not None
    return n


@pytest.mark.parametrize(
    ("frame", "n", "gravities"),
    [
        ("", (0, 0, 1), {"horizontal": (0, 0, -9.81), "vertical": (0, -9.81, 0)}),
        ('euler="90 0 0"', (0, 1, 0), {"vertical": (0, 0, -9.81), "horizontal": (0, -9.81, 0)}),
        ('euler="0 90 0"', (1, 0, 0), {"vertical": (0, 0, -9.81), "horizontal": (-9.81, 0, 0)}),
        ('euler="30 0 0"', (0, -0.5, np.sqrt(0.75)), {"given": (0, 0, -9.81), "turned": (0, -9.81, 0)}),
    ],
)
def test_a_planar_arm_lies_or_stands_as_it_does(
    tmp_path: Path, frame: str, n: tuple[float, ...], gravities: dict[str, tuple[float, ...]]
) -> None:
    mechanism = of_bodies(tmp_path, ARM.format(hand=""), "shoulder elbow", frame=frame)
    np.testing.assert_allclose(known_normal(mechanism), np.array(n), atol=1e-12)
    found = named_gravities(mechanism)
    assert list(found) == list(gravities)  # the file's own first
    for name, gravity in gravities.items():
        np.testing.assert_allclose(found[name], gravity, atol=1e-12)


def test_what_nothing_drives_does_not_make_a_robot_spatial(tmp_path: Path) -> None:
    """The hand of the arm turns freely about all axes."""
    mechanism = of_bodies(tmp_path, ARM.format(hand=HAND), "shoulder elbow")
    np.testing.assert_allclose(known_normal(mechanism), (0, 0, 1), atol=1e-12)


SLIDE = '<body><joint name="{name}" type="slide" axis="{axis}"/>' + INERTIAL


@pytest.mark.parametrize(("motors", "names_of"), [("x y", ["horizontal", "vertical"]), ("x", ["given", "turned"])])
def test_two_directions_of_translation_make_a_plane_and_one_does_not(
    tmp_path: Path, motors: str, names_of: list[str]
) -> None:
    slides = [SLIDE.format(name=name, axis={"x": "1 0 0", "y": "0 1 0"}[name]) for name in motors.split()]
    bodies = "".join(slides) + "</body>" * len(slides)
    assert list(named_gravities(of_bodies(tmp_path, bodies, motors))) == names_of


def test_a_robot_without_gravity_has_one_configuration(tmp_path: Path) -> None:
    mechanism = of_bodies(tmp_path, ARM.format(hand=""), "shoulder elbow", gravity="0 0 0")
    assert list(named_gravities(mechanism)) == ["given"]


@pytest.mark.parametrize("name", [name for name in names() if name != "n_four_bar_40"])
def test_the_catalogue_is_named_by_the_rule_unless_it_moves_in_space(name: str) -> None:
    robot = load(name)
    known, found = configurations(robot, robot.mechanism()), named_gravities(robot.mechanism())
    if robot.configurations is not None and len(found) > 1:
        assert normal(robot.mechanism()) is None
        found = dict(zip(robot.configurations, found.values(), strict=True))
    assert list(found) == list(known)
    for configuration, gravity in known.items():
        np.testing.assert_allclose(found[configuration], gravity, atol=1e-12)
