"""The motion that is made for a robot keeps well away from singularities."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.kinematics.continuation import Tracer
from loopcheck.analytic.motion import assembly, automatic
from loopcheck.analytic.motion.automatic import remaining_conditioning
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.motion.unactuated import MovingState, integrate_unactuated
from loopcheck.robots.arrays import JointPositions, Times
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.errors import MechanismError, SingularityError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Robot, load, make_case
from loopcheck.validation.common.targets import case_of

CRANK, COUPLER, GROUND = 0.2, 0.5, 0.79999
BEFORE = 0.55
"""Angle of the crank before the pose that nearly stretches coupler and rocker of equal length [rad]."""


def transmission(crank_angle: np.ndarray) -> np.ndarray:
    """Sine of the angle between coupler and rocker, by the law of cosines; zero at a singularity [-]."""
    diagonal = CRANK**2 + GROUND**2 - 2 * CRANK * GROUND * np.cos(crank_angle)
    return np.sin(np.arccos(1 - diagonal / (2 * COUPLER**2)))


def near_toggle(folder: Path) -> Robot:
    """A crank-rocker with coupler and rocker within half a degree of a line, without crossing it."""
    angle = np.pi - BEFORE
    A, D = CRANK * np.array([np.cos(angle), np.sin(angle)]), np.array([GROUND, 0.0])
    half = (D - A) / 2
    B = A + half + np.array([-half[1], half[0]]) * np.sqrt(COUPLER**2 / (half @ half) - 1)
    inertial = '<inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>'
    (folder / "toggle.xml").write_text(
        f"""<mujoco><worldbody>
        <body name="crank"><joint name="crank" axis="0 0 1"/>{inertial}
          <body name="coupler" pos="{A[0]} {A[1]} 0"><joint name="coupler" axis="0 0 1"/>{inertial}
            <site name="end" pos="{B[0] - A[0]} {B[1] - A[1]} 0"/></body></body>
        <body name="rocker" pos="{D[0]} {D[1]} 0"><joint name="rocker" axis="0 0 1"/>{inertial}
          <site name="tip" pos="{B[0] - D[0]} {B[1] - D[1]} 0"/></body></worldbody>
        <equality><connect name="loop" site1="end" site2="tip"/></equality>
        <actuator><motor name="crank" joint="crank"/></actuator></mujoco>"""
    )
    return Robot(name="toggle", folder=folder, title="", mjcf="toggle.xml", source="test")


def test_an_automatic_motion_turns_back_before_a_singularity(tmp_path: Path) -> None:
    case = make_case(near_toggle(tmp_path), variant="default", mode="home", configuration="horizontal")
    crank = np.pi - BEFORE + prescribe(case).q[:, 0]
    assert crank.max() - crank.min() > 0.1  # else it has not moved
    assert transmission(crank).min() > 0.1 * transmission(crank[:1])[0]
    assert transmission(np.array([np.pi]))[0] < 0.03 * transmission(crank[:1])[0]  # where the largest swing would go


def test_an_automatic_motion_keeps_inside_the_limits_of_passive_joints(tmp_path: Path) -> None:
    """The rocker may turn by 14 degrees; without a limit it turns further."""
    robot, path = near_toggle(tmp_path), tmp_path / "toggle.xml"
    free = prescribe(make_case(robot, variant="default", mode="home", configuration="horizontal"), dt=0.1)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('name="rocker" axis', 'name="rocker" range="-14 14" axis'), encoding="utf-8")
    kept = prescribe(make_case(robot, variant="default", mode="home", configuration="horizontal"), dt=0.1)
    assert np.abs(free.q[:, 2]).max() > np.deg2rad(14)
    assert np.abs(kept.q[:, 2]).max() < np.deg2rad(14) + 1e-6
    assert np.ptp(kept.q[:, 0]) > 0.1
    assert kept.notes == ()


def test_a_swing_beyond_a_limit_is_refused_before_the_unactuated_dofs_move(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their motion is integrated, for a humanoid in half a minute: of all attempts only the last needs it."""
    robot, path = near_toggle(tmp_path), tmp_path / "toggle.xml"
    swing = '<body pos="0 2 0"><joint name="swing"/><inertial pos=".1 0 0" mass="1" diaginertia=".1 .1 .1"/></body>'
    text = path.read_text(encoding="utf-8").replace('name="rocker" axis', 'name="rocker" range="-14 14" axis')
    path.write_text(text.replace("</worldbody>", f"{swing}</worldbody>"), encoding="utf-8")
    integrated: list[object] = []

    def counted(tracer: Tracer, known: list[MovingState], t: Times, *, rough: bool = False) -> Motion:
        integrated.append(t)
        return integrate_unactuated(tracer, known, t, rough=rough)

    monkeypatch.setattr(assembly, "integrate_unactuated", counted)
    motion = prescribe(make_case(robot, variant="default", mode="home", configuration="horizontal"), dt=0.1)
    assert len(integrated) == 1
    assert np.abs(motion.q[:, 2]).max() < np.deg2rad(14) + 1e-6
    assert np.ptp(motion.q[:, 0]) > 0.1


