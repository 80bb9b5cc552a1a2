"""The figures of the validation suite reach the JUnit file, as properties of their tests."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

HOUSE = Path(__file__).parents[2]


def test_figures_are_properties(tmp_path: Path) -> None:
    chosen = "3prr and default and plus and vertical and kkt and mujoco"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_suite.py", "-k", chosen]
    ran = subprocess.run(
        [*command, "--junit-xml", str(tmp_path / "suite.xml")], cwd=HOUSE, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    cases = ElementTree.parse(tmp_path / "suite.xml").getroot().iter("testcase")
    figures = {
        case.attrib["name"]: {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")} for case in cases
    }
    assert list(figures) == ["test_agrees_with_the_reference[3prr-default-plus-vertical-mujoco/kkt]"]
    (found,) = figures.values()
    assert {f"{actuator}.relative_error" for actuator in ("q1", "q2", "q3")} <= set(found)
    assert 0 < float(found["q1.relative_error"]) < 1e-11
