"""The size of a robot: the longest of its links, whatever its pose and its unit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import load
from loopcheck.robots.size import size, size_in_motion, unit_rates

GANTRY = """
<mujoco><worldbody>
  <body name="cart"><joint name="x" type="slide" axis="1 0 0"/><inertial pos="0 0 0.03" mass="1" diaginertia="1 1 1"/>
    <body name="tool" pos="0 0 0.04"><joint name="turn" type="ball"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="tip" pos="0 0.12 0"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></body>
  </body>
  <body name="loose" pos="9 9 9"><freejoint name="loose"/><inertial pos="5 0 0" mass="1" diaginertia="1 1 1"/></body>
</worldbody></mujoco>"""


def test_it_is_the_longest_link() -> None:
    """Of the four-bar the coupler, of a chain of them the ground."""
    assert size(load("four_bar").mechanism()) == pytest.approx(1.1, rel=1e-12)
    assert size(load("n_four_bar_40").mechanism()) == pytest.approx(40, rel=1e-12)


def test_strokes_count_and_where_a_loose_body_is_does_not(tmp_path: Path) -> None:
    path = tmp_path / "gantry.xml"
    path.write_text(GANTRY, encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=path))
    assert size(mechanism) == pytest.approx(0.12, rel=1e-12)
    q = np.tile(mechanism.rest_position, (3, 1))
    q[:, 0] = [-1, 0, 2]
    t, rates = np.array([0.0, 0.5, 1.0]), np.zeros((3, mechanism.nv))

    def law(t: np.ndarray) -> Drive:
        return Drive(*np.zeros((3, len(t), 0)))

    motion = Motion(t=t, q=q, qd=rates, qdd=rates, law=law, assemble=lambda _: motion)
    assert size_in_motion(mechanism, motion) == 3
    units = unit_rates(mechanism)
    np.testing.assert_allclose(units, [0.12, 1, 1, 1, 0.12, 0.12, 0.12, 1, 1, 1], rtol=1e-12)


def test_what_has_no_length_counts_as_a_metre() -> None:
    mechanism = load("four_bar").mechanism()
    point = replace(mechanism.bodies[0], center=np.zeros(3))
    assert (
        size(replace(mechanism, bodies=(point,), joints=mechanism.joints[:1], closures=(), keyframes={}, sites=())) == 1
    )
