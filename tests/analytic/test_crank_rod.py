"""Transmissions by cranks and rods: closed form against the closed mechanism, differences, and formulas by hand."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from loopcheck.analytic.transmission.crank_rod import CrankRod, Joint, Leg
from loopcheck.analytic.transmission.crank_rod_in_c import c_header
from loopcheck.analytic.transmission.joint_space import joint_efforts, moved
from loopcheck.analytic.transmission.recognition import crank_rod_of
from loopcheck.analytic.transmission.terms import joint_terms, motor_efforts
from loopcheck.analytic.transmission.twin import Twin, make_twin, sound_poses
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from tests.analytic.test_transmission import crank_angle

# Three motors turn a wrist: x, y, z axes that meet, rods to the outermost link.
WRIST = """<mujoco><compiler angle="radian"/><option gravity="1 2 -9"/><worldbody>
<body name="a"><joint name="x" axis="1 0 0"/><inertial mass=".01" pos="0 0 0" diaginertia="1e-5 1e-5 1e-5"/>
<body name="b"><joint name="y" axis="0 1 0"/><inertial mass=".01" pos="0 0 0" diaginertia="1e-5 1e-5 1e-5"/>
<body name="c"><joint name="z" axis="0 0 1"/><inertial mass=".3" pos="0 0 .05" diaginertia="1e-3 1e-3 1e-3"/>
<site name="e0" pos=".05 0 0"/><site name="e1" pos="0 0 .05"/><site name="e2" pos="0 .05 0"/></body></body></body>
{legs}</worldbody><equality>{closures}</equality><actuator>{motors}</actuator></mujoco>"""
LEG = """<body name="k{k}" pos="{pos}"><joint name="m{k}" axis="{axis}" armature=".002" damping=".01"/>
<inertial mass=".02" pos=".003 .002 .001" diaginertia="1e-5 1e-5 1e-5"/>
<body name="r{k}" pos="{crank}"><joint name="s{k}" type="ball"/><inertial mass=".05" pos="{half}"
diaginertia="1e-5 1e-5 1e-5"/><site name="t{k}" pos="{rod}"/></body></body>"""


MOTORS = [*(("const double", name) for name in "abcd"), *(("double", name) for name in "efghi")]
"""Parameters of the functions of the header."""


class Seen(NamedTuple):
    twin: Twin
    transmission: CrankRod
    x: Array
    xd: Array
    xdd: Array
    q: Array


def wrist(folder: Path) -> Path:
    """A spatial mechanism with three joints and three motors, one of them a slide."""
    ends = [(0.05, 0, 0), (0, 0, 0.05), (0, 0.05, 0)]
    motors = [((0.02, 0, -0.2), (0, 1, 0), (0.06, 0, 0)), ((0.01, 0.2, -0.01), (1, 0, 0), (0, 0, 0.05))]
    motors.append(((0.2, 0.06, 0.02), (1, 0, 0), (0, 0, 0)))
    legs = ""
    for k, ((pos, axis, crank), end) in enumerate(zip(motors, ends, strict=True)):
        rod = np.subtract(end, np.add(pos, crank))
        words = {name: " ".join(map(str, value)) for name, value in (("pos", pos), ("axis", axis), ("crank", crank))}
        words |= {name: " ".join(map(repr, map(float, value))) for name, value in (("rod", rod), ("half", rod / 2))}
        text = LEG.format(k=k, **words)
        legs += text.replace(f'name="m{k}"', f'name="m{k}" type="slide"') if k == 2 else text
    path = folder / "wrist.xml"
    closures = "".join(f'<connect site1="t{k}" site2="e{k}"/>' for k in range(3))
    drives = "".join(f'<motor name="d{k}" joint="m{k}"/>' for k in range(3))
    path.write_text(WRIST.format(legs=legs, closures=closures, motors=drives))
    return path


def seen(closed: Path, joints: list[str], far: float) -> Seen:
    """A mechanism seen at its joints, and random states."""
    mechanism = read_mechanism(ModelFile(path=closed))
    guess = mechanism.rest_position
    twin = make_twin(mechanism, guess, mechanism, guess, {name: name for name in joints})
    generator = np.random.default_rng(3)
    x = generator.uniform(-far, far, (40, len(joints)))
    q, sound = sound_poses(twin.closed, x)
    assert sound.all()
    xd, xdd = generator.normal(0, 3, (2, *x.shape))
    return Seen(twin, crank_rod_of(twin.closed, twin.motors), x, xd, xdd, q)


@pytest.fixture(scope="module", params=["knee", "ankle", "wrist"])
def state(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    if request.param == "wrist":
        return seen(wrist(tmp_path_factory.mktemp("wrist")), ["x", "y", "z"], 0.2)
    names = {"knee": ["knee"], "ankle": ["pitch", "roll"]}[request.param]
    return seen(Path(f"robots/legs/{request.param}.xml"), names, 0.24)


def test_positions_and_transmission_are_those_of_the_closed_mechanism(state: Seen) -> None:
    mechanism, motors = state.twin.closed.mechanism, list(state.twin.motors)
    own = state.transmission.motor_state(state.x)
    assert own.reached.all()
    y = mechanism.values_of(mechanism.drives, state.q)[:, motors]
    assert own.y == pytest.approx(y, abs=1e-11)  # the loops of q are closed to 1e-12
    T = joint_terms(state.twin.closed, state.q).transmission[:, motors]
    assert own.transmission == pytest.approx(T, abs=1e-11 * np.abs(T).max())
    qd, qdd = moved(state.twin.closed, state.q, state.xd, state.xdd)
    driven = [mechanism.dof_slices[actuator.coordinate.joints[0]].start for actuator in mechanism.actuators]
    moving = state.transmission.motor_state(state.x, state.xd, state.xdd)
    assert moving.yd == pytest.approx(qd[:, driven], abs=1e-10 * np.abs(qd).max())
    assert moving.ydd == pytest.approx(qdd[:, driven], abs=1e-10 * np.abs(qdd).max())


def test_efforts_with_rotors_cranks_and_rods_are_those_of_the_closed_mechanism(state: Seen) -> None:
    # masses of the serial model are left at 1e-8; rods of the ankle are not thin: 4e-6 beside 5e-4 kg m²
    limit = 1e-8 if len(state.transmission.joints) == 1 else 1e-5
    assert effort_errors(state, state.transmission).max() < limit
    light = replace(state.transmission, legs=tuple(replace(leg, rod=(0.0,) * 3) for leg in state.transmission.legs))
    assert effort_errors(state, light).max() > 1e-3


@pytest.mark.parametrize("second", ["", '<joint name="idle" axis="1 0 0"/>'])
@pytest.mark.parametrize(("rod", "axis"), [("-0.02 0.01 -.1", "0 1 0"), (".03 -0.01 -.25", "0 -1 0")])
def test_a_rod_in_a_plane_may_have_its_mass_beside_its_line(rod: str, axis: str, second: str, tmp_path: Path) -> None:
    text = Path("robots/legs/knee.xml").read_text()
    hinge = r'(name="crank_rod" axis=)"0 1 0"/>(\s*<inertial [^>]*pos=)"[^"]*"'
    crooked = re.sub(hinge, rf'\1"{axis}"/>{second}\2"{rod}"', text)
    assert crooked != text
    (tmp_path / "knee.xml").write_text(crooked)
    state = seen(tmp_path / "knee.xml", ["knee"], 0.24)
    assert effort_errors(state, state.transmission).max() < 1e-8
    straight = replace(state.transmission, legs=(replace(state.transmission.legs[0], skew=(0.0, 0.0, 0.0)),))
    assert effort_errors(state, straight).max() > 1e-3


def effort_errors(state: Seen, own: CrankRod) -> Array:
    """Errors of the motor efforts over their peaks."""
    motion = (state.q, *moved(state.twin.closed, state.q, state.xd, state.xdd))
    T = joint_terms(state.twin.closed, state.q).transmission[:, list(state.twin.motors)]
    wanted = motor_efforts(T, joint_efforts(state.twin.closed, *motion))
    efforts = joint_efforts(chain_alone(state.twin), *motion)
    error = own.motor_state(state.x, state.xd, state.xdd, efforts).efforts - wanted
    return np.asarray(np.abs(error).max(axis=0) / np.abs(wanted).max(axis=0))


def chain_alone(twin: Twin) -> Any:
    """The closed mechanism with masses and dampers of its chain, and next to nothing elsewhere (rods may spin)."""
    mechanism, chain = twin.closed.mechanism, set(twin.closed.joints)
    kept = {mechanism.joints[j].body for j in chain}
    bodies = [
        body if b in kept else replace(body, mass=1e-8 * body.mass, inertia=1e-8 * body.inertia)
        for b, body in enumerate(mechanism.bodies)
    ]
    joints = [
        joint if j in chain else replace(joint, armature=0.0, damping=0.0) for j, joint in enumerate(mechanism.joints)
    ]
    return replace(twin.closed, mechanism=replace(mechanism, bodies=tuple(bodies), joints=tuple(joints)))


def test_reflected_inertia_is_that_of_rotors_cranks_and_rods(state: Seen) -> None:
    mass = [joint_terms(space, state.q).mass for space in (state.twin.closed, chain_alone(state.twin))]
    own = state.transmission.reflected_inertia(state.x)
    assert own == pytest.approx(mass[0] - mass[1], abs=2e-4 * np.abs(mass[0] - mass[1]).max())


def test_motors_lead_back_to_the_joints(state: Seen) -> None:
    efforts = np.random.default_rng(0).normal(0, 1, state.x.shape)
    motors = state.transmission.motor_state(state.x, state.xd, state.xdd, efforts)
    joints = state.transmission.joint_state(motors.y, motors.yd, motors.ydd, motors.efforts, guess=state.x + 0.05)
    assert joints.reached.all()
    for found, given in (
        (joints.x, state.x),
        (joints.xd, state.xd),
        (joints.xdd, state.xdd),
        (joints.efforts, efforts),
    ):
        assert found == pytest.approx(given, abs=1e-10 * np.abs(given).max())


def test_a_four_bar_is_that_of_planar_trigonometry() -> None:
    knee = seen(Path("robots/legs/knee.xml"), ["knee"], 0.4)
    assert knee.transmission.motor_state(knee.x).y[:, 0] == pytest.approx(crank_angle(knee.x[:, 0]), abs=1e-13)


def test_a_slide_with_a_rod_is_a_slider_crank() -> None:
    lever, rod = 0.1, 0.3
    joint = Joint(name="lever", axis=(0.0, 0.0, 1.0))
    leg = Leg(
        motor="slide",
        axis=(1.0, 0.0, 0.0),
        pin=(-rod, 0.0, 0.0),
        end=(0.0, lever, 0.0),
        length=rod,
        elbow=1,
        link=0,
        slides=True,
    )
    x = np.linspace(-1, 1, 9)[:, None]
    own = CrankRod(joints=(joint,), legs=(leg,)).motor_state(x)
    s, c = np.sin(x), np.cos(x)
    leftover = np.sqrt(rod**2 - (lever * c) ** 2)
    assert own.y == pytest.approx(rod - lever * s - leftover, abs=1e-15)
    assert own.transmission[..., 0] == pytest.approx(-lever * c - lever**2 * c * s / leftover, abs=1e-15)
    assert own.leverage == pytest.approx(leftover / rod)


def test_where_a_rod_does_not_reach_there_is_no_number(state: Seen) -> None:
    far = np.full((1, state.x.shape[1]), 0.2)
    short = replace(
        state.transmission, legs=(replace(state.transmission.legs[0], length=1e-3), *state.transmission.legs[1:])
    )
    own = short.motor_state(np.concatenate([far, far]))
    assert not own.reached.any()
    for values in (own.y, own.yd, own.ydd, own.efforts, own.transmission):
        assert np.isnan(values).all()
    away = state.transmission.joint_state(np.full((1, state.x.shape[1]), 3.1))
    assert not away.reached.any()
    assert np.isnan(away.x).all()
    assert np.isnan(away.efforts).all()


def test_an_unfinished_search_gives_no_number(state: Seen) -> None:
    """Of 2,000 searches from far away some end elsewhere, and some near the joints but not at them."""
    y = np.repeat(state.transmission.motor_state(state.x).y, 50, axis=0)
    joints = state.transmission.joint_state(y, guess=np.random.default_rng(0).uniform(-2, 2, y.shape))
    assert 0 < joints.reached.sum() < len(y)
    assert (np.isnan(joints.x).any(axis=1) == ~joints.reached).all()
    assert state.transmission.motor_state(joints.x[joints.reached]).y == pytest.approx(y[joints.reached], abs=1e-7)


def test_other_mechanisms_are_refused_with_the_reason(tmp_path: Path) -> None:
    path = wrist(tmp_path)
    text = path.read_text()
    path.write_text(text.replace('name="d0" joint="m0"', 'name="d0" joint="m0" gear="2"'))
    with pytest.raises(MechanismError, match=r"gear 1.*d0"):
        seen(path, ["x", "y", "z"], 0.1)
    path.write_text(text.replace('joint="m0"', 'joint="x"'))
    with pytest.raises(MechanismError, match="one rod between the crank of 'd0' and the chain, got 0"):
        seen(path, ["x", "y", "z"], 0.1)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param("knee", marks=pytest.mark.evidence("JAX compiles the derivatives", seconds=2)),
        *(
            pytest.param(name, marks=pytest.mark.extended("test_jax_differentiates_the_equations[knee]"))
            for name in ("ankle", "wrist")
        ),
    ],
    indirect=True,
)
def test_jax_differentiates_the_equations(state: Seen) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        check_slopes(state, jax)


def check_slopes(state: Seen, jax: Any) -> None:
    """Derivatives of motors by joints against differences, of joints by motors against the transmission."""
    own, x, h = state.transmission, state.x[0], 1e-6

    def motors(x: Any) -> Any:
        found = own.motor_state(x, state.xd[0], state.xdd[0], xp=jax.numpy)
        return jax.numpy.concatenate([found.y, found.yd, found.efforts])

    slopes = np.asarray(jax.jacobian(motors)(x))
    assert slopes == pytest.approx(differences(motors, x, h), rel=1e-6, abs=1e-6 * np.abs(slopes).max())
    y = own.motor_state(x).y
    back = np.asarray(jax.jacobian(lambda y: own.joint_state(y, guess=x, xp=jax.numpy).x)(y))
    assert back == pytest.approx(np.linalg.inv(own.motor_state(x).transmission), rel=1e-9, abs=1e-12)


def differences(values: Callable[[Any], Any], x: Array, h: float) -> Array:
    return np.stack([np.asarray(values(x + h * e) - values(x - h * e)) / (2 * h) for e in np.eye(len(x))], axis=1)


def test_corners_of_efforts_ask_each_motor_for_its_limit(state: Seen) -> None:
    own, x = state.transmission, state.x[:5]
    limits = np.arange(3.0, 3.0 + len(own.legs))
    corners = own.effort_corners(x, limits.tolist())
    assert corners.shape == (5, 2 ** len(limits), len(limits))
    motors = np.linalg.solve(own.motor_state(x).transmission.swapaxes(1, 2)[:, None], corners[..., None])[..., 0]
    assert np.abs(motors) == pytest.approx(np.broadcast_to(limits, motors.shape), rel=1e-9)
    turns = (np.diff(np.sign(motors), axis=1) != 0).sum(axis=2)
    assert (turns == 1).all(), "neighbours share an edge"


def test_single_precision_keeps_five_digits(state: Seen) -> None:
    exact = state.transmission.motor_state(state.x, state.xd, state.xdd)
    single = state.transmission.motor_state(*(part.astype(np.float32) for part in (state.x, state.xd, state.xdd)))
    for name in ("y", "yd", "ydd", "transmission"):
        wanted, got = getattr(exact, name), getattr(single, name)
        assert got.dtype == np.float32
        assert np.abs(got - wanted).max() < 1e-5 * np.abs(wanted).max(), name


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_header_computes_the_same_without_warnings(state: Seen, tmp_path: Path) -> None:
    (tmp_path / "transmission.h").write_text(c_header(state.transmission, state.x[0]))
    (tmp_path / "all.c").write_text(
        '#include "transmission.h"\n'
        f"int motors({', '.join(f'{kind} *{name}' for kind, name in MOTORS)})\n"
        f"{{ return transmission_motors({', '.join(name for _, name in MOTORS)}); }}\n"
        f"int joints({', '.join(f'{kind} *{name}' for kind, name in MOTORS[:-1])})\n"
        f"{{ return transmission_joints({', '.join(name for _, name in MOTORS[:-1])}); }}\n"
    )
    program = ["cc", "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", "all.so", "all.c"]
    subprocess.run([*program, "-lm"], cwd=tmp_path, check=True, capture_output=True)
    library, n = ctypes.CDLL(str(tmp_path / "all.so")), state.x.shape[1]

    def call(name: str, *arrays: Array) -> int:
        return int(getattr(library, name)(*(ctypes.c_void_p(array.ctypes.data) for array in arrays)))

    efforts = np.random.default_rng(0).normal(0, 1, state.x.shape)
    exact = state.transmission.motor_state(state.x, state.xd, state.xdd, efforts)
    for k in range(len(state.x)):
        given = [np.ascontiguousarray(part[k]) for part in (state.x, state.xd, state.xdd, efforts)]
        found, T = list(np.zeros((4, n))), np.zeros((n, n))
        assert call("motors", *given, *found, T) == 0
        for value, name in zip([*found, T], ("y", "yd", "ydd", "efforts", "transmission"), strict=True):
            wanted = getattr(exact, name)[k]
            assert value == pytest.approx(wanted, rel=1e-12, abs=1e-12 * np.abs(wanted).max()), name
        back = [given[0] + 0.05, *np.zeros((3, n))]
        assert call("joints", *found, *back) == 0
        for value, wanted in zip(back, given, strict=True):
            assert value == pytest.approx(wanted, rel=1e-9, abs=1e-10)
    nowhere = np.full(n, 3.1)
    before = [part.copy() for part in back]
    assert call("joints", nowhere, *found[1:], *back) != 0
    assert all((one == other).all() for one, other in zip(back, before, strict=True))
