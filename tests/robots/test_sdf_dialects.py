"""Elements that Drake and newer versions of SDFormat add, against Drake's own reader and formulas by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.losses import unread
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import ConnectClosure, Mechanism

ROD = (
    "<inertial><pose>{0} 0 0 0 0 0</pose><mass>{1}</mass>"
    "<inertia><ixx>{2}</ixx><iyy>{3}</iyy><izz>{3}</izz></inertia></inertial>"
)


def read(tmp_path: Path, body: str, version: str = "1.11") -> Mechanism:
    path = tmp_path / "m.sdf"
    path.write_text(f'<sdf version="{version}"><model name="m">{body}</model></sdf>', encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=path))
    assert unread(mechanism.losses) == ()
    return mechanism


def link(name: str, pose: str = "0 0 0 0 0 0", inertial: str = "", more: str = "") -> str:
    inertial = inertial or ROD.format(0.1, 2, 0.001, 0.02)
    return f'<link name="{name}"><pose>{pose}</pose>{inertial}{more}</link>'


def joint(name: str, ends: str, more: str = "", kind: str = "revolute", axis: str = "0 1 0") -> str:
    parent, child = ends.split()
    xyz = f"<axis><xyz>{axis}</xyz>{more if more.startswith('<mimic') else ''}</axis>"
    other = "" if more.startswith("<mimic") else more
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{other}{xyz}</joint>'


def drake_plant(tmp_path: Path) -> Any:
    parsing = pytest.importorskip("pydrake.multibody.parsing")
    plants = pytest.importorskip("pydrake.multibody.plant")
    plant = plants.MultibodyPlant(1e-3)
    parsing.Parser(plant).AddModels(str(tmp_path / "m.sdf"))
    plant.Finalize()
    return plant


def reduced_inertia(mechanism: Mechanism, q: list[float]) -> float:
    """Inertia of the only motion that unit rate of the first joint leaves, from the constraints at a pose [kg m²]."""
    state = State.at_rest(mechanism, np.array([q]))
    M, Phi = inertia_matrix(state)[0], state.Phi[0]
    motion = np.linalg.svd(Phi)[2][-1]
    motion = motion / motion[0]
    return float(motion @ M @ motion)


def test_reflected_inertia_is_that_of_drake(tmp_path: Path) -> None:
    rotor = "<drake:rotor_inertia>0.001</drake:rotor_inertia><drake:gear_ratio>30</drake:gear_ratio>"
    arm = link("a", "0 0 1 0 0 0") + link("b", "0.5 0 1 0 0 0")
    mechanism = read(tmp_path, arm + joint("x", "world a", rotor) + joint("y", "a b"))
    assert [one.armature for one in mechanism.joints] == pytest.approx([0.9, 0.0], abs=1e-15)
    plant = drake_plant(tmp_path)
    context = plant.CreateDefaultContext()
    q = np.array([0.3, -0.7])
    plant.SetPositions(context, q)
    ours = inertia_matrix(State.at_rest(mechanism, q[None]))[0]
    assert ours == pytest.approx(plant.CalcMassMatrix(context), abs=1e-14)


def test_a_rotor_without_a_gear_ratio_has_the_ratio_one(tmp_path: Path) -> None:
    rotor = "<drake:rotor_inertia>0.25</drake:rotor_inertia>"
    (hinge,) = read(tmp_path, link("a") + joint("x", "world a", rotor)).joints
    assert hinge.armature == 0.25


def test_a_ball_constraint_closes_the_loop(tmp_path: Path) -> None:
    """Two bars of 0.5 m, upright and lying: the coupler's far end meets a bar of 0.5 m that stands 0.5 m away."""
    links = link("crank", "0 0 0 0 -1.5707963267948966 0") + link("coupler", "0 0 0.5 0 0 0")
    rocker = f'<link name="rocker"><pose>0.5 0 0 0 -1.5707963267948966 0</pose>{ROD.format(0.1, 2, 0.001, 0.02)}</link>'
    joints = joint("a", "world crank") + joint("b", "crank coupler") + joint("c", "world rocker")
    constraint = (
        "<drake:ball_constraint><drake:ball_constraint_body_A>coupler</drake:ball_constraint_body_A>"
        "<drake:ball_constraint_body_B>rocker</drake:ball_constraint_body_B>"
        "<drake:ball_constraint_p_AP>0.5 0 0</drake:ball_constraint_p_AP>"
        "<drake:ball_constraint_p_BQ>0.5 0 0</drake:ball_constraint_p_BQ></drake:ball_constraint>"
    )
    mechanism = read(tmp_path, links + rocker + joints + constraint)
    (closure,) = mechanism.closures
    assert isinstance(closure, ConnectClosure)
    state = State.at_rest(mechanism, mechanism.rest_position[None])
    assert np.abs(state.gap).max() < 1e-15
    # a parallelogram: crank and rocker turn alike, the coupler moves along a circle of 0.5 m without turning
    bar = 0.02 + 2 * 0.1**2
    assert reduced_inertia(mechanism, [*mechanism.rest_position]) == pytest.approx(2 * bar + 2 * 0.5**2, rel=1e-12)
    plant = drake_plant(tmp_path)
    assert plant.num_constraints() == 1


