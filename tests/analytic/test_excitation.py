"""Excitation of a robot by a motion, against the closed form of two masses on springs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.dynamics.excitation import excitation, excitation_in_words
from loopcheck.analytic.kinematics.mobility import mobility
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive, Motion

MASSES = """
<mujoco><option gravity="0 0 0"/><worldbody>
<body name="a"><joint name="a" type="slide" axis="1 0 0" stiffness="50"/><inertial mass="2" diaginertia="1 1 1" pos="0 0 0"/></body>
<body name="b"><joint name="b" type="slide" axis="1 0 0"/><inertial mass="1" diaginertia="1 1 1" pos="0 0 0"/></body>
</worldbody><actuator><motor name="a" joint="a"/><motor name="b" joint="b"/></actuator></mujoco>"""  # noqa: E501
RATE = 4 * np.pi
"""Frequencies of the masses' sines [rad/s]."""


@pytest.fixture
def moved(tmp_path: Path) -> Callable[[tuple[float, float]], tuple[Mechanism, Motion]]:
    """The masses, each on a sine of some amplitude [m] over a period."""
    (tmp_path / "masses.xml").write_text(MASSES, encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=tmp_path / "masses.xml"))

    def move(amplitudes: tuple[float, float]) -> tuple[Mechanism, Motion]:
        def law(t: Array) -> Drive:
            angle = RATE * t[:, None]
            q = np.array(amplitudes) * np.sin(angle)
            return Drive(q=q, qd=np.array(amplitudes) * RATE * np.cos(angle), qdd=-(RATE**2) * q)

        return mechanism, assemble(mechanism, law, np.zeros(2), np.linspace(0, 0.5, 65))

    return move


def test_the_inertial_share_is_that_of_a_mass_on_a_spring(
    moved: Callable[[tuple[float, float]], tuple[Mechanism, Motion]],
) -> None:
    found = excitation(*moved((0.1, 0.03)))
    assert found.inertial == pytest.approx([2 * RATE**2 / (2 * RATE**2 + 50), 1.0])
    assert found.swings == pytest.approx([0.2, 0.06])
    assert found.fastest == pytest.approx(0.1 * RATE)
    assert found.courses == 1  # both move alike
    assert not found.idle


def test_a_motor_that_never_works_is_named(
    moved: Callable[[tuple[float, float]], tuple[Mechanism, Motion]],
) -> None:
    words = list(excitation_in_words(*moved((0.1, 0.0))))
    assert words[-1] == "actuators without effort: b"
    assert words[0] == "duration 0.5 s; strokes of the drives 0 ('b') to 0.2 m ('a'); largest velocity 1.26 m/s ('a')"


@pytest.mark.parametrize(("compiler", "odd"), [("", True), ('<compiler angle="radian"/>', False)])
def test_ranges_in_radians_that_are_read_as_degrees_are_odd(tmp_path: Path, compiler: str, odd: bool) -> None:
    text = MASSES.replace("<worldbody>", f"{compiler}<worldbody>")
    text = text.replace('type="slide" axis="1 0 0" stiffness="50"', 'axis="0 0 1" range="-1.57 1.57"')
    (tmp_path / "hinge.xml").write_text(text, encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=tmp_path / "hinge.xml"))
    assert any("If they are radians" in oddity for oddity in mobility(mechanism, np.zeros(2)).warnings) == odd
