"""Wrenches in connections: two ways against each other, against closed forms by hand, and their uniqueness."""

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from loopcheck.analytic.dynamics.maximal_wrenches import MaximalWrenches
from loopcheck.analytic.dynamics.noc import needed_efforts, noc_model
from loopcheck.analytic.dynamics.reactions import Reactions, reactions
from loopcheck.analytic.dynamics.recursive_wrenches import recursive_wrenches
from loopcheck.analytic.dynamics.wrenches import ROUND_OFF, Wrenches, disagreement
from loopcheck.analytic.kinematics.redundancy import moving_part
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import rotation_about
from loopcheck.analytic.motion.configurations import normal
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.connections import Connection, connections
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Body, Mechanism, Wrench
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from tests.analytic.test_paths import FINGERS
from tests.conftest import MODELS, CaseMaker, Prescribed
from tests.cpu_time import extended_but

G, Z = 9.81, np.array([0.0, 0.0, 1.0])
IN_PLANE = [2, 3, 4]
"""Components that a planar loop determines: the moment along its pins, and the forces across them."""
NULL = {
    "four_bar": 1, "slider_crank": 0, "bricard": 2, "andrews": 3, "puma560": 0, "n_four_bar_2": 2,
    "2pur2rpu": 1, "2t1r": 1, "3prr": 2, "3rrr": 2, "6spu": 0, "6x6r": 0,
}  # fmt: skip
"""Dimension of the null space of the equations of all bodies: that of the transposed closure Jacobian."""
SMALL = ["four_bar", "slider_crank", "bricard", "andrews"]


@pytest.mark.parametrize(
    "name", extended_but(SMALL, NULL, "test_both_ways_agree_on_the_catalogue[four_bar]")
)  # fmt: skip
def test_both_ways_agree_on_the_catalogue(name: str) -> None:
    robot = load(name)
    configurations = ("given",) if name == "andrews" else ("horizontal", "vertical")
    for configuration in configurations:
        case = representative_case(robot, configuration=configuration)
        found = reactions(case, prescribe(case), normal(case.mechanism), samples=5)
        assert set(found.of_file.null) == {NULL[name]}
        assert _largest_error(case, found) < ROUND_OFF
        assert np.abs(found.recursive.wrench).max() > 0.01 * max(found.recursive.terms)


def test_both_ways_agree_on_small_mechanisms(zoo_case: Case, zoo_motion: Motion) -> None:
    """Welds, gears, paths, springs between points, ball and free joints, rotors."""
    found = reactions(zoo_case, zoo_motion, normal(zoo_case.mechanism), samples=3)
    assert _largest_error(zoo_case, found) < ROUND_OFF


def test_both_ways_agree_on_dampers_between_points(model_case: CaseMaker) -> None:
    case = model_case(MODELS / "strutted_four_bar.xml", configuration="vertical", amplitude=0.1)
    springs = tuple(replace(spring, damping=40.0) for spring in case.mechanism.point_springs)
    damped = replace(case, mechanism=replace(case.mechanism, point_springs=springs))
    motion = prescribe(case)
    soft, stiff = (reactions(each, motion, normal(each.mechanism), samples=4) for each in (case, damped))
    assert _largest_error(damped, stiff) < ROUND_OFF
    assert np.abs(stiff.recursive.wrench - soft.recursive.wrench).max() > 0.01 * stiff.recursive.terms[1]


@pytest.mark.parametrize("name", ["a block with pulleys", "rotor and damper of a motor", "a spring at constant length"])
def test_both_ways_agree_on_ropes(name: str, prescribed: Prescribed) -> None:
    """Ropes pull on bodies, over pulleys with several strands; their drives, rotors and springs move no body."""
    case, motion = prescribed(FINGERS[name])
    assert case.mechanism.path_closures
    assert _largest_error(case, reactions(case, motion, normal(case.mechanism), samples=4)) < ROUND_OFF


