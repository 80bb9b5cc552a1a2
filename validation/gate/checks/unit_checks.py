"""Checks of units: lengths, masses, densities, gravity, angles, armatures and time constants."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from loopcheck.analytic.kinematics.mobility import radians_as_degrees
from loopcheck.robots.formats.mjcf import Description
from loopcheck.robots.formats.mujoco_compat import names_of_actuators
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import size
from loopcheck.validation.gate.checks.parameter_checks import extents
from loopcheck.validation.gate.checks.softness import equality_names
from loopcheck.validation.gate.findings import Finding, number_of

LARGEST, SMALLEST = 50.0, 2e-3
"""Sizes of robots above or below which the unit of length is doubtful [m]."""
HEAVIEST = 1e5
"""Mass of the moving bodies, less the heaviest, above which the unit of mass is doubtful [kg]."""
DENSEST = 23_000.0
"""Density above which the unit of mass is doubtful: osmium has 22,600 [kg/m³]."""
LEAST_EDGE = 0.1
"""Edge of a cube around a body above which its mass is judged: point masses and placeholders are smaller [m]."""
GRAVITY = (0.1, 100.0)
"""Gravity outside of which it is noted [m/s²]."""
MILLIMETRES = 3000.0
"""Gravity above which the unit is mm/s²: 981 is that of a file in cm [m/s²]."""
EARTH, UP = (9.0, 10.5), np.cos(np.deg2rad(30))
"""Gravity on Earth [m/s²], and cosine of its angle from the vertical above which it points up [-]."""
TURNS, UNLIMITED = 4 * np.pi, 1e4
"""Ends of the range of a hinge beyond which it is in degrees, and from which it stands for no limit [rad]."""
RATIO = 10.0
"""Range of a servo's control over that of its joint above which the joint's is in another unit [-]."""
FULL_TURN = 2 * np.pi
ROOM = 1e-3
"""Range of a driven hinge below which it cannot move [rad]."""
ARMATURE = 10.0
"""Armature of a hinge above which it is noted [kg m²]."""
SLOW = 0.05
"""Time constant of a closure above which it is slow [s]."""
BY_UNITS = ("LC207", "LC208", "LC213", "LC216", "LC217", "LC219", "LC220", "LC308", "LC309", "LC310")
"""Codes of findings that depend on the units of the file."""


def unit_findings(description: Description) -> Iterator[Finding]:
    """Findings on units."""
    mechanism = description.mechanism
    yield from _sizes(mechanism)
    yield from _densities(description)
    yield from _gravity(mechanism)
    yield from _angles(description)
    yield from _time_constants(description)
    for joint in mechanism.joints:
        if joint.kind in ("hinge", "ball") and joint.armature > ARMATURE:
            yield Finding(
                code="LC309",
                element=f"joint '{joint.name}'",
                extent=joint.armature,
                message=f"the armature of joint '{joint.name}' is {joint.armature:.3g} kg m²",
                advice="Compare it with the inertia of the rotor in kg m² (a large servo has 1e-3) times the square of "
                "the gear ratio.",
            )


def _sizes(mechanism: Mechanism) -> Iterator[Finding]:
    length = size(mechanism)
    if not SMALLEST <= length <= LARGEST:
        yield Finding(
            code="LC208",
            extent=max(length / LARGEST, SMALLEST / length),
            message=f"the longest link is {length:.3g} m",
            advice="Write lengths in m; the efforts of the file are in N and N m.",
        )
    is_moving = np.array(
        [any(mechanism.joints_of[b] for b in mechanism.way(b)[:-1]) for b in range(len(mechanism.bodies))]
    )
    masses = np.sort([body.mass for body, moves in zip(mechanism.bodies, is_moving, strict=True) if moves])
    if masses[:-1].sum() > HEAVIEST:  # a single heavy body is a base
        yield Finding(
            code="LC208",
            extent=float(masses[:-1].sum()),
            message=f"the moving bodies without the heaviest have {masses[:-1].sum():.3g} kg",
            advice="Write masses in kg; the numbers are those of grams.",
        )


def _densities(description: Description) -> Iterator[Finding]:
    """Bodies denser than any metal: by a stated density, or by a mass that their inertia and extent cannot hold."""
    mechanism = description.mechanism
    for body, extent in zip(mechanism.bodies, extents(mechanism), strict=True):
        stated = description.densities.get(body.name, 0.0)
        largest = float(np.linalg.eigvalsh(body.inertia)[-1])
        edge = max(float(np.sqrt(6 * largest / body.mass)) if body.mass else 0.0, extent)
        density = body.mass / edge**3 if edge else 0.0
        if stated > DENSEST or (density > DENSEST and edge > LEAST_EDGE):
            by = "states" if stated > DENSEST else f"has {body.mass:.3g} kg within {edge:.2g} m, at least"
            yield Finding(
                code="LC216",
                element=f"body '{body.name}'",
                extent=max(stated, density),
                message=f"body '{body.name}' {by} {max(stated, density):.3g} kg/m³; osmium, the densest metal, has "
                "22600",
                advice="Write the density in kg/m³ (steel has 7850)." if stated > DENSEST else "Write the mass in kg.",
            )


def _gravity(mechanism: Mechanism) -> Iterator[Finding]:
    gravity = float(np.linalg.norm(mechanism.gravity))
    if not gravity:
        yield Finding(code="LC308", message="gravity is zero or switched off: no effort holds a weight")
    elif gravity > MILLIMETRES:
        yield Finding(
            code="LC208",
            extent=gravity,
            message=f"gravity is {gravity:.4g} m/s²",
            advice="Write gravity in m/s² and lengths in m; this is the number of mm/s².",
        )
    elif not GRAVITY[0] <= gravity <= GRAVITY[1]:
        yield Finding(code="LC308", extent=max(gravity, 1 / gravity), message=f"gravity is {gravity:.3g} m/s²")
    if EARTH[0] <= gravity <= EARTH[1] and mechanism.gravity[2] > UP * gravity:
        yield Finding(
            code="LC213",
            element="option",
            message=f"gravity is {' '.join(f'{value:.4g}' for value in mechanism.gravity)} m/s²: everything falls up",
        )


def _angles(description: Description) -> Iterator[Finding]:
    """Ranges, references of springs, and controls in the wrong unit of angles, and ranges without room."""
    mechanism, m = description.mechanism, description.compiled
    unit = "degree" if description.in_degrees else "radian"
    state_unit = f'State it in the unit of the file, <compiler angle="{unit}">.'
    driven = set(mechanism.actuated_joints)
    for sentence in radians_as_degrees(mechanism) if description.in_degrees else ():
        said, _, remedy = sentence.partition(". If they are radians, add ")
        yield Finding(code="LC208", message=said, advice=f"Compare them with the robot; for radians add {remedy}.")
    for j, joint in enumerate(mechanism.joints):
        if joint.kind != "hinge":
            continue
        low, high = joint.limits or (-np.inf, np.inf)
        if not description.in_degrees and TURNS < max(-low, high) < UNLIMITED:
            yield Finding(
                code="LC219",
                element=f"joint '{joint.name}'",
                extent=max(-low, high),
                message=f"the range of hinge '{joint.name}' is {low:.4g} to {high:.4g} rad, "
                f"{(high - low) / FULL_TURN:.3g} turns",
                advice=f'Write {np.deg2rad(low):.4g} to {np.deg2rad(high):.4g}, or <compiler angle="degree"/> if all '
                "angles of the file are in degrees.",
            )
        if high - low < ROOM and j in driven:
            yield Finding(
                code="LC220",
                element=f"joint '{joint.name}'",
                message=f"the range of the driven joint '{joint.name}' is {high - low:.2g} rad wide, so that it "
                "cannot move",
                advice=f"Write the range of '{joint.name}' in {unit}s, as the file does, or remove its actuator.",
            )
        reference = float(joint.spring_reference[0])
        if joint.stiffness and abs(reference) > FULL_TURN:
            yield Finding(
                code="LC219",
                element=f"joint '{joint.name}'",
                extent=abs(reference),
                message=f"the spring of hinge '{joint.name}' rests at {reference:.4g} rad, more than a turn away",
                advice=f"{state_unit[:-1]}: springref is then {reference:.4g}° = {np.deg2rad(reference):.4g} rad.",
            )
    yield from _controls(mechanism, m)


def _controls(mechanism: Mechanism, m: Any) -> Iterator[Finding]:
    """Position servos whose control has another unit than the range of their hinge."""
    numbers = {name: i for i, name in enumerate(names_of_actuators(m))}
    for actuator in mechanism.actuators:
        i, drive = numbers[actuator.name], actuator.coordinate
        joint, c = mechanism.joints[drive.joints[0]], int(m.actuator_ctrladr[i])
        is_servo = m.actuator_gainprm[i, 0] > 0 and m.actuator_biasprm[i, 1] == -m.actuator_gainprm[i, 0]
        if not (is_servo and drive.is_joint and joint.kind == "hinge" and joint.limits and m.actuator_ctrllimited[c]):
            continue
        low, high = m.actuator_ctrlrange[c] / actuator.gear
        ratio = abs(high - low) / (joint.limits[1] - joint.limits[0])
        if ratio > RATIO:
            yield Finding(
                code="LC219",
                element=f"actuator '{actuator.name}'",
                extent=ratio,
                message=f"the ctrlrange of servo '{actuator.name}' is {ratio:.3g} times the range of its hinge "
                f"'{joint.name}', {joint.limits[0]:.3g} to {joint.limits[1]:.3g} rad",
                advice="Write the ctrlrange in radians, as MuJoCo reads it in every file: "
                f"{np.deg2rad(min(low, high)):.3g} to {np.deg2rad(max(low, high)):.3g} if it is in degrees; or correct "
                f"the range of '{joint.name}'.",
            )


def _time_constants(description: Description) -> Iterator[Finding]:
    """Closures that close slowly, or faster than MuJoCo lets them."""
    m, named = description.compiled, {name: number for number, name in equality_names(description.compiled)}
    h, short = float(m.opt.timestep), []
    for closure in description.mechanism.closures:
        if closure.name not in named:
            continue  # the length of a tendon
        solref = m.eq_solref[named[closure.name]]
        constant = float(solref[0]) if solref[0] > 0 else (2 / -float(solref[1]) if solref[1] < 0 else np.inf)
        if constant > SLOW:
            yield Finding(
                code="LC217",
                element=f"equality '{closure.name}'",
                extent=constant,
                message=f"the equality '{closure.name}' closes with a time constant of {constant:.3g} s (solref "
                f"{solref[0]:g} {solref[1]:g}); must be at most {SLOW:g} s",
            )
        elif constant < 2 * h * (1 - 1e-9):
            short.append((closure.name, constant))
    if short:
        name, constant = min(short, key=lambda each: each[1])
        yield Finding(
            code="LC310",
            element=f"equality '{name}'",
            message=f"the time constant of {number_of(len(short), 'equality', 'equalities')} is below "
            f"two time steps, that of '{name}' {constant:.3g} s at a step of {h:g} s",
        )
