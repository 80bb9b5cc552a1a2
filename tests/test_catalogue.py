"""The documents' account of the catalogue: the README's table of robots, and a drawing of each linkage."""

import re
import xml.etree.ElementTree as ET

import pytest

from loopcheck.analytic.kinematics.mobility import mobility
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.catalogue import CATALOGUE, names
from loopcheck.robots.robot import DEFAULT, configurations, load, make_case, modes

README = CATALOGUE / "README.md"


def rows_of_robots() -> dict[str, tuple[str, int, int]]:
    """Link, degrees of freedom and actuators by robot, as the README's table has them."""
    rows = re.findall(r"^\| (\[`.*?) \| .* \| (\d+), (\d+) \| .* \|$", README.read_text(encoding="utf-8"), re.MULTILINE)
    links = [(*link, int(dof), int(na)) for cell, dof, na in rows for link in re.findall(r"\[`(\w+)`\]\((.*?)\)", cell)]
    return {name: (link, dof, na) for name, link, dof, na in links}


def test_the_readme_lists_every_robot() -> None:
    assert {name: link for name, (link, *_) in rows_of_robots().items()} == {
        name: f"{name}/README.md" for name in names()
    }


@pytest.mark.parametrize("name", names())
def test_the_readme_counts_its_degrees_of_freedom_and_actuators(name: str) -> None:
    robot = load(name)
    mechanism = robot.mechanism()
    mode, configuration = next(iter(modes(mechanism))), next(iter(configurations(robot, mechanism)))
    motion = prescribe(make_case(robot, variant=DEFAULT, mode=mode, configuration=configuration))
    counted = mobility(mechanism, motion.q[len(motion.t) // 3])
    assert rows_of_robots()[name][1:] == (counted.dof, counted.actuators)


@pytest.mark.parametrize("name", names())
def test_every_linkage_has_a_drawing(name: str) -> None:
    assert "](linkage.svg)" in (CATALOGUE / name / "README.md").read_text(encoding="utf-8")
    assert ET.parse(CATALOGUE / name / "linkage.svg").getroot().tag.endswith("svg")