def test_bodies_that_nothing_holds_have_no_wrenches(tmp_path: Path) -> None:
    mechanism = _read(
        tmp_path / "free.xml", '<body><freejoint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body>'
    )
    falling = np.array([0.0, -G, 0.0, 0.0, 0.0, 0.0])
    found = _solved(mechanism, np.array([0.0, 0, 0, 1, 0, 0, 0]), np.zeros(6), falling)
    assert found.recursive.wrench.shape == found.maximal.wrench.shape == (1, 0, 6)


def test_terms_are_sums_of_sizes_that_may_cancel(tmp_path: Path) -> None:
    """A balanced beam at rest: no moment at its pin, but two weights at arms of half a metre."""
    inertial = '<inertial mass="1" pos="{} 0 0" diaginertia="1 1 1"/>'
    mechanism = _read(
        tmp_path / "beam.xml",
        f'<body><joint name="pin"/>{inertial.format(0.5)}<body name="other">{inertial.format(-0.5)}</body></body>',
        '<actuator><motor joint="pin"/></actuator>',
    )
    found = _solved(mechanism, np.zeros(1), np.zeros(1), np.zeros(1))
    np.testing.assert_allclose(found.of("pin"), [0, 0, 0, 0, 2 * G, 0], atol=1e-14)
    np.testing.assert_allclose(found.recursive.terms, [G, 2 * G])


def test_points_of_slides_and_compound_joints_move_with_the_body(tmp_path: Path) -> None:
    """A weight at the point of its wrench has no moment about it, wherever the slide or the first hinge is."""
    inertial = '<inertial mass="1" pos=".5 0 0" diaginertia="1 1 1"/>'
    mechanism = _read(
        tmp_path / "points.xml",
        f'<body><joint name="guide" type="slide" axis="1 0 0" pos=".5 0 0"/>{inertial}</body>'
        f'<body><joint name="first" pos=".1 0 0"/><joint name="last" pos=".5 0 0"/>{inertial}</body>',
        '<actuator><motor joint="guide"/><motor joint="first"/><motor joint="last"/></actuator>',
    )
    found = _solved(mechanism, np.array([0.3, 0.6, -0.2]), np.zeros(3), np.zeros(3))
    assert found.names == ["guide", "last"]
    for way in (found.recursive, found.maximal):
        np.testing.assert_allclose(way.wrench[0, :, :3], 0, atol=1e-14)
        np.testing.assert_allclose(np.linalg.norm(way.wrench[0, :, 3:], axis=1), G)


def _largest_error(case: Case, found: Reactions) -> float:
    """Largest difference of what the file determines."""
    length = case.mechanism.stacked.longest_link
    return float(disagreement(found.recursive, found.maximal, found.of_file, length).max())


def test_redundant_drives_leave_less_determined() -> None:
    """Efforts that move the 2-PUR-2-RPU alike, four of three degrees of freedom, load its connections otherwise."""
    case = representative_case(load("2pur2rpu"))
    motion = prescribe(case, dt=0.1)
    found = reactions(case, motion, normal(case.mechanism), samples=3)
    known, free = found.of_robot, found.of_motion
    assert ({*known.null}, {*free.null}) == ({1}, {2})
    assert {*(known.functionals - free.functionals).ravel().tolist()} == {1}
    mechanism = case.mechanism
    state = State(mechanism=mechanism, q=found.motion.q, qd=found.motion.qd)
    effort = needed_efforts(state, found.motion.qdd).effort
    moving = moving_part(mechanism, found.motion)
    assert moving is not None
    internal = (np.eye(mechanism.na) - moving) @ [1.0, -2.0, 3.0, 5.0]
    other = recursive_wrenches(state, found.motion.qdd, effort + internal)
    moved = np.abs(other.wrench - found.recursive.wrench) > 1e-9
    assert not moved[free.components].any()
    assert moved[known.components & ~free.components].any()
    assert disagreement(found.recursive, other, free, mechanism.stacked.longest_link).max() < ROUND_OFF
    assert disagreement(found.recursive, other, known, mechanism.stacked.longest_link).max() > 0.01


