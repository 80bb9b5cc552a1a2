"""Energy and power balance against a single slide with closed forms of every term."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.dynamics.energy import power_imbalance, total_energy
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism, Wrench
from loopcheck.robots.motion import Motion
from tests.conftest import CaseMaker

SLIDE = """
<mujoco>
  <worldbody>
    <site name="wall" pos="-1 0 0"/>
    <body name="slider">
      <joint name="x" type="slide" axis="1 0 0" stiffness="3" springref="0.1" damping="0.5" armature="0.2"/>
      <inertial pos="0 0 0" mass="2" diaginertia="0.1 0.2 0.3"/>
      <site name="hook" pos="0 0 0"/>
      <body name="wheel">
        <joint name="turn" axis="1 0 0" damping="0.25" armature="0.125"/>
        <inertial pos="0 0.1 0" mass="1" diaginertia="0.4 0.2 0.3"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="cord" stiffness="7" springlength="0.4" damping="0.75">
      <site site="wall"/><site site="hook"/>
    </spatial>
    <fixed name="rack" damping="0.6" armature="0.05"><joint joint="x" coef="2"/><joint joint="turn" coef="3"/></fixed>
  </tendon>
  <actuator><motor name="push" joint="x"/><motor name="spin" joint="turn" gear="2"/></actuator>