def test_a_screw_moves_by_its_pitch_as_in_drake(tmp_path: Path) -> None:
    """The nut of 2 kg turns by 2 pi per 0.03 m."""
    pitch = "<screw_thread_pitch>0.03</screw_thread_pitch>"
    mechanism = read(tmp_path, link("nut", "0 0 0.3 0 0 0") + joint("lead", "world nut", pitch, "screw", "0 0 1"))
    assert sorted((one.name, one.kind) for one in mechanism.joints) == [("lead", "hinge"), ("lead, slide", "slide")]
    (closure,) = mechanism.coordinate_closures
    assert (closure.follower.name, closure.leader.name) == ("lead, slide", "lead")  # type: ignore[union-attr]
    slope = 0.03 / (2 * np.pi)
    assert closure.coefficients == pytest.approx([0, slope, 0, 0, 0], abs=1e-18)
    turn = [one.name for one in mechanism.joints].index("lead")
    S = np.array([slope, 1.0] if turn else [1.0, slope])
    plant = drake_plant(tmp_path)
    context = plant.CreateDefaultContext()
    for angle in (0.0, 0.4):
        plant.SetPositions(context, [angle])
        q = S * angle
        M = inertia_matrix(State.at_rest(mechanism, q[None]))[0]
        assert pytest.approx(float(plant.CalcMassMatrix(context)[0, 0]), rel=1e-13) == S @ M @ S
        above = plant.GetBodyByName("nut").EvalPoseInWorld(context).translation()
        assert above[2] == pytest.approx(0.3 + slope * angle)


def test_the_old_pitch_is_minus_two_pi_over_the_new(tmp_path: Path) -> None:
    """gz-sim's demo of joint types: `thread_pitch` -10 and `screw_thread_pitch` 0.6283 are the same screw."""
    nut = link("nut", "0 0 0.3 0 0 0")
    old = read(tmp_path, nut + joint("s", "world nut", "<thread_pitch>-10</thread_pitch>", "screw"), "1.9")
    assert old.coordinate_closures[0].coefficients[1] == pytest.approx(0.1)


@pytest.mark.parametrize("dialect", ["standard", "drake"])
def test_a_joint_follows_one_that_follows_another(dialect: str, tmp_path: Path) -> None:
    """By hand: b = 0.1 + 2 a, c = -0.3 + 0.5 b = -0.25 + a."""
    standard = '<mimic joint="{}"><multiplier>{}</multiplier><offset>{}</offset><reference>0</reference></mimic>'
    drake = '<drake:mimic joint="{}" multiplier="{}" offset="{}"/>'
    form = standard if dialect == "standard" else drake
    links = "".join(link(name, f"{k} 0 0 0 0 0") for k, name in enumerate("abc"))
    first, second = form.format("ja", 2, 0.1), form.format("jb", 0.5, -0.3)
    joints = joint("ja", "world a") + joint("jb", "world b", first) + joint("jc", "world c", second)
    mechanism = read(tmp_path, links + joints)
    names = [one.name for one in mechanism.joints]
    for a in (-0.4, 0.0, 0.9):
        q = np.array([{"ja": a, "jb": 0.1 + 2 * a, "jc": -0.25 + a}[name] for name in names])
        assert np.abs(State.at_rest(mechanism, q[None]).gap).max() < 1e-15
    if dialect == "drake":
        plant = drake_plant(tmp_path)
        assert plant.num_constraints() == 2


