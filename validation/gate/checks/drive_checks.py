"""Checks of forces: flags, signs, friction, weight, and controls of keyframes."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, svd
from loopcheck.robots.formats.mjcf import Description
from loopcheck.robots.formats.mujoco_compat import names_of_actuators
from loopcheck.robots.mechanism import WORLD, Actuator, CoordinateClosure, Mechanism, PathClosure, bodies_of
from loopcheck.robots.size import unit_rates
from loopcheck.validation.gate.closed_poses import closed_near, rank_of, row_factors_of_closures
from loopcheck.validation.gate.findings import Finding, number_of

FLAGS = {"constraint": 1 << 0, "equality": 1 << 1, "actuation": 1 << 11}
"""Bits of MuJoCo's option `disableflags`."""
LOOPS, TENDON = (0, 1, 2), 3
"""MuJoCo's numbers of the equalities connect, weld and joint, and of the equality of tendons."""
AFFINE = 1
"""MuJoCo's number of an actuator's bias that is affine in length and velocity."""
EFFECTS = {
    "kp": "pulls the joint away from its target",
    "kv": "drives the joint away from its target",
    "armature": "is no inertia",
}
"""What a negative coefficient does; the others add energy."""
MARGIN = 1.05
"""Full effort over dry friction up to which a drive is reported [-]."""
BEYOND = 0.1
"""Distance of a control beyond its range, over the range, from which it is reported [-]."""
HELD = 1e-6
"""Weight that no drive carries, over the whole weight, below which the drives carry it [-]."""


def drive_findings(description: Description, starts: Mapping[str, Array], *, is_large: bool) -> Iterator[Finding]:
    """Findings on forces.

    Args:
        starts: Start poses of the file, each of shape (nq,).
        is_large: Whether the poses of the mechanism are too costly to judge.
    """
    yield from _flags(description)
    yield from _negative(description)
    yield from _frictions(description)
    yield from _controls(description.compiled)
    if not is_large:
        yield from _weights(description.mechanism, starts)


def _flags(description: Description) -> Iterator[Finding]:
    """Loops or drives that a flag switches off; equalities of cloth are no loops."""
    m = description.compiled
    is_loop = np.isin(m.eq_type, (*LOOPS, TENDON)) & (m.eq_active0 != 0)
    loops, drives = int(is_loop.sum()), len(names_of_actuators(m))
    what = {
        "constraint": number_of(loops, "equality", "equalities"),
        "equality": number_of(loops, "equality", "equalities"),
        "actuation": number_of(drives, "actuator"),
    }
    for name, bit in FLAGS.items():
        if m.opt.disableflags & bit and (drives if name == "actuation" else loops):
            yield Finding(
                code="LC108",
                element="flag",
                message=f"the option flag {name}='disable' switches off {what[name]}",
                advice=f'Remove {name}="disable" from <flag>.',
            )


def _negative(description: Description) -> Iterator[Finding]:
    """Coefficients whose sign adds energy or reverses a servo."""
    m = description.compiled
    of_joints = tuple(m.joint(int(j)).name for j in m.dof_jntid)
    actuators, of_tendons = names_of_actuators(m), tuple(m.tendon(i).name for i in range(m.ntendon))
    arrays = [("joint", name, of_joints, getattr(m, f"dof_{name}")) for name in ("damping", "armature", "frictionloss")]
    arrays += [
        ("tendon", name, of_tendons, getattr(m, f"tendon_{name}")) for name in ("damping", "armature", "frictionloss")
    ]
    arrays += [("actuator", name, actuators, getattr(m, f"actuator_{name}")) for name in ("damping", "armature")]
    is_servo = (m.actuator_biastype == AFFINE) & (m.actuator_biasprm[:, 0] == 0)  # with a constant it is a force law
    for name, column in (("kp", 1), ("kv", 2)):
        back, gain = m.actuator_biasprm[:, column], m.actuator_gainprm[:, 0]
        is_mirrored = (gain == back) & (gain < 0)  # pulls to the negative of its control
        arrays.append(("actuator", name, actuators, np.where(is_servo, np.where(is_mirrored, gain, -back), 0.0)))
    seen = set()
    for kind, name, names, values in arrays:
        for k in np.flatnonzero(np.asarray(values) < 0):
            element = f"{kind} '{names[k]}'"
            if (element, name) not in seen:
                seen.add((element, name))
                effect = EFFECTS.get(name, "adds energy")
                yield Finding(
                    code="LC109",
                    element=element,
                    message=f"the {name} of {element} is {values[k]:.3g}, which {effect}; must not be negative",
                    advice=f"Write {-values[k]:.3g} if the size is right.",
                )


