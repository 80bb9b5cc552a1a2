"""Constants of a serial model: their effects against equations of motion, and their optimality."""

from dataclasses import replace

import numpy as np
import pytest

from loopcheck.analytic.transmission.constants import Constants, Pace, at_motors, best_constants, least_error
from loopcheck.analytic.transmission.joint_space import JointSpace, joint_efforts, moved
from loopcheck.analytic.transmission.regressor import SECOND_MOMENTS, links, regressor
from loopcheck.analytic.transmission.terms import joint_terms, motor_efforts
from loopcheck.analytic.transmission.twin import Twin, Workspace, make_twin, sound_poses, workspace
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from tests.analytic.test_transmission import PAIRS, Changed, changed, read, twin_of

__all__ = ["changed"]


def pace(twin: Twin) -> Pace:
    n = len(twin.names)
    return Pace(
        middle=twin.ranges.mean(axis=1), pull=np.full(n, -15.0), rates=np.full(n, 1.3), accelerations=np.full(n, 6.0)
    )


def spread(twin: Twin, seed: int) -> Workspace:
    return workspace(
        twin, np.random.default_rng(seed).uniform(twin.ranges[:, 0], twin.ranges[:, 1], (48, len(twin.names)))
    )


def repaired(twin: Twin, links_too: bool = True) -> Constants:
    return best_constants(twin, spread(twin, 0), pace(twin), links_too)


def efforts(space: JointSpace, x: Array, xd: Array, xdd: Array) -> Array:
    q, sound = sound_poses(space, x)
    assert sound.all()
    return joint_efforts(space, q, *moved(space, q, xd, xdd))


def unseen(twin: Twin) -> tuple[Array, Array, Array]:
    """Poses and motions that the fit has not seen."""
    samples = spread(twin, 1)
    x = samples.x[samples.common]
    return x, *pace(twin).drawn(x, np.random.default_rng(2))


def with_constants(
    mechanism: Mechanism, constants: dict[str, tuple[float, float, float, float]], displacement: tuple[float, ...]
) -> Mechanism:
    """Other armature, damping, stiffness and rest of springs; the last body displaced and half as inert again."""
    joints = []
    for joint in mechanism.joints:
        armature, damping, stiffness, rest = constants[joint.name]
        joints.append(
            replace(joint, armature=armature, damping=damping, stiffness=stiffness, spring_reference=np.array([rest]))
        )
    last = mechanism.bodies[-1]
    last = replace(last, center=last.center + np.array(displacement), inertia=1.5 * last.inertia)
    return replace(mechanism, joints=tuple(joints), bodies=(*mechanism.bodies[:-1], last))


def test_efforts_are_linear_in_the_constants_as_the_equations_of_motion_say() -> None:
    twin = twin_of("ankle", "ankle_serial")
    held = [replace(body, gravity_compensation=0.3) for body in twin.serial.mechanism.bodies]
    space = replace(twin.serial, mechanism=replace(twin.serial.mechanism, bodies=tuple(held)))
    (x, xd, xdd), generator = unseen(twin), np.random.default_rng(3)
    q = sound_poses(space, x)[0]
    Y = regressor(space, q, *moved(space, q, xd, xdd))
    before = efforts(space, x, xd, xdd)
    joints, bodies = list(space.mechanism.joints), list(space.mechanism.bodies)
    change = generator.uniform(0.5, 1, (4, 2))
    for k, j in enumerate(space.joints):
        armature, damping, stiffness, load = change[:, k]
        rest = np.array([-space.signs[k] * load / stiffness])
        joints[j] = replace(
            joints[j],
            armature=joints[j].armature + armature,
            damping=joints[j].damping + damping,
            stiffness=stiffness,
            spring_reference=rest,
        )
    theta = [change.ravel()]
    for b in links(space):
        body, d, more = bodies[b], generator.uniform(-0.02, 0.02, 3), np.diag(generator.uniform(1, 2, 3) * 1e-3)
        more[0, 1] = more[1, 0] = 3e-4
        bodies[b] = replace(body, center=body.center + d, inertia=body.inertia + np.trace(more) * np.eye(3) - more)
        moments = more + body.mass * np.outer(d, d)
        theta += [body.mass * d, np.array([moments[place] for place in SECOND_MOMENTS])]
    other = replace(space, mechanism=replace(space.mechanism, joints=tuple(joints), bodies=tuple(bodies)))
    after = efforts(other, x, xd, xdd)
    assert np.abs(after - before).max() > 1
    assert before + Y @ np.concatenate(theta) == pytest.approx(after, abs=1e-11)