BAR = '<frame name="{0}" attached_to="{1}"><pose relative_to="{1}">{2} 0 0 0 0 0</pose></frame>'


def test_joints_with_two_frames_do_not_depend_on_the_poses_of_the_links(tmp_path: Path) -> None:
    """A parallelogram of bars of 0.5 m, drawn anywhere; the same inertia as in the test of the ball constraint."""
    links = link("crank", "3 0 1 0 0 0") + link("coupler", "7 0 0 0 0 0") + link("rocker", "0 0 9 0 0 0")
    frames = "".join(
        BAR.format(name, of, at)
        for name, of, at in (
            *(("Ac", "crank", 0.5), ("Cr", "coupler", 0.5), ("Rc", "rocker", 0.5)),
            *(("Go", "ground", 0.0), ("Gr", "ground", 0.5)),
        )
    )
    ground = link("ground") + '<joint name="g" type="fixed"><parent>world</parent><child>ground</child></joint>'

    def pin(name: str, ends: str, first: str, second: str) -> str:
        two = f"<drake:parent_frame>{first}</drake:parent_frame><drake:child_frame>{second}</drake:child_frame>"
        return joint(name, ends, two)

    joints = (
        pin("a", "ground crank", "Go", "crank")
        + pin("b", "crank coupler", "Ac", "coupler")
        + pin("c", "ground rocker", "Gr", "rocker")
        + pin("d", "coupler rocker", "Cr", "Rc")
    )
    mechanism = read(tmp_path, ground + links + frames + joints)
    # crank and rocker at the same angle, the coupler level: closed by geometry
    names = [one.name for one in mechanism.joints]
    for angle in (0.3, -1.1):
        closed = {"a": angle, "b": -angle, "c": angle}
        q = np.array([closed[name] for name in names])
        assert np.abs(State.at_rest(mechanism, q[None]).gap).max() < 1e-15
    bar = 0.02 + 2 * 0.1**2
    order = [closed[name] for name in names]
    assert names[0] == "a"
    assert reduced_inertia(mechanism, order) == pytest.approx(2 * bar + 2 * 0.5**2, rel=1e-12)


SOLIDS = {
    "<box><size>0.2 0.3 0.4</size></box>": (0.024, np.array([0.25, 0.2, 0.13]) / 12),
    "<sphere><radius>0.1</radius></sphere>": (4 / 3 * np.pi * 1e-3, np.full(3, 0.4 * 0.01)),
    "<cylinder><radius>0.1</radius><length>0.6</length></cylinder>": (
        0.006 * np.pi,
        np.array([0.01 / 4 + 0.36 / 12, 0.01 / 4 + 0.36 / 12, 0.01 / 2]),
    ),
    "<ellipsoid><radii>0.1 0.2 0.3</radii></ellipsoid>": (
        4 / 3 * np.pi * 0.006,
        np.array([0.13, 0.1, 0.05]) / 5,
    ),
}
"""Volume [m³] and moments per mass [m²] of each solid."""


@pytest.mark.parametrize("shape", SOLIDS)
@pytest.mark.parametrize("density", [None, 250.0])
def test_inertias_of_solids_are_computed(shape: str, density: float | None, tmp_path: Path) -> None:
    volume, moments = SOLIDS[shape]
    stated = f"<density>{density}</density>" if density else ""
    collision = f'<collision name="c"><pose>0.1 0.2 0.3 0 0 0</pose>{stated}<geometry>{shape}</geometry></collision>'
    body = link("a", inertial='<inertial auto="true"/>', more=collision)
    (solid,) = read(tmp_path, body + joint("x", "world a")).bodies
    assert solid.mass == pytest.approx((density or 1000.0) * volume, rel=1e-12)
    assert solid.center == pytest.approx([0.1, 0.2, 0.3])
    assert solid.inertia == pytest.approx(np.diag(solid.mass * moments), rel=1e-9, abs=1e-15)