def test_six_drives_move_independently_of_each_other(tmp_path: Path) -> None:
    """Six slides in the air; the law's rates are those of its positions."""
    slide = '<body><joint name="{0}" type="slide"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
    motor = '<motor name="{0}" joint="{0}"/>'
    bodies, motors = ("".join(text.format(f"s{k}") for k in range(6)) for text in (slide, motor))
    (tmp_path / "six.xml").write_text(f"<mujoco><worldbody>{bodies}</worldbody><actuator>{motors}</actuator></mujoco>")
    robot = Robot(name="six", folder=tmp_path, title="", mjcf="six.xml", source="test")
    motion = prescribe(make_case(robot, variant="default", mode="home", configuration="horizontal"))
    assert np.linalg.cond(motion.qdd / np.linalg.norm(motion.qdd, axis=0)) < 10
    h = 1e-5
    before, after = motion.law(motion.t - h), motion.law(motion.t + h)
    np.testing.assert_allclose((after.q - before.q) / (2 * h), motion.qd, atol=1e-7)
    np.testing.assert_allclose((after.qd - before.qd) / (2 * h), motion.qdd, atol=1e-6)
    assert abs(motion.qd[0]).max() == 0.0


def test_a_tendon_swings_though_its_joints_go_opposite_ways(tmp_path: Path) -> None:
    inertial = '<inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/>'
    hinge = '<body pos="{x} 0 0"><joint name="{n}" axis="0 0 1"/>' + inertial + "</body>"
    bodies = hinge.format(x=0, n="a") + hinge.format(x=1, n="b")
    tendon = '<fixed name="apart"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed>'
    actuators = '<motor name="apart" tendon="apart"/><motor name="a" joint="a"/>'
    text = f"<worldbody>{bodies}</worldbody><tendon>{tendon}</tendon><actuator>{actuators}</actuator>"
    (tmp_path / "apart.xml").write_text(f"<mujoco>{text}</mujoco>")
    robot = Robot(name="apart", folder=tmp_path, title="", mjcf="apart.xml", source="test")
    motion = prescribe(make_case(robot, variant="default", mode="home", configuration="horizontal"))
    assert np.ptp(motion.q[:, 0] - motion.q[:, 1]) > 0.5


