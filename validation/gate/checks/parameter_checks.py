"""Checks of numbers of a model file: inertias, rotors and time step."""

from collections.abc import Iterator

import numpy as np

from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, JointPositions, svd
from loopcheck.robots.formats.mjcf import Description
from loopcheck.robots.formats.mujoco_compat import names_of_actuators
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.size import size
from loopcheck.validation.gate.checks.softness import REFSAFE, equality_names
from loopcheck.validation.gate.closed_poses import is_large
from loopcheck.validation.gate.findings import Finding, number_of

PROPORTION = 1e3
"""Largest ratio of an inertia to that of a uniform body with the same mass and extent, and largest inverse [-]."""
SHORT = 0.2
"""Least extent of a body, relative to the size of the robot, that bounds its inertia from above [-]."""
STABLE = 2.0
"""Limit of step times frequency, or of step times decay rate, of explicit integrators [-]."""
LONGEST = 1e9
"""Bodies times the square of the dofs above which the inertia matrix takes too long."""
EXPLICIT_DAMPING = (0, 1)
"""MuJoCo's integrators that take velocity gains explicitly: Euler and Runge-Kutta."""
IMPLICIT_STIFFNESS = 4
"""First of MuJoCo's integrators that takes position gains implicitly: discrete."""


def parameter_findings(description: Description, q: JointPositions) -> Iterator[Finding]:
    """Findings on the numbers of a file.

    Args:
        q: A closed pose, or the pose of the file.
    """
    mechanism = description.mechanism
    yield from _inertias(mechanism)
    yield from _rotors(mechanism)
    yield from _loop_steps(description)
    if not is_large(mechanism):
        yield from _servo_steps(description, q)
    yield from _friction_apart(description)


def extents(mechanism: Mechanism) -> list[float]:
    """Largest distance of the joints, closures, children and mass centre of each body [m]."""
    points: list[list[Array]] = [[body.center] for body in mechanism.bodies]
    for b, body in enumerate(mechanism.bodies):
        points[b] += [mechanism.joints[j].anchor for j in mechanism.joints_of[b]]
        if body.parent != WORLD:
            points[body.parent].append(body.position)
    for closure in mechanism.rigid_closures:
        for end, point in ((closure.body1, closure.point1), (closure.body2, closure.point2)):
            if end != WORLD:
                points[end].append(point)
    return [float(np.linalg.norm(np.array(each)[:, None] - each, axis=-1).max()) for each in points]


def _inertias(mechanism: Mechanism) -> Iterator[Finding]:
    """Bodies whose inertia does not fit their mass and the distances of their joints, closures and mass centre."""
    least = SHORT * size(mechanism)
    for body, extent in zip(mechanism.bodies, extents(mechanism), strict=True):
        largest = float(np.linalg.eigvalsh(body.inertia)[-1])
        rod, longer = body.mass * extent**2 / 12, body.mass * max(extent, least) ** 2 / 12
        if not body.mass or not largest or rod / PROPORTION <= largest <= longer * PROPORTION:
            continue
        uniform = longer if largest > longer else rod
        yield Finding(
            code="LC205",
            element=f"body '{body.name}'",
            extent=max(largest / uniform, uniform / largest),
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
        if closure.name not in named:
            continue  # the length of a tendon
        solref, solimp = m.eq_solref[named[closure.name]], m.eq_solimp[named[closure.name]]
        rate = _loop_rate(
            solref, float(np.clip(solimp[1], 1e-4, 1 - 1e-4)), 0.0 if m.opt.disableflags & REFSAFE else 2 * h
        )
        if h * rate > STABLE:
            yield Finding(
                code="LC207",
                element=f"equality '{closure.name}'",
                extent=h * rate,
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
    if len(mechanism.bodies) * mechanism.nv**2 > LONGEST:
        bodies, dofs = number_of(len(mechanism.bodies), "body", "bodies"), number_of(mechanism.nv, "dof")
        yield Finding(code="LC224", message=f"{bodies} and {dofs} are too many for the check of the servos' time step")
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
                extent=float(h * max(frequency, decay)),
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
