"""Checks of numbers of a model file: inertias, rotors, time step and units."""

from collections.abc import Iterator

import numpy as np

from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.mobility import radians_as_degrees
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, JointPositions, svd
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.mjcf import Description
from loopcheck.robots.mujoco_compat import names_of_actuators
from loopcheck.robots.size import size
from loopcheck.validation.gate.findings import Finding
from loopcheck.validation.gate.softness import REFSAFE, equality_names

PROPORTION = 1e3
"""Largest ratio of an inertia to that of a uniform body with the same mass and extent, and largest inverse [-]."""
SHORT = 0.2
"""Least extent of a body, relative to the size of the robot, that bounds its inertia from above [-]."""
LARGEST, SMALLEST = 50.0, 2e-3
"""Sizes of robots above or below which the unit of length is doubtful [m]."""
HEAVIEST = 1e5
"""Total mass above which the unit of mass is doubtful [kg]."""
GRAVITY = (0.1, 100.0)
"""Gravity outside of which its unit is doubtful [m/s²]; zero is none."""
STABLE = 2.0
"""Limit of step times frequency, or of step times decay rate, of explicit integrators [-]."""
EXPLICIT_DAMPING = (0, 1)
"""MuJoCo's integrators that take velocity gains explicitly: Euler and Runge-Kutta."""
IMPLICIT_STIFFNESS = 4
"""First of MuJoCo's integrators that takes position gains implicitly: discrete."""


def parameter_findings(description: Description, q: JointPositions) -> Iterator[Finding]:
    """Findings on the numbers of a file.

    Args:
        q: A closed pose, or the pose of the file [m or rad], shape (nq,).
    """
    mechanism = description.mechanism
    yield from _inertias(mechanism)
    yield from _rotors(mechanism)
    yield from _loop_steps(description)
    yield from _servo_steps(description, q)
    yield from _friction_apart(description)
    yield from _units(description)


def _inertias(mechanism: Mechanism) -> Iterator[Finding]:
    """Bodies whose inertia does not fit their mass and the distances of their joints, closures and mass centre."""
    points: dict[int, list[Array]] = {b: [body.center] for b, body in enumerate(mechanism.bodies)}
    for b, body in enumerate(mechanism.bodies):
        points[b] += [mechanism.joints[j].anchor for j in mechanism.joints_of[b]]
        if body.parent != WORLD:
            points[body.parent].append(body.position)
    for closure in mechanism.rigid_closures:
        for end, point in ((closure.body1, closure.point1), (closure.body2, closure.point2)):
            if end != WORLD:
                points[end].append(point)
    least = SHORT * size(mechanism)
    for b, body in enumerate(mechanism.bodies):
        ends = np.array(points[b])
        extent = float(np.linalg.norm(ends[:, None] - ends, axis=-1).max())
        largest = float(np.linalg.eigvalsh(body.inertia)[-1])
        rod, longer = body.mass * extent**2 / 12, body.mass * max(extent, least) ** 2 / 12
        if not body.mass or not largest or rod / PROPORTION <= largest <= longer * PROPORTION:
            continue
        uniform = longer if largest > longer else rod
        yield Finding(
            code="LC205",
            element=f"body '{body.name}'",
            message=f"the largest inertia of body '{body.name}' is {largest / uniform:.2g} times that of a uniform rod "
            f"of its {body.mass:.3g} kg between its joints, closures and mass centre; must be within "
            f"{1 / PROPORTION:g} and {PROPORTION:g}",
        )


def _rotors(mechanism: Mechanism) -> Iterator[Finding]:
    armatures = {tendon.name: tendon.armature for tendon in mechanism.tendons}
    for actuator in mechanism.actuators:
        drive = actuator.coordinate
        of_joints = max((mechanism.joints[j].armature for j in drive.joints), default=0.0)
        if abs(actuator.gear) > 1 and not max(of_joints, armatures.get(drive.name, 0.0)):
            yield Finding(
                code="LC206",
                element=f"actuator '{actuator.name}'",
                message=f"actuator '{actuator.name}' has the gear {actuator.gear:g}, but '{drive.name}' has no "
                "armature for the reflected inertia of its rotor",
            )