def _frictions(description: Description) -> Iterator[Finding]:
    """Joints and tendons whose drives together hardly exceed their dry friction, or do not."""
    mechanism, m = description.mechanism, description.compiled
    frictions = {
        ("joint", joint.name): joint.friction for joint in mechanism.joints if joint.kind in ("hinge", "slide")
    }
    frictions |= {("tendon", m.tendon(i).name): float(m.tendon_frictionloss[i]) for i in range(m.ntendon)}
    efforts: dict[tuple[str, str], float] = {}
    for actuator in mechanism.actuators:
        first = mechanism.joints[actuator.coordinate.joints[0]]
        is_joint = first.name == actuator.coordinate.name and first.body != WORLD
        key = ("joint" if is_joint else "tendon", actuator.coordinate.name)
        efforts[key] = efforts.get(key, 0.0) + abs(actuator.gear) * full_effort(actuator)
        if key[0] == "tendon":  # it helps the motors of its joints
            for j in actuator.coordinate.joints:
                efforts[("joint", mechanism.joints[j].name)] = np.inf
    for (kind, name), effort in efforts.items():
        friction = frictions.get((kind, name), 0.0)
        if friction <= 0 or effort > MARGIN * friction:
            continue
        unit = next((joint.effort_unit for joint in mechanism.joints if (kind, joint.name) == ("joint", name)), "N")
        drives = [a.name for a in mechanism.actuators if a.coordinate.name == name]
        yield Finding(
            code="LC110" if effort < friction else "LC214",
            element=f"actuator '{drives[0]}'",
            extent=friction / max(effort, 1e-300),
            message=f"the full effort on {kind} '{name}' is {effort:.3g} {unit}, its dry friction {friction:.3g} "
            f"{unit}",
            advice=f"Raise the limit of '{drives[0]}' above {friction:.3g} {unit}, or correct the frictionloss of "
            f"'{name}'.",
        )


def full_effort(actuator: Actuator) -> float:
    """Largest effort of an actuator within its limits; infinite without limits [N or N m]."""
    return min((max(abs(limit.low), abs(limit.high)) for limit in actuator.limits), default=np.inf)


def _controls(m: Any) -> Iterator[Finding]:
    """Controls of keyframes outside their ranges; zeros may be unset."""
    for i, name in enumerate(names_of_actuators(m)):
        c = int(m.actuator_ctrladr[i])
        low, high = m.actuator_ctrlrange[c]
        if not m.actuator_ctrllimited[c] or not high > low:
            continue
        beyond = np.maximum(low - m.key_ctrl[:, c], m.key_ctrl[:, c] - high) / (high - low)
        keys = np.flatnonzero((beyond > BEYOND) & (m.key_ctrl[:, c] != 0))
        if keys.size:
            k = int(keys[np.argmax(beyond[keys])])
            key = m.key(k).name or f"key{k}"
            yield Finding(
                code="LC218",
                element=f"actuator '{name}'",
                extent=float(beyond[k]),
                message=f"keyframe '{key}' sets the control of actuator '{name}' to {m.key_ctrl[k, c]:.4g}, outside "
                "its "
                f"range {low:.4g} to {high:.4g}, where MuJoCo clamps it",
                advice=f"Correct the ctrl of keyframe '{key}' or the ctrlrange of '{name}'.",
            )


def _weights(mechanism: Mechanism, starts: Mapping[str, Array]) -> Iterator[Finding]:
    """Drives that cannot hold the weight of the robot in a start pose.

    Parts with springs, which may hold it, and parts whose weight no effort holds (floating, or swinging) are left out.
    """
    limits = np.array([full_effort(actuator) for actuator in mechanism.actuators])
    if not np.isfinite(limits).any() or not mechanism.gravity.any() or mechanism.point_springs:
        return
    parts = [part for part in _driven_parts(mechanism) if not _has_spring(mechanism, part)]
    worst: dict[int, tuple[float, str, float]] = {}
    for name, start in starts.items() if parts else ():
        q = closed_near(mechanism, start)
        efforts = None if q is None else _holding(mechanism, q, parts, limits)
        for k, effort in enumerate([] if efforts is None else efforts):
            share = abs(effort) / limits[k] if limits[k] else np.inf * abs(effort)
            if share > max(1.0, worst.get(k, (0.0, "", 0.0))[0]) * (1 + HELD):
                worst[k] = (share, name, effort)
    for k, (share, name, effort) in worst.items():
        actuator, unit = mechanism.actuators[k], mechanism.actuator_units[k]
        yield Finding(
            code="LC215",
            element=f"actuator '{actuator.name}'",
            extent=float(share),
            message=f"actuator '{actuator.name}' needs {abs(effort):.3g} {unit} to hold the weight in {name} and has "
            "at "
            f"most {limits[k]:.3g} {unit}",
            advice=f"Raise the limit of '{actuator.name}' above {abs(effort):.3g} {unit}, or correct the masses that "
            "it "
            "carries (kg).",
        )