def test_two_solids_add_up_and_a_mass_scales_them_from_1_12_on(tmp_path: Path) -> None:
    spheres = "".join(
        f'<collision name="c{x}"><pose>{x} 0 0 0 0 0</pose><geometry><sphere><radius>0.1</radius></sphere></geometry>'
        "</collision>"
        for x in (-0.5, 0.5)
    )
    one = 4000 / 3 * np.pi * 1e-3
    for version, mass in (("1.11", 2 * one), ("1.12", 7.0)):
        body = link("a", inertial='<inertial auto="true"><mass>7</mass></inertial>', more=spheres)
        (solid,) = read(tmp_path, body + joint("x", "world a"), version).bodies
        assert solid.mass == pytest.approx(mass)
        assert np.diag(solid.inertia) == pytest.approx(mass * np.array([0.004, 0.254, 0.254]), rel=1e-9)


def test_a_rod_without_a_moment_about_its_axis_is_read(tmp_path: Path) -> None:
    """It acts only where a joint turns the rod about its axis: then the line names link and joint."""
    rod = link("a", inertial=ROD.format(0.2, 1, 0, 0.02))
    mechanism = read(tmp_path, rod + joint("x", "world a"))
    M = inertia_matrix(State.at_rest(mechanism, np.zeros((1, 1))))[0]
    assert pytest.approx(np.array([[0.02 + 0.04]]), rel=1e-13) == M
    for kind, axis in (("revolute", "1 0 0"), ("ball", "0 1 0")):
        with pytest.raises(MechanismError, match="inertia of link 'a' about the axis of joint 'x' must be above 0"):
            read(tmp_path, rod + joint("x", "world a", kind=kind, axis=axis))
    turned = read(tmp_path, rod + link("b", "0 1 0 0 0 0") + joint("x", "world a", axis="1 0 0") + joint("y", "a b"))
    assert inertia_matrix(State.at_rest(turned, np.zeros((1, 2))))[0, 0, 0] > 1  # what hangs on it has an inertia


@pytest.mark.parametrize(("effort", "limit"), [("0", []), ("-1", []), ("4", [4.0])])
def test_an_effort_of_zero_or_less_is_no_limit(effort: str, limit: list[float], tmp_path: Path) -> None:
    body = link("a") + joint("x", "world a").replace("</axis>", f"<limit><effort>{effort}</effort></limit></axis>")
    drive = '<plugin name="gz::sim::systems::ApplyJointForce" filename="x"><joint_name>x</joint_name></plugin>'
    (motor,) = read(tmp_path, body + drive).actuators
    assert [one.high for one in motor.limits] == limit


@pytest.mark.parametrize("version", [f"1.{k}" for k in range(3, 13)])
def test_every_version_is_read(version: str, tmp_path: Path) -> None:
    """An axis is stated in the model up to 1.4, in the joint from 1.5 on, unless an element says otherwise."""
    turned = joint("x", "world a", "<pose>0 0 0 0 0 1.5707963267948966</pose>", axis="1 0 0")
    mechanism = read(tmp_path, link("a", "0 0 1 0 0 0") + turned, version)
    in_model = tuple(map(int, version.split("."))) < (1, 5)
    expected = [1.0, 0.0, 0.0] if in_model else [0.0, 1.0, 0.0]
    R = mechanism.bodies[0].rotation
    assert R @ mechanism.joints[0].axis == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("inertial", "message"),
    [
        (ROD.format(0, 1, 0.5, 0.1), r"link 'a': <inertial/inertia> must have no principal moment above the sum"),
        (
            ROD.format(0, 1, -0.1, 0.1),
            r"link 'a': <inertial/inertia> must have principal moments that are not",
        ),
        (ROD.format(0, 0, 0, 0), r"link 'a' must have a mass and an inertia, because it floats, got 0 kg"),
    ],
)
def test_inertias_that_no_body_has_are_refused_by_their_link(inertial: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(MechanismError, match=message):
        read(tmp_path, link("a", inertial=inertial) + link("b", "0 1 0 0 0 0") + joint("x", "a b"))