class Solved(NamedTuple):
    """Wrenches of a state in both ways, in world axes if the bodies have them."""

    recursive: Wrenches
    maximal: Wrenches
    equations: MaximalWrenches
    names: list[str]

    def of(self, name: str) -> Array:
        """The wrench by the recursion, (6,)."""
        return self.recursive.wrench[0, self.names.index(name)]


def _solved(mechanism: Mechanism, q: Array, qd: Array, qdd: Array) -> Solved:
    state = State(mechanism=mechanism, q=q[None], qd=qd[None])
    effort = needed_efforts(state, qdd[None]).effort
    equations = MaximalWrenches(mechanism, state.q)
    equations.uniqueness(Z)  # must leave the equations of the file as they are
    recursive, maximal = recursive_wrenches(state, qdd[None], effort), equations(qd[None], qdd[None], effort)
    error = disagreement(recursive, maximal, equations.uniqueness(), mechanism.stacked.longest_link)
    assert error.max(initial=0.0) < ROUND_OFF
    return Solved(recursive, maximal, equations, [connection.name for connection in connections(mechanism)])


def _read(path: Path, bodies: str, *more: str) -> Mechanism:
    path.write_text(
        f'<mujoco><compiler angle="radian"/><option gravity="0 {-G} 0"/><default><joint axis="0 0 1"/></default>'
        f"<worldbody>{bodies}</worldbody>{''.join(more)}</mujoco>",
        encoding="utf-8",
    )
    return read_mechanism(ModelFile(path=path))


def test_pendulum_by_hand(tmp_path: Path) -> None:
    """A body off the plane of its hinge under all loads, with rotor and damper, which no body carries.

    F = m a − the loads, M = r × m a + I α − the moments of the loads.
    """
    m, x, z, spin, rate, change, angle = 2.0, 0.3, 0.1, 0.02, 1.7, -2.3, 0.4
    inertial = f'<inertial mass="{m}" pos="{x} 0 {z}" diaginertia="0.01 0.015 {spin}"/>'
    mechanism = _read(
        tmp_path / "pendulum.xml",
        f'<body gravcomp=".25"><joint name="pin" armature="0.4" damping="0.7" stiffness="3"/>{inertial}</body>',
        '<actuator><motor joint="pin"/></actuator>',
    )
    load = Wrench(
        body=0, point=np.array([0.2, 0.1, 0.0]), moment=np.array([1.0, 2.0, 3.0]), force=np.array([4.0, 5, 6])
    )
    found = _solved(replace(mechanism, wrenches=(load,)), *(np.array([value]) for value in (angle, rate, change)))
    held, turned = (
        m * np.array([-x * rate**2, x * change, 0.0]),
        rotation_about(np.array([0.0, 0, 1]), np.array([angle])),
    )
    held += 0.75 * m * G * np.array([np.sin(angle), np.cos(angle), 0.0])  # in the axes of the body
    pull, twist = turned[0].T @ load.force, turned[0].T @ load.moment
    moment = np.cross([x, 0.0, z], held) + np.array([0.0, 0.0, spin * change]) - np.cross(load.point, pull) - twist
    for way in (found.recursive, found.maximal):
        np.testing.assert_allclose(way.wrench[0, 0], [*moment, *(held - pull)], rtol=1e-13)
    assert found.equations.uniqueness().components.all()