def test_constants_that_were_taken_away_are_given_back() -> None:
    """A robot and the same with other springs, dampers, rotors, and another foot."""
    plain = read("ankle_serial")
    constants = {"pitch": (0.02, 0.2, 1.5, 0.3), "roll": (0.005, 0.0, 0.4, -0.1)}
    whole = with_constants(plain, constants, (0.02, 0.005, 0.01))
    twin = make_twin(whole, whole.rest_position, plain, plain.rest_position, {})
    motion, space = unseen(twin), repaired(twin).space(twin.serial)
    wanted, before, after = (efforts(one, *motion) for one in (twin.closed, twin.serial, space))
    peak = np.abs(wanted).max(axis=0)
    assert (np.abs(before - wanted).max(axis=0) > 0.3 * peak).all()
    assert (np.abs(after - wanted).max(axis=0) < 1e-3 * peak).all()


@pytest.mark.parametrize("name", PAIRS)
def test_no_constants_do_better(name: str) -> None:
    """Not even constants of unphysical bodies, fitted to the very motions."""
    twin = twin_of(name, f"{name}_serial")
    constants, (x, xd, xdd) = repaired(twin), unseen(twin)
    q = sound_poses(twin.serial, x)[0]
    T = joint_terms(twin.closed, sound_poses(twin.closed, x)[0]).transmission
    closed, plain, after = (
        motor_efforts(T, efforts(space, x, xd, xdd))
        for space in (twin.closed, twin.serial, constants.space(twin.serial))
    )
    peaks = np.abs(closed).max(axis=0)
    A = at_motors(T, regressor(twin.serial, q, *moved(twin.serial, q, xd, xdd))) / peaks[:, None]
    least = least_error(A.reshape(-1, A.shape[2]), ((closed - plain) / peaks).ravel())
    left, lost = (np.sqrt(np.mean(((efforts - closed) / peaks) ** 2)) for efforts in (after, plain))
    assert left < 0.2 * lost
    assert least <= left * (1 + 1e-9)
    assert left < 1.6 * least
    for body in constants.mechanism.bodies:
        values = np.linalg.eigvalsh(body.inertia)
        assert values[0] + values[1] >= values[2] > 0  # MuJoCo would not compile others
    assert all(min(joint.armature, joint.damping, joint.stiffness) >= 0 for joint in constants.mechanism.joints)


def test_joints_alone_take_rotor_and_rods_through_the_transmission() -> None:
    twin = twin_of("knee", "knee_serial")
    constants = repaired(twin, links_too=False)
    joint = constants.mechanism.joints[twin.serial.joints[0]]
    squares = spread(twin, 0).closed.transmission[:, 0, 0] ** 2
    assert 0.1 * squares.min() < joint.damping - 0.05 < 0.1 * squares.max()
    assert 0.02 * squares.min() < joint.armature < 1.3 * 0.02 * squares.max()
    assert [body.mass for body in constants.mechanism.bodies] == [body.mass for body in twin.serial.mechanism.bodies]
    assert constants.mechanism.bodies == twin.serial.mechanism.bodies


def test_a_joint_that_turns_the_other_way_gets_the_same_constants(changed: Changed) -> None:
    turned = changed("knee_serial", ('axis="0 1 0" range="-0.5 0.7"', 'axis="0 -1 0" range="-0.7 0.5"'))
    plain, other = (repaired(twin_of("knee", serial)).mechanism.joints[0] for serial in ("knee_serial", turned))
    assert other.spring_reference == pytest.approx(-plain.spring_reference, rel=1e-3)
    assert other.armature == pytest.approx(plain.armature, rel=1e-3)