@pytest.mark.extended("test_an_automatic_motion_turns_back_before_a_singularity")
def test_a_made_motion_stays_away_from_singularities(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a smaller margin the motion of this robot falls to 0.35 of the conditioning at its start."""
    monkeypatch.setattr("loopcheck.analytic.motion.automatic.WELL_AWAY", 0.5)
    case = case_of(load("3rrr").folder / "3rrr.xml")
    motion = prescribe(case)
    tracer = Tracer(mechanism=case.mechanism, law=motion.law, drives=case.mechanism.drives, where="")
    assert remaining_conditioning(tracer, motion) >= 0.5


def test_a_model_of_uncertain_rank_is_refused_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a biped of the atlas, whose redundant closures fit to 1e-5: 7e-6 counts with its drives, and not without."""
    case = case_of(load("four_bar").folder / "four_bar.xml")
    undriven = Tracer.undriven
    monkeypatch.setattr(Tracer, "undriven", lambda self, q: undriven(self, q) + bool(self.drives))
    with pytest.raises(MechanismError, match=r"rank .* certain, but 0 degrees of freedom .* 1 with the drives"):
        prescribe(case)


def test_the_start_of_a_search_is_tested_once_for_locked_dofs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The test closes the loops for each dof: with hundreds of dofs no attempt of a search would end."""
    text = (CATALOGUE / "four_bar/four_bar.xml").read_text(encoding="utf-8")
    inertial = '<inertial pos=".1 0 0" mass="1" diaginertia=".1 .1 .1"/>'
    free = f'<body name="swing" pos="0 2 0"><joint name="swing"/>{inertial}</body>'
    (tmp_path / "robot.xml").write_text(
        text.replace("<worldbody>", f"<worldbody>{free}").replace('qpos="0.5', 'qpos="0 0.5'), encoding="utf-8"
    )
    tested: list[str] = []
    for module in (automatic, assembly):
        monkeypatch.setattr(module, "want_mobile", lambda *_, name=module.__name__: tested.append(name))
    prescribe(case_of(tmp_path / "robot.xml"))
    assert tested == [automatic.__name__]


@pytest.mark.parametrize(
    ("configuration", "needs", "part"),
    [
        pytest.param("horizontal", 0.9, 1, id="within its range"),
        pytest.param("horizontal", 1.5, 2, id="a little beyond its range"),
        pytest.param("horizontal", 2.0, 4, id="beyond its range"),
        pytest.param("horizontal", 5.0, 8, id="far beyond its range"),
        pytest.param("horizontal", 1e4, 1, id="at any stroke"),
        pytest.param("vertical", 20.0, 1, id="by its weight"),
    ],
)
def test_a_generated_motion_keeps_to_the_ranges_of_its_motors(
    tmp_path: Path, configuration: str, needs: float, part: int
) -> None:
    """A wheel of 2 kg m² with an eccentric mass: without gravity its effort is proportional to the stroke."""

    def moved(attributes: str) -> Motion:
        (tmp_path / "wheel.xml").write_text(
            f"""<mujoco><option gravity="0 {-9.81 * (configuration == "vertical")} 0"/>
            <worldbody><body><joint name="wheel" axis="0 0 1"/>
            <inertial pos="1 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>
            <actuator><motor joint="wheel" gear="4" {attributes}/></actuator></mujoco>"""
        )
        robot = Robot(name="wheel", folder=tmp_path, title="", mjcf="wheel.xml", source="test")
        return prescribe(make_case(robot, variant="default", mode="home", configuration="horizontal"))

    free = moved("")
    limit = np.abs(2 * free.qdd / 4).max() / needs
    kept = moved(f'name="motor" forcerange="{-limit} {limit}"')
    assert np.ptp(kept.q) == pytest.approx(np.ptp(free.q) / part, rel=1e-12)
    assert ("needs" in "".join(kept.notes)) == (part > 1)
    assert part == 1 or f"{needs:.3g} times the forcerange of 'motor', this motion has 1/{part} of it" in kept.notes[-1]


def swinging_wheel(folder: Path, *, gravity: float, low: float, high: float) -> Motion:
    """Generated motion of a wheel of 2 kg m² with an eccentric mass, and a swing of its own on it.

    Args:
        low: Lowest effort of its motor [N m].
        high: Its highest effort [N m].
    """
    (folder / "wheel.xml").write_text(
        f"""<mujoco><option gravity="0 {-gravity} 0"/><worldbody><body><joint name="wheel" axis="0 0 1"/>
        <inertial pos="1 0 0" mass="1" diaginertia="1 1 1"/><body><joint name="swing" axis="0 0 1"/>
        <inertial pos=".1 0 0" mass=".1" diaginertia=".1 .1 .1"/></body></body></worldbody>
        <actuator><motor name="motor" joint="wheel" forcerange="{low} {high}"/></actuator></mujoco>"""
    )
    robot = Robot(name="wheel", folder=folder, title="", mjcf="wheel.xml", source="test")
    return prescribe(make_case(robot, variant="default", mode="home", configuration="horizontal"))


@pytest.mark.parametrize(
    ("gravity", "limits", "part", "note"),
    [
        pytest.param(
            0.0, (-0.4, 0.4), 4, "'motor' at its start, this motion has at most 1/4", id="by its acceleration"
        ),
        pytest.param(0.0, (0, 0.4), 1, "", id="by any braking"),
        pytest.param(0.0, (-0.7, 10), 2, "times the forcerange of 'motor', this motion has 1/2", id="while it moves"),
        pytest.param(9.81, (-0.1, 0.1), 1, "", id="by its weight"),
    ],
)
def test_unactuated_dofs_are_integrated_once_if_a_stroke_exceeds_a_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gravity: float, limits: tuple[float, float], part: int, note: str
) -> None:
    """Rough integrations look for a stroke, and are not the motion; limits are relative to the first effort."""
    ends: list[float] = []

    def integrated(tracer: Tracer, known: list[MovingState], t: Times, *, rough: bool = False) -> Motion:
        ends.append(0.0 if rough else t[-1])
        return integrate_unactuated(tracer, known, t, rough=rough)

    monkeypatch.setattr(assembly, "integrate_unactuated", integrated)
    free = swinging_wheel(tmp_path, gravity=gravity, low=-1e4, high=1e4)
    ends.clear()
    peak = np.abs(2 * free.qdd[0, 0])
    kept = swinging_wheel(tmp_path, gravity=gravity, low=limits[0] * peak, high=limits[1] * peak)
    assert sum(end > 0 for end in ends) == 1
    assert np.ptp(kept.q[:, 0]) == pytest.approx(np.ptp(free.q[:, 0]) / part, rel=1e-12)
    assert note in "".join(kept.notes)
    assert bool(kept.notes) == bool(note)


def test_a_search_begins_with_the_full_stroke_if_its_start_has_no_efforts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def singular(
        tracer: Tracer, guess: JointPositions, t: Times, *, is_mobile: bool = False, rough: bool = False
    ) -> Motion:
        if len(t) == 1:
            raise SingularityError("no mass moves", time=0.0, singular_value=0.0)
        return assembly.assembled(tracer, guess, t, is_mobile=is_mobile, rough=rough)

    monkeypatch.setattr(automatic, "assembled", singular)
    motion = swinging_wheel(tmp_path, gravity=0.0, low=-0.1, high=0.1)
    assert "at its start" not in "".join(motion.notes)


def test_a_motion_is_kept_if_a_shorter_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whose unactuated dofs take too long to integrate."""

    def refuse(*_: object, rough: bool) -> Motion:
        raise MechanismError("its unactuated dofs move too fast")

    monkeypatch.setattr(automatic, "_with_fraction", refuse)
    (tmp_path / "wheel.xml").write_text(
        """<mujoco><worldbody><body><joint name="wheel"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
        </worldbody><actuator><motor joint="wheel" forcerange="-1 1"/></actuator></mujoco>"""
    )
    motion = prescribe(case_of(tmp_path / "wheel.xml"))
    assert np.abs(motion.qdd).max() > 1  # beyond the range
    assert motion.notes == ()