def test_slider_crank_by_hand(tmp_path: Path) -> None:
    """In the plane: the slider needs a force along its guide, the rod's moment gives the other, the crank the sum."""
    r, l, m, rod, J, theta, w, a = 0.3, 0.8, 1.5, 0.6, 0.03, 0.7, 3.0, -4.0
    A = r * np.exp(1j * theta)
    phi = -np.arcsin(A.imag / l)
    # r sin θ + l sin φ = 0, differentiated
    turn = -r * np.cos(theta) * w / (l * np.cos(phi))
    gain = (-r * np.cos(theta) * a + r * np.sin(theta) * w**2 + l * np.sin(phi) * turn**2) / (l * np.cos(phi))
    arm = l * np.exp(1j * phi)
    a_A, a_arm = A * (1j * a - w**2), arm * (1j * gain - turn**2)
    B = A + arm
    mechanism = _read(
        tmp_path / "slider_crank.xml",
        '<body name="crank"><joint name="O"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
        f'<body name="rod" pos="{A.real} {A.imag} 0"><joint name="A"/>'
        f'<inertial mass="{rod}" pos="{arm.real / 2} {arm.imag / 2} 0" diaginertia="{J} {J} {J}"/></body></body>'
        f'<body name="slider" pos="{B.real} 0 0"><joint name="guide" type="slide" axis="1 0 0"/>'
        f'<inertial mass="{m}" pos="0 0 0" diaginertia="1 1 1"/></body>',
        f'<equality><connect name="B" body1="rod" body2="slider" anchor="{arm.real} {arm.imag} 0"/></equality>',
        '<actuator><motor joint="O"/></actuator>',
    )
    travel, pull = (a_A + a_arm).real, (1j * A * w + 1j * arm * turn).real
    rates, changes = np.array([w, turn - w, pull]), np.array([a, gain - a, travel])
    found = _solved(mechanism, np.zeros(3), rates, changes)
    needed = rod * (a_A + a_arm / 2 + 1j * G)  # sum of the forces on the rod
    along = -m * travel  # on the rod at B
    # moment of the rod about A: arm × F_B = J α + arm/2 × needed
    across = (J * gain + (np.conj(arm / 2) * needed).imag + arm.imag * along) / arm.real
    on_rod = along + 1j * across
    on_A = needed - on_rod
    on_O = 1j * G + on_A
    drive = a + (np.conj(A) * on_A).imag  # inertia of the crank: 1
    forces = {"B": on_rod, "A": on_A, "O": on_O}
    limit = 1e-13 * found.recursive.terms[1]
    for name, force in forces.items():
        np.testing.assert_allclose(found.of(name)[3:5], [force.real, force.imag], atol=limit)
    np.testing.assert_allclose(found.of("O")[2], drive, atol=limit)
    guide = found.of("guide")
    np.testing.assert_allclose(guide[3:5], [0, across + m * G], atol=limit)


class FourBar(NamedTuple):
    """A four-bar in a pose, with rates and accelerations of its links, as complex numbers in its plane."""

    B: complex
    C: complex
    D: complex
    w: Array
    """Of crank, coupler and rocker [rad/s], shape (3,)."""
    a: Array
    """Their changes [rad/s²], shape (3,)."""


def _four_bar() -> FourBar:
    O_B, D, w, a = 0.4 * np.exp(0.5j), 1.0 + 0j, 1.9, -1.1
    half = abs(D - O_B)
    bend = np.arccos((half**2 + 1.1**2 - 0.8**2) / (2 * half * 1.1))
    B_C = 1.1 * np.exp(1j * (np.angle(D - O_B) + bend))
    D_C = O_B + B_C - D
    columns = np.array([[(1j * B_C).real, -(1j * D_C).real], [(1j * B_C).imag, -(1j * D_C).imag]])
    first = -1j * O_B * w
    w2, w3 = np.linalg.solve(columns, [first.real, first.imag])
    second = -O_B * (1j * a - w**2) + B_C * w2**2 - D_C * w3**2
    a2, a3 = np.linalg.solve(columns, [second.real, second.imag])
    return FourBar(O_B, O_B + B_C, D, np.array([w, w2, w3]), np.array([a, a2, a3]))


TOOL = 0.05 + 0.1j
"""Mass centre of a tool of .2 kg and .001 kg m² on the coupler, from B [m]."""
MASSES, TURNS, OFF = (0.4, 1.1, 0.8), (0.006, 0.11, 0.043), 0.05
"""Masses [kg], inertia about the mass centres in the middle [kg m²], distance of the coupler's from the plane [m]."""