def _driven_parts(mechanism: Mechanism) -> list[set[int]]:
    """Joints of the trees, joined by closures, that drives move."""
    roots = [mechanism.way(b)[-2] for b in range(len(mechanism.bodies))]
    slides = {j: -2 - j for j, joint in enumerate(mechanism.joints) if joint.body == WORLD}  # roots of their own
    root_of = {j: slides.get(j, roots[joint.body]) for j, joint in enumerate(mechanism.joints)}
    group = {root: root for root in root_of.values()} | {root: root for root in roots}

    def top(root: int) -> int:
        while group[root] != root:
            root = group[root]
        return root

    def join(members: list[int]) -> None:
        for one in members[1:]:
            group[top(one)] = top(members[0])

    for closure in mechanism.closures:
        if isinstance(closure, CoordinateClosure):
            ends = (*closure.follower.joints, *(closure.leader.joints if closure.leader else ()))
            join([root_of[j] for j in ends])
        else:
            joined = [roots[body] for body in bodies_of(closure) if body != WORLD]
            join([*joined, *(slides[j] for j in slides if isinstance(closure, PathClosure) and closure.slide == j)])
    for actuator in mechanism.actuators:
        join([root_of[j] for j in actuator.coordinate.joints])
    driven = dict.fromkeys(top(root_of[j]) for actuator in mechanism.actuators for j in actuator.coordinate.joints)
    return [{j for j, root in root_of.items() if top(root) == part} for part in driven]


def _has_spring(mechanism: Mechanism, part: set[int]) -> bool:
    tendons = [tendon for tendon in mechanism.tendons if tendon.stiffness]
    return any(mechanism.joints[j].stiffness for j in part) or any(part & {*t.length.joints} for t in tendons)


def _holding(mechanism: Mechanism, q: JointPositions, parts: list[set[int]], limits: Array) -> Array:
    """Efforts that hold the weight at rest, with the smallest largest share of the limits, shape (na,)."""
    state, units = State.at_rest(mechanism, q[None]), unit_rates(mechanism)
    weight = units * np.einsum("biv,bi->v", state.K[0, :, 3:], mechanism.stacked.weights)
    Phi = state.Phi * units
    Phi = (row_factors_of_closures(mechanism, Phi) * Phi)[0]
    S, efforts = mechanism.selection * units, np.zeros(mechanism.na)
    for part in parts:
        dofs = np.array([d for j in sorted(part) for d in range(*mechanism.dof_slices[j].indices(mechanism.nv))])
        mine = np.flatnonzero(np.abs(S[:, dofs]).max(axis=1) > 0)
        rows = Phi[:, dofs]
        _, values, V_T = svd(rows) if rows.size else (None, np.zeros(0), np.eye(len(dofs)))
        N = V_T[rank_of(values) :].T
        A, b = N.T @ S[np.ix_(mine, dofs)].T, -N.T @ weight[dofs]
        efforts[mine] = _least_share(A, b, limits[mine])
    return efforts


def _least_share(A: Array, b: Array, limits: Array) -> Array:
    """Efforts with A τ = b and the smallest largest share of the limits; zeros if none exist.

    Args:
        A: Motion of each actuator per motion of the loops [-], shape (dof, na).
        b: Forces to balance [N or N m], shape (dof,).
        limits: Largest effort of each [N or N m], shape (na,).
    """
    weights = np.where(
        np.isfinite(limits), np.maximum(limits, 1e-12), 1e6 * max(1.0, float(np.abs(b).max(initial=0.0)))
    )
    scaled: AnyArray = A * weights
    share = np.linalg.lstsq(scaled, b, rcond=1e-9)[0] if b.size else np.zeros(len(limits))
    if np.linalg.norm(scaled @ share - b) > HELD * np.linalg.norm(b):
        return np.zeros(len(limits))
    if np.abs(share).max(initial=0.0) > 1 and len(limits) > np.linalg.matrix_rank(scaled, rtol=1e-9):
        from scipy.optimize import linprog  # few files have drives that share a weight above their limits

        n = len(limits)
        bounds = np.concatenate([np.concatenate([np.eye(n), -np.eye(n)]), -np.ones((2 * n, 1))], axis=1)
        exact = np.concatenate([scaled, np.zeros((len(b), 1))], axis=1)
        cost, free = np.append(np.zeros(n), 1.0), [(None, None)] * n + [(0, None)]
        best = linprog(cost, A_ub=bounds, b_ub=np.zeros(2 * n), A_eq=exact, b_eq=b, bounds=free)
        share = share if best.x is None else best.x[:n]
    return np.asarray(share * weights, dtype=np.float64)