</mujoco>"""
G = 5.0
FORCE, MOMENT = 1.5, 1.3
"""Load along and about the axis [N, N m], the moment partly by a force across, 0.3 m beside the axis."""
X, V, A = np.array([0.2, -0.1, 0.3]), np.array([1.0, -0.5, 0.25]), np.array([2.0, 3.0, -1.0])
W, W_DOT = np.array([0.5, 1.5, -2.0]), np.array([-1.0, 0.75, 2.5])
"""Position, rate and acceleration of the slide [m, s]; rate and acceleration of the wheel [rad, s]."""


@pytest.fixture
def mechanism(tmp_path: Path, model_case: CaseMaker) -> Mechanism:
    """The slide in gravity along its axis; a force and a moment act on the wheel, beside its axis."""
    (tmp_path / "slide.xml").write_text(SLIDE, encoding="utf-8")
    own = model_case(tmp_path / "slide.xml", amplitude=0.1).mechanism
    load = Wrench(body=1, point=np.array([0, 0.3, 0]), force=np.array([FORCE, 0, 2]), moment=np.array([0.7, 0, 0]))
    return replace(own, gravity=np.array([G, 0.0, 0.0]), wrenches=(load,))


@pytest.fixture
def motion() -> Motion:
    def nothing(t: Array) -> Motion:
        raise AssertionError(t)

    columns = (np.stack(pair, axis=1) for pair in ((X, 0 * X), (V, W), (A, W_DOT)))
    q, qd, qdd = columns
    return Motion(t=np.arange(3.0), q=q, qd=qd, qdd=qdd, law=nothing, assemble=nothing)  # type: ignore[arg-type]


RATE = 2 * V + 3 * W
"""Speed of the rack [m/s]."""


def powers() -> Array:
    """Power of every term [W], shape (terms, 3): bodies, rotors, weights, springs, dampers, load."""
    rack = 2 * A + 3 * W_DOT
    return np.array(
        [
            2 * A * V,
            1 * A * V + 0.41 * W_DOT * W,
            0.2 * A * V,
            0.125 * W_DOT * W,
            0.05 * rack * RATE,
            -2 * G * V,
            -1 * G * V,
            3 * (X - 0.1) * V,
            7 * (1 + X - 0.4) * V,
            0.5 * V**2,
            0.25 * W**2,
            0.75 * V**2,
            0.6 * RATE**2,
            -(FORCE * V + MOMENT * W),
        ]
    )


def efforts() -> Array:
    """Balancing efforts: of the slide alone, and of the wheel with its gear [N, N m]."""
    rack = 2 * A + 3 * W_DOT
    push = 3.2 * A + 2 * 0.05 * rack - 3 * G + 3 * (X - 0.1) + 7 * (0.6 + X) + 1.25 * V + 2 * 0.6 * RATE - FORCE
    spin = 0.535 * W_DOT + 3 * 0.05 * rack + 0.25 * W + 3 * 0.6 * RATE - MOMENT
    return np.stack([push, spin / 2], axis=1)


def test_the_energy_of_a_slide(mechanism: Mechanism) -> None:
    q, qd = np.stack([X, 0.3 * X], axis=1), np.stack([V, W], axis=1)
    kinetic = (3.2 * V**2 + 0.535 * W**2 + 0.05 * RATE**2) / 2
    potential = -3 * G * X + 3 * (X - 0.1) ** 2 / 2 + 7 * (0.6 + X) ** 2 / 2
    np.testing.assert_allclose(total_energy(mechanism, q, qd) - total_energy(mechanism, q, 0 * qd), kinetic, rtol=1e-13)
    at_rest = total_energy(mechanism, q, 0 * qd)
    np.testing.assert_allclose(at_rest - at_rest[0], potential - potential[0], rtol=1e-13)


def test_the_right_efforts_balance(mechanism: Mechanism, motion: Motion) -> None:
    imbalance = power_imbalance(mechanism, motion, efforts())
    assert imbalance is not None
    assert 0 <= imbalance < 1e-15


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_imbalance_is_relative_to_the_powers_at_work(mechanism: Mechanism, motion: Motion, sign: float) -> None:
    """The largest difference over time by the largest sum over time, wherever each of them is."""
    error = sign * np.array([[1e-3, 2e-3], [-3e-3, 1e-3], [1e-3, 0.0]])
    effort = efforts() + error
    rates = np.stack([V, 2 * W], axis=1)
    difference = np.abs((error * rates).sum(1)).max()
    at_work = (np.abs(powers()).sum(0) + np.abs(effort * rates).sum(1)).max()
    imbalance = power_imbalance(mechanism, motion, effort)
    assert imbalance == pytest.approx(difference / at_work, rel=1e-9)


def test_what_is_left_out_of_a_balance_shows(mechanism: Mechanism, motion: Motion) -> None:
    """The load and each damper, taken away, unbalances the efforts by its own power."""
    cord, rack = mechanism.point_springs[0], mechanism.tendons[0]
    slide, wheel = mechanism.joints
    others = {
        -1: replace(mechanism, wrenches=()),
        9: replace(mechanism, joints=(replace(slide, damping=0.0), wheel)),
        10: replace(mechanism, joints=(slide, replace(wheel, damping=0.0))),
        11: replace(mechanism, point_springs=(replace(cord, damping=0.0),)),
        12: replace(mechanism, tendons=(replace(rack, damping=0.0),)),
    }
    put_in = np.abs(efforts() * np.stack([V, 2 * W], axis=1)).sum(1)
    for row, other in others.items():
        at_work = np.abs(np.delete(powers(), row, axis=0)).sum(0) + put_in
        expected = np.abs(powers()[row]).max() / at_work.max()
        assert power_imbalance(other, motion, efforts()) == pytest.approx(expected, rel=1e-12), row


def test_rest_has_no_balance(mechanism: Mechanism, motion: Motion) -> None:
    still = replace(motion, qd=0 * motion.qd)
    assert power_imbalance(mechanism, still, efforts()) is None


def test_what_coasts_without_any_force_is_balanced(mechanism: Mechanism, motion: Motion) -> None:
    """No power is at work at all: zero by zero is no imbalance."""
    free = tuple(replace(joint, stiffness=0.0, damping=0.0, armature=0.0) for joint in mechanism.joints)
    bare = replace(mechanism, joints=free, point_springs=(), tendons=(), wrenches=(), gravity=np.zeros(3))
    assert power_imbalance(bare, replace(motion, qdd=0 * motion.qdd), 0 * efforts()) == 0