def _cut(path: Path, bar: FourBar, pin: str) -> Solved:
    """The four-bar with a tool on its coupler, closed by a point at a pin; its bodies have the axes of the world."""
    ends = {"crank": (0j, bar.B), "coupler": (bar.B, bar.C), "rocker": (bar.D, bar.C)}
    parents = {
        "B": (("crank", "", "O"), ("rocker", "", "D"), ("coupler", "rocker", "C")),
        "C": (("crank", "", "O"), ("coupler", "crank", "B"), ("rocker", "", "D")),
        "D": (("crank", "", "O"), ("coupler", "crank", "B"), ("rocker", "coupler", "C")),
    }[pin]
    points = {"O": 0j, "B": bar.B, "C": bar.C, "D": bar.D}
    tool_at = bar.B + TOOL - points[{"B": "C", "C": "B", "D": "B"}[pin]]
    tool = (
        f'<body name="tool" pos="{tool_at.real} {tool_at.imag} 0">'
        '<inertial mass=".2" pos="0 0 .02" diaginertia=".001 .001 .001"/></body>'
    )

    def body(name: str, at: str, origin: complex) -> str:
        k, place = list(ends).index(name), points[at] - origin
        centre = sum(ends[name]) / 2 - points[at]
        inside = "".join(body(child, joint, points[at]) for child, parent, joint in parents if parent == name)
        height, J = OFF * (name == "coupler"), TURNS[k]
        return (
            f'<body name="{name}" pos="{place.real} {place.imag} 0"><joint name="{at}"/>'
            f'<inertial mass="{MASSES[k]}" pos="{centre.real} {centre.imag} {height}" diaginertia="{J} {J} {J}"/>'
            f"{tool * (name == 'coupler')}{inside}</body>"
        )

    tree = "".join(body(name, at, 0j) for name, parent, at in parents if not parent)
    first, second, own = {
        "B": ("coupler", "crank", "C"),
        "C": ("coupler", "rocker", "B"),
        "D": ("rocker", "world", "C"),
    }[pin]
    anchor = points[pin] - points[own]
    mechanism = _read(
        path / f"{pin}.xml",
        tree,
        f'<equality><connect name="{pin}" body1="{first}" body2="{second}" '
        f'anchor="{anchor.real} {anchor.imag} 0"/></equality>',
        '<actuator><motor joint="O"/></actuator>',
    )
    joints = [joint.name for joint in mechanism.joints]
    of_links = {name: k for k, name in enumerate(ends)}
    W = np.zeros((3, 3))  # rates of the joints per rate of the links
    for name, parent, at in parents:
        W[joints.index(at), of_links[name]] = 1
        if parent:
            W[joints.index(at), of_links[parent]] = -1
    return _solved(mechanism, np.zeros(3), W @ bar.w, W @ bar.a)


def test_a_four_bar_has_equal_wrenches_wherever_it_is_cut(tmp_path: Path) -> None:
    """In its plane by hand too; out of it nothing is determined but the wrench of the tool, which no loop carries."""
    bar = _four_bar()
    wanted = _by_hand(bar)
    out_of_plane = []
    for pin in "BCD":
        found = _cut(tmp_path, bar, pin)
        unique = found.equations.uniqueness(Z)
        limit = 1e-12 * max(found.recursive.terms)
        for name, force in wanted.items():
            k = found.names.index(name)
            sign = -1 if (pin, name) == ("D", "C") else 1  # there it acts on the rocker
            np.testing.assert_allclose(sign * found.of(name)[3:5], [force.real, force.imag], atol=limit)
            assert unique.components[0, k].tolist() == [i in IN_PLANE for i in range(6)]
            assert unique.functionals[0, k] == 3
        assert unique.components[0, found.names.index("tool")].all()
        of_file = found.equations.uniqueness()
        assert of_file.components[0, found.names.index(pin)].tolist() == [True] * 5 + [False]
        out_of_plane.append(found.of("O")[:2])
    assert np.ptp(out_of_plane, axis=0).max() > 0.1  # the moments that the file alone determines move with the cut