def _loop_steps(description: Description) -> Iterator[Finding]:
    m, h = description.compiled, float(description.compiled.opt.timestep)
    named = {name: number for number, name in equality_names(m)}
    for closure in description.mechanism.closures:
        solref, solimp = m.eq_solref[named[closure.name]], m.eq_solimp[named[closure.name]]
        rate = _loop_rate(
            solref, float(np.clip(solimp[1], 1e-4, 1 - 1e-4)), 0.0 if m.opt.disableflags & REFSAFE else 2 * h
        )
        if h * rate > STABLE:
            yield Finding(
                code="LC207",
                element=f"equality '{closure.name}'",
                message=f"the time step of {h:g} s times the rate of the loop '{closure.name}' is {h * rate:.3g}, must "
                f"be at most {STABLE:g}",
            )


def _loop_rate(solref: Array, width: float, shortest: float) -> float:
    """The larger of frequency and decay rate of a constraint [1/s], as MuJoCo's reference acceleration has them."""
    if solref[0] > 0:
        constant, ratio = max(float(solref[0]), shortest), float(solref[1])
        return max(1 / (width * constant * max(ratio, 1e-12)), 2 / (width * constant))
    return float(max(np.sqrt(-solref[0]) / width, -solref[1] / width))


def _servo_steps(description: Description, q: JointPositions) -> Iterator[Finding]:
    """Position and velocity gains that an explicit integration of the step does not follow."""
    m, mechanism = description.compiled, description.mechanism
    h, integrator = float(m.opt.timestep), int(m.opt.integrator)
    numbers = {name: i for i, name in enumerate(names_of_actuators(m))}
    gains = np.array([-m.actuator_biasprm[numbers[actuator.name], 1:3] for actuator in mechanism.actuators])
    if not gains.size or not gains.any() or not mechanism.nv:
        return
    state = State.at_rest(mechanism, q[None])
    M = inertia_matrix(state)[0]
    compliance = _inverse_inertia(M, state.Phi[0], mechanism.selection)
    for actuator, (stiffness, damping), inverse in zip(mechanism.actuators, gains, compliance, strict=True):
        frequency = np.sqrt(max(stiffness, 0.0) * inverse) if integrator < IMPLICIT_STIFFNESS else 0.0
        decay = damping * inverse if integrator in EXPLICIT_DAMPING else 0.0
        if h * max(frequency, decay) > STABLE:
            what = "frequency" if frequency >= decay else "decay rate"
            yield Finding(
                code="LC207",
                element=f"actuator '{actuator.name}'",
                message=f"the time step of {h:g} s times the {what} of the servo '{actuator.name}' is "
                f"{h * max(frequency, decay):.3g}, must be at most {STABLE:g}",
            )


def _friction_apart(description: Description) -> Iterator[Finding]:
    """Dry friction that MuJoCo solves again after the loops."""
    m, mechanism = description.compiled, description.mechanism
    loss = np.flatnonzero(m.dof_frictionloss)
    if m.opt.noslip_iterations and len(loss) and mechanism.closures:
        joint = m.joint(m.dof_jntid[loss[0]]).name
        yield Finding(
            code="LC210",
            element="option",
            message=f"{m.opt.noslip_iterations} noslip_iterations solve the dry friction of joint '{joint}' again, but "
            "not the loops, which are accelerated apart at any time step",
        )


def _inverse_inertia(M: Array, Phi: Array, S: Array) -> Array:
    """Acceleration of each actuator by its unit effort, the loops closed [1/kg or 1/(kg m²)], shape (na,)."""
    _, values, V_T = svd(Phi) if Phi.size else (None, np.zeros(0), np.eye(len(M)))
    N = V_T[int((values > 1e-5 * values.max(initial=0.0)).sum()) :].T
    if not N.size:
        return np.zeros(len(S))
    return np.asarray(np.einsum("ai,ij,aj->a", S @ N, np.linalg.pinv(N.T @ M @ N, hermitian=True), S @ N))


def _units(description: Description) -> Iterator[Finding]:
    mechanism = description.mechanism
    length, mass = size(mechanism), sum(body.mass for body in mechanism.bodies)
    gravity = float(np.linalg.norm(mechanism.gravity))
    if not SMALLEST <= length <= LARGEST:
        yield Finding(code="LC208", message=f"the longest link is {length:.3g} m: are lengths in mm?")
    if mass > HEAVIEST:
        yield Finding(code="LC208", message=f"the total mass is {mass:.3g} kg: are masses in g?")
    if gravity and not GRAVITY[0] <= gravity <= GRAVITY[1]:
        yield Finding(code="LC208", message=f"gravity is {gravity:.3g} m/s²: is its unit mm/s² or g?")
    for sentence in radians_as_degrees(mechanism) if description.in_degrees else ():
        yield Finding(code="LC208", message=sentence)
