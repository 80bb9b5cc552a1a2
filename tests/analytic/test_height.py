"""A floating base starts above the ground, where the same efforts are required; MuJoCo's contacts say so."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.analytic.motion.height import raised
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.mujoco.as_is import compiled
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.as_is import not_followed
from loopcheck.validation.common.sources import load
from loopcheck.validation.common.targets import case_of

mujoco = pytest.importorskip("mujoco")

FREE = '<freejoint name="base"/>'
SLIDES = '<joint name="x" type="slide" axis="1 0 0"/><joint name="base" type="slide" axis="0 0 1"/>'
PITCH = '<joint name="pitch" axis="0 1 0"/>'
WALKER = """<mujoco><option timestep="0.001" integrator="implicitfast"/><default><geom contype="0"/></default>
  <worldbody>
  <geom type="plane" size="5 5 .1" contype="1" conaffinity="0"/>
  <body name="base" pos="0 0 .15" euler="0 TILT 0">BASE<geom size=".05" mass="3"/><site name="hook" pos="0 0 .1"/>
    <body name="crank" pos="-.1 0 0"><joint name="crank" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".01" mass=".3"/>
      <body name="coupler" pos="0 0 -.2"><joint name="coupler" axis="0 1 0"/><site name="end" pos=".2 0 0"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".01" mass=".3"/></body></body>
    <body name="rocker" pos=".1 0 0"><joint name="rocker" axis="0 1 0"/><site name="tip" pos="0 0 -.2"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".01" mass=".3"/></body></body>
  <body name="ball" pos="1 0 .5"><freejoint name="ball"/><geom size=".05" mass=".1"/></body>
  <site name="ceiling" pos="0 0 1"/></worldbody>
  <equality><connect name="loop" site1="end" site2="tip"/>LOOP</equality>
  <tendon><spatial name="rope" stiffness="ROPE"><site site="ceiling"/><site site="hook"/></spatial></tendon>
  <actuator><motor name="crank" joint="crank" gear="1"/>MOTOR</actuator></mujoco>"""


def walker(folder: Path, base: str, **others: str) -> Case:
    """A four-bar below a base, with its foot 60 mm below the ground."""
    text = WALKER.replace("BASE", base)
    for name, default in {"TILT": "0", "LOOP": "", "ROPE": "0", "MOTOR": ""}.items():
        text = text.replace(name, others.get(name, default))
    (folder / "walker.xml").write_text(text, encoding="utf-8")
    return case_of(folder / "walker.xml")


def contacts(mechanism: Mechanism, motion: Motion) -> int:
    """Contacts of bodies other than the ball with the ground along a motion, by MuJoCo."""
    model, count = compiled(mechanism), 0
    data = mujoco.MjData(model)
    for q in motion.q:
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        bodies = [{model.body(model.geom_bodyid[g]).name for g in contact.geom} for contact in data.contact]
        count += sum("ball" not in pair for pair in bodies)
    return count


@pytest.mark.extended("test_a_start_is_off_the_ground_whatever_gravity_is")
@pytest.mark.parametrize(("base", "tilt"), [(FREE, "0"), (SLIDES + PITCH, "0"), (SLIDES + PITCH, "20")])
def test_a_falling_robot_starts_above_the_ground_with_the_same_efforts(tmp_path: Path, base: str, tilt: str) -> None:
    case = walker(tmp_path, base, TILT=tilt)
    motion = prescribe(case)
    place, start = slice(0, 3) if base == FREE else slice(0, 2), case.guess.copy()
    start[place] = motion.q[0, place]
    np.testing.assert_allclose(motion.q[0], start, atol=1e-12)  # the ball and all else are where they were
    below = assemble(case.mechanism, motion.law, case.guess, motion.t)
    assert contacts(case.mechanism, below) > 100
    assert contacts(case.mechanism, motion) == 0
    at_ground, above = (Noc().compute_efforts(case, one).effort for one in (below, motion))
    np.testing.assert_allclose(above, at_ground, atol=1e-9 * np.abs(at_ground).max())
    as_is = load("mujoco/as_is").compute_efforts(case, motion).as_is
    assert as_is is not None
    assert not not_followed(as_is)
    assert [note for note in motion.notes if "m from the pose of the file" in note and "'base'" in note]


@pytest.mark.parametrize(
    ("base", "others"),
    [
        (SLIDES.replace('axis="0 0 1"', 'axis="0 0 1" stiffness="5"'), {}),
        (SLIDES.replace('axis="0 0 1"', 'axis="0 0 1" range="-1 1"'), {}),
        (SLIDES, {"MOTOR": '<motor name="lift" joint="base"/>'}),
        (SLIDES, {"LOOP": '<joint joint1="x" joint2="base" polycoef="0 1 0 0 0"/>'}),
        (FREE, {"ROPE": "10"}),
        (FREE, {"LOOP": '<connect site1="hook" site2="ceiling"/>'}),
        (PITCH + SLIDES, {}),
        ('<joint name="x" type="slide" axis="1 0 0"/>', {}),
    ],
    ids=["spring", "limit", "motor", "equality", "rope", "loop with the world", "slide on a hinge", "horizontal"],
)
def test_a_base_whose_height_has_an_effect_stays_where_it_is(tmp_path: Path, base: str, others: dict[str, str]) -> None:
    case = walker(tmp_path, base, **others)
    q, notes = raised(case.mechanism, case.guess, 0.5)
    assert notes == ()
    np.testing.assert_array_equal(q, case.guess)


@pytest.mark.parametrize("gravity", [(0, 0, 0), (9.81, 0, 0)], ids=["none", "along the ground"])
def test_a_start_is_off_the_ground_whatever_gravity_is(tmp_path: Path, gravity: tuple[float, float, float]) -> None:
    case = walker(tmp_path, FREE)
    case = replace(case, mechanism=case.mechanism.with_gravity(np.array(gravity, dtype=float)))
    motion = prescribe(case)
    assert contacts(case.mechanism, assemble(case.mechanism, motion.law, case.guess, motion.t)) > 100
    assert contacts(case.mechanism, motion) == 0