def _by_hand(bar: FourBar) -> dict[str, complex]:
    """Forces on the coupler at B and C, on the rocker at D and on the crank at O, in the plane."""
    B, C, D = bar.B, bar.C, bar.D
    (w1, w2, w3), (a1, a2, a3) = bar.w, bar.a

    def accelerated(arm: complex, w: float, a: float) -> complex:
        return arm * (1j * a - w**2)

    def moment(arm: complex, force: complex) -> float:
        return float((np.conj(arm) * force).imag)

    a_B, middle = accelerated(B, w1, a1), (C - B) / 2
    crank = MASSES[0] * (a_B / 2 + 1j * G)
    coupler = MASSES[1] * (a_B + accelerated(middle, w2, a2) + 1j * G)
    tool = 0.2 * (a_B + accelerated(TOOL, w2, a2) + 1j * G)
    rocker = MASSES[2] * (accelerated((C - D) / 2, w3, a3) + 1j * G)
    about_B = (TURNS[1] + 0.001) * a2 + moment(middle, coupler) + moment(TOOL, tool)
    about_D = TURNS[2] * a3 + moment((C - D) / 2, rocker)
    arms = np.array([[-(C - B).imag, (C - B).real], [(C - D).imag, -(C - D).real]])
    at_C = complex(*np.linalg.solve(arms, [about_B, about_D]))
    at_B = coupler + tool - at_C
    return {"B": at_B, "C": at_C, "D": rocker + at_C, "O": crank + at_B}


def _faulty(fault: str, wrench: Array, body: Body, connection: Connection, R: Array, R_parent: Array) -> Array:
    """A wrench (nt, 6) in a wrong convention."""
    M, F = np.split(wrench, 2, axis=1)

    def turned(A: Array) -> Array:
        return np.concatenate([(A @ x[..., None])[..., 0] for x in (M, F)], axis=1)

    def about(point: Array) -> Array:
        return np.concatenate([M + np.cross(connection.point - point, F), F], axis=1)

    return {
        "sign": -wrench,
        "sign of a closure": -wrench,
        "axes of the parent": turned(R_parent.swapaxes(1, 2) @ R),
        "axes of the world": turned(R),
        "about the mass centre": about(body.center),
        "about the origin of the body": about(np.zeros(3)),
        "moment and force swapped": np.concatenate([F, M], axis=1),
        "factor of two": 2 * wrench,
    }[fault]


@pytest.mark.parametrize(
    ("fault", "name"),
    {
        "sign": "q7",
        "sign of a closure": "q8",
        "axes of the parent": "q7",
        "axes of the world": "q7",
        "about the mass centre": "q7",
        "about the origin of the body": "q8",
        "moment and force swapped": "q7",
        "factor of two": "q7",
    }.items(),
)
def test_a_wrong_convention_of_a_way_is_found(fault: str, name: str, way_of_3prr: Reactions) -> None:
    """In the 3-PRR, of one connection; the others still agree."""
    found, mechanism = way_of_3prr, load("3prr").mechanism()
    k = [connection.name for connection in found.connections].index(name)
    connection, R = found.connections[k], State.at_rest(mechanism, found.motion.q).poses.R
    body, wrench = mechanism.bodies[connection.body], found.maximal.wrench.copy()
    wrench[:, k] = _faulty(fault, wrench[:, k], body, connection, R[:, connection.body], R[:, body.parent])
    error = disagreement(found.recursive, Wrenches(wrench=wrench), found.of_robot, mechanism.stacked.longest_link)
    assert error[k] > 1e-3
    assert np.delete(error, k).max() < ROUND_OFF


