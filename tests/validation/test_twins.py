"""A robot in metres and the same robot in millimetres or kilometres get the same results."""

from pathlib import Path

import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import outcome_of
from loopcheck.validation.common import sources
from tests.conftest import CaseMaker


def four_bar(unit: float) -> str:
    """A plain four-bar with lengths, gravity and moments of inertia in a unit of length [1/m]."""
    m, m2 = unit, unit**2
    return f"""
<mujoco><compiler angle="radian"/><option gravity="0 {-9.81 * m:.17g} 0"/>
  <worldbody>
    <body name="crank"><joint name="crank" axis="0 0 1"/>
      <inertial pos="{0.2 * m:.17g} 0 0" mass="0.4" diaginertia="{5e-3 * m2:.17g} {5e-3 * m2:.17g} {6e-3 * m2:.17g}"/>
      <body name="coupler" pos="{0.4 * m:.17g} 0 0"><joint name="coupler" axis="0 0 1"/>
        <inertial pos="{0.55 * m:.17g} 0 0" mass="1.1" diaginertia="{0.1 * m2:.17g} {0.1 * m2:.17g} {0.11 * m2:.17g}"/>
        <site name="coupler_end" pos="{1.1 * m:.17g} 0 0"/></body>
    </body>
    <body name="rocker" pos="{m:.17g} 0 0"><joint name="rocker" axis="0 0 1" armature="{0.02 * m2:.17g}"/>
      <inertial pos="{0.4 * m:.17g} 0 0" mass="0.8" diaginertia="{0.04 * m2:.17g} {0.04 * m2:.17g} {0.05 * m2:.17g}"/>
      <site name="end" pos="{0.8 * m:.17g} 0 0"/></body>
  </worldbody>
  <equality><connect name="end" site1="coupler_end" site2="end"/></equality>
  <actuator><motor name="motor" joint="crank"/></actuator>
  <keyframe><key name="home" qpos="0.5 0.02134194534387413 1.17978376447017"/></keyframe>
</mujoco>"""


def slider_crank(unit: float) -> str:
    """A slider-crank in space that is driven at its slider: turns and slides are not alike."""
    m, m2, rod = unit, unit**2, f"{4e-3 * unit**2:.17g}"
    return f"""
<mujoco><compiler angle="radian"/><option gravity="0 0 {-9.81 * m:.17g}"/>
  <worldbody>
    <body name="crank" pos="0 {0.1 * m:.17g} {0.12 * m:.17g}"><joint name="crank" axis="1 0 0"/>
      <inertial pos="0 0 {0.01 * m:.17g}" mass="0.12" diaginertia="{1e-4 * m2:.17g} {1e-4 * m2:.17g} {2e-5 * m2:.17g}"/>
      <site name="B" pos="0 0 {0.08 * m:.17g}"/></body>
    <body name="slider"><joint name="slider" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="2" diaginertia="{1e-4 * m2:.17g} {1e-4 * m2:.17g} {1e-4 * m2:.17g}"/>
      <body name="rod"><joint name="cross" axis="1 0 0"/><joint name="rod" axis="0 1 0"/>
        <inertial pos="{-0.15 * m:.17g} 0 0" mass="0.5" diaginertia="{4e-4 * m2:.17g} {rod} {rod}"/>
        <site name="rod_end" pos="{-0.3 * m:.17g} 0 0"/></body>
    </body>
  </worldbody>
  <equality><connect name="B" site1="B" site2="rod_end"/></equality>
  <actuator><motor name="motor" joint="slider"/></actuator>
  <keyframe><key name="home" qpos="0.8 {0.19 * m:.17g} -0.3 0.7"/></keyframe>
</mujoco>"""


MECHANISMS = {"four_bar": (four_bar, 0.1, 0), "slider_crank": (slider_crank, 0.005, 1)}
"""Model by its unit, half swing of its drive [rad or m], and its power of the unit."""
MILLIMETRES, METRES, KILOMETRES = 1e3, 1.0, 1e-3
SOURCES = (
    *("analytic/noc", "analytic/lagrange", "mujoco/kkt", "mujoco/forward", "exudyn/forward"),
    *("pinocchio/kkt", "pinocchio/forward", "pybullet/kkt", "pybullet/forward"),
)


def moved(name: str, unit: float, folder: Path, model_case: CaseMaker) -> tuple[Case, Motion]:
    model, swing, power = MECHANISMS[name]
    path = folder / f"{name}.xml"
    path.write_text(model(unit), encoding="utf-8")
    case = model_case(path, amplitude=swing * unit**power, frequency=5.0, duration=0.1)
    return case, prescribe(case)


@pytest.mark.parametrize("unit", [MILLIMETRES, METRES, KILOMETRES], ids=["millimetres", "metres", "kilometres"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_units_of_length_are_no_matter(name: str, unit: float, tmp_path: Path, model_case: CaseMaker) -> None:
    case, motion = moved(name, unit, tmp_path, model_case)
    installed = [
        source for source in SOURCES if source.startswith("analytic/") or engines.installed(source.split("/")[0])
    ]
    outcomes = [
        outcome_of(case, motion, source, lambda source=source: sources.load(source).compute_efforts(case, motion))  # type: ignore[misc]
        for source in installed
    ]
    rows = summarize(outcomes)
    assert rows.set_index("source")["verdict"].to_dict() == {
        source: "reference" if source == sources.REFERENCE else "agree" for source in installed
    }, "; ".join(rows["note"])