@pytest.fixture(scope="module")
def way_of_3prr() -> Reactions:
    case = representative_case(load("3prr"))
    return reactions(case, prescribe(case), normal(case.mechanism), samples=3)


def test_a_loop_in_space_has_equal_wrenches_wherever_it_is_cut(tmp_path: Path) -> None:
    """Bricard's mechanism, cut at its fifth hinge instead of the sixth, by two points of the axis as well."""
    text = (CATALOGUE / "bricard" / "bricard.xml").read_text(encoding="utf-8")
    start, stop = text.index('<body name="rod5"'), text.index("</body>", text.index('<site name="axis5"')) + 7
    masses = re.search(r'mass="1" diaginertia="[^"]*"/>', text[start:stop])
    assert masses
    rod = f'<body name="rod5" pos="0 0 1"><joint name="q6" axis="1 0 0"/><inertial pos="0 -.5 0" {masses[0]}</body>'
    closures = [f'<connect name="P{z}" body1="rod5" body2="rod4" anchor="0 -1 {z}"/>' for z in (0, 0.5)]
    other = (text[:start] + text[stop:]).replace("</worldbody>", f"{rod}</worldbody>")
    other = re.sub("<equality>.*</equality>", f"<equality>{''.join(closures)}</equality>", other, flags=re.DOTALL)
    both = []
    for k, content in enumerate((text, other)):
        (tmp_path / f"{k}.xml").write_text(content, encoding="utf-8")
        mechanism = read_mechanism(ModelFile(path=tmp_path / f"{k}.xml"))
        rest, first = State.at_rest(mechanism, np.zeros((1, 5))), np.arange(5) == 0
        L = noc_model(rest, first).L
        moving = rest.with_velocities(1.3 * L[..., 0])
        bias = (moving.Phi_dot @ moving.qd[..., None])[..., 0] - 0.7 * moving.Phi[..., 0]
        qdd = np.concatenate([[[-0.7]], moving.dependent_rates(first)(bias[..., None])[..., 0]], axis=1)
        both.append(_solved(mechanism, rest.q[0], moving.qd[0], qdd[0]))
    first, second = both
    assert first.names[:4] == second.names[:4] == ["q1", "q2", "q3", "q4"]
    wrenches = [replace(x.recursive, wrench=x.recursive.wrench[:, :4]) for x in both]
    parts, others = (replace(x, projectors=x.projectors[:, :4]) for x in (y.equations.uniqueness() for y in both))
    np.testing.assert_allclose(parts.projectors, others.projectors, atol=1e-12)
    assert parts.functionals.tolist() == [[5] * 4]
    assert disagreement(wrenches[0], wrenches[1], parts, np.sqrt(1.25)).max() < ROUND_OFF
    assert np.abs(wrenches[0].wrench - wrenches[1].wrench).max() > 0.1  # of least norm: moved by the cut


def test_a_small_part_in_a_redundant_load_counts(tmp_path: Path) -> None:
    """A bar on three points of a line: a force at the far point has a hundredth of those at the near points."""
    closures = [f'<connect body1="bar" body2="arm" anchor="{x} 0 0"/>' for x in (0.1, 0.11, 1.1)]
    mechanism = _read(
        tmp_path / "bar.xml",
        '<body name="arm"><joint name="O"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body>'
        '<body name="bar"><freejoint name="bar"/><inertial mass="1" pos="0.5 0 0" diaginertia="1 1 1"/></body>',
        f"<equality>{''.join(closures)}</equality>",
        '<actuator><motor joint="O"/></actuator>',
    )
    found = _solved(mechanism, np.array([0.0, 0, 0, 0, 1, 0, 0, 0]), np.zeros(7), np.zeros(7))
    unique = found.equations.uniqueness()
    assert unique.null[0] == 4  # 9 forces hold all of the bar but its turn about the line
    assert unique.functionals[0].tolist() == [6, 3, 3, 3]
    assert unique.components[0].tolist() == [[True] * 6, *[[True] * 3 + [False] * 3] * 3]
