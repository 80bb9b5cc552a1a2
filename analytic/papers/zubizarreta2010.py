"""Zubizarreta et al. 2010: Lagrangian model of the planar 3-RRR with sensed passive joints, equations (27) to (58).

Task coordinates x = (x, y, θ_z) of P; active joints q_a from the X axis; passive, sensed joints q_p relative to them;
q = (q_a, q_p). Platform and serial chains are two subsystems, joined by J_C; T = ∂q/∂q_a. The model comes in active
joints, and redundantly in active and sensed joints (58), with 3×6 matrices.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.papers import AS_CORRECTED, read_errata, want_known, want_plain
from loopcheck.robots.arrays import Array, PlanarPoses
from loopcheck.robots.errors import LoopClosureError, NotRepresentableError
from loopcheck.robots.mechanism import Body, ConnectClosure, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

ERRATA = read_errata(__file__)

PHI = np.pi / 6 * np.array([1.0, 5.0, 9.0])
"""Directions φ_i of P from the platform's joints C_i (28) [rad]."""
NEXT = np.array([1, 2, 0])
"""Leg i + 1."""
ROUND_OFF = 1e-13
"""Largest residual of the closure equations (30) [m²]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Table I: lengths [m], masses [kg] and central moments of inertia [kg m²]; arrays have an entry for each leg."""

    OA: Array
    """Base points A_i [m], shape (3, 2)."""
    L: Array
    """Lengths of the proximal links A_iB_i, shape (3,)."""
    l: Array
    """Lengths of the distal links B_iC_i, shape (3,)."""
    d: Array
    """Distances C_iP on the platform, shape (3,)."""
    lcL: Array
    """Mass centres of the proximal links from A_i, shape (3,)."""
    lcl: Array
    """Mass centres of the distal links from B_i, shape (3,)."""
    mL: Array
    """Masses of the proximal links, shape (3,)."""
    ml: Array
    """Masses of the distal links, shape (3,)."""
    ms: Array
    """Masses of the sensors at B_i, shape (3,)."""
    IL: Array
    """Moments of inertia of the proximal links, shape (3,)."""
    Il: Array
    """Moments of inertia of the distal links, shape (3,)."""
    Is: Array
    """Moments of inertia of the sensors, shape (3,)."""
    mp: float
    """Mass of the platform."""
    mc: float
    """Mass of the load."""
    Ip: float
    """Moment of inertia of the platform."""
    Ic: float
    """Moment of inertia of the load."""

    @property
    def h(self) -> Array:
        """Sides h_{i(i+1)} of the platform [m], shape (3,)."""
        C = self.d[:, None] * _u(PHI)
        return np.linalg.norm(C - C[NEXT], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinematics:
    """Jacobians of the velocity and acceleration problems, and their rates."""

    J_C: Array
    """Constraint matrix (39), ẋ = J_C q̇ [m/rad or -], shape (nt, 3, 6)."""
    J_C_dot: Array
    """Its rate (43), shape (nt, 3, 6)."""
    T: Array
    """Transformation matrix (41), q̇ = T q̇a [-], shape (nt, 6, 3)."""
    T_dot: Array
    """Its rate (45) [1/s], shape (nt, 6, 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The terms of D q̈ + C q̇ + G = τ, in the coordinates that the columns stand for."""

    D: Array
    """Inertia [kg m²], shape (nt, 3, 6) or (nt, 3, 3)."""
    C: Array
    """Coriolis and centrifugal [kg m²/s], the shape of D."""
    G: Array
    """Gravity [N m], shape (nt, 3)."""


def parameters(mechanism: Mechanism) -> Parameters:
    """The paper's parameters of the model, which must have the paper's bodies and symmetry.

    Raises:
        NotRepresentableError: If a body or closure is missing, a point is off its place, or a joint has an element that
            the
            paper's model lacks.
    """
    bodies = {body.name: body for body in mechanism.bodies}
    legs = [[f"{part}{i}" for i in (1, 2, 3)] for part in ("proximal", "distal", "sensor")]
    for name in (*legs[0], *legs[1], *legs[2], "platform", "load"):
        if name not in bodies:
            raise NotRepresentableError(f"analytic/paper: the 3-RRR of the paper must have a body '{name}'")
    proximal, distal, sensor = ([bodies[name] for name in names] for names in legs)
    platform, load = bodies["platform"], bodies["load"]
    P = mechanism.site("P").position
    corners = np.array([mechanism.site(f"platform{i}").position for i in (1, 2, 3)])
    ends = np.array([mechanism.site(f"distal{i}_end").position for i in (1, 2, 3)])
    p = Parameters(
        OA=np.array([body.position[:2] for body in proximal]),
        L=np.array([body.position[0] for body in distal]),
        l=ends[:, 0],
        d=np.linalg.norm(P - corners, axis=1),
        lcL=np.array([body.center[0] for body in proximal]),
        lcl=np.array([body.center[0] for body in distal]),
        mL=np.array([body.mass for body in proximal]),
        ml=np.array([body.mass for body in distal]),
        ms=np.array([body.mass for body in sensor]),
        IL=np.array([body.inertia[2, 2] for body in proximal]),
        Il=np.array([body.inertia[2, 2] for body in distal]),
        Is=np.array([body.inertia[2, 2] for body in sensor]),
        mp=platform.mass,
        mc=load.mass,
        Ip=float(platform.inertia[2, 2]),
        Ic=float(load.inertia[2, 2]),
    )
    for what, got, required in (
        ("distal links", np.array([body.position[:2] for body in distal]), _along_x(p.L)),
        ("sensors", np.array([body.position + body.center for body in sensor])[:, :2], _along_x(p.L)),
        ("ends of the distal links", ends[:, :2], _along_x(p.l)),
        ("the platform's origin", platform.position[:2], _along_x(p.l)[0]),
        ("joints of the platform", (P - corners)[:, :2], p.d[:, None] * _u(PHI)),
        ("mass centres of the proximal links", np.array([body.center[:2] for body in proximal]), _along_x(p.lcL)),
        ("mass centres of the distal links", np.array([body.center[:2] for body in distal]), _along_x(p.lcl)),
        ("mass centre of the platform", platform.center[:2], P[:2]),
        ("mass centre of the load", (load.position + load.center)[:2], P[:2]),
    ):
        if np.abs(got - required).max() > ROUND_OFF:
            raise NotRepresentableError(f"analytic/paper: {what} must be at {required} m as in the paper, got {got} m")
    want_plain(mechanism)
    for what in _beyond_the_paper(mechanism, [*proximal, *distal, platform]):
        raise NotRepresentableError(f"analytic/paper: the model of the paper does not include: {what}")
    return p


def _beyond_the_paper(mechanism: Mechanism, links: list[Body]) -> Iterator[str]:
    """Elements of the model that the paper's model lacks."""
    loops = [closure.name for closure in mechanism.closures if isinstance(closure, ConnectClosure)]
    if sorted(loops) != ["qc2", "qc3"] or len(mechanism.closures) != 2:
        yield "closures other than 'qc2' and 'qc3'"
    yield from (f"rotated frame of '{body.name}'" for body in links if not np.array_equal(body.rotation, np.eye(3)))
    if mechanism.gravity[0]:
        yield "gravity along X"


def efforts(case: Case, motion: Motion, printed: Set[str] = AS_CORRECTED) -> Array:
    """Torques of the three motors by the model in active joints, (28) to (57) with T_q = T.

    The motors' motion is given; passive joints follow by (30), the pose by (31) to (34), and the joints once more by
    the inverse position problem (35), (36), as the paper derives its trajectories.

    Args:
        case: The 3-RRR in a variant, mode and configuration.
        motion: The prescribed motion; only that of the motors is used.
        printed: Keys of errata that are left as printed.

    Returns:
        Efforts [N m], shape (nt, 3).

    Raises:
        NotFoundError: If an erratum is unknown.
        LoopClosureError: If the paper's position problem has no solution near the guess.
    """
    want_known(printed, ERRATA)
    p, drive = parameters(case.mechanism), motion.law(motion.t)
    x, q = positions(p, drive.q, passive_guess(case), printed)
    qd = _times(transformation(p, q, printed), drive.qd)  # (41)
    model = active_model(p, x, q, qd, g=-float(case.mechanism.gravity[1]), printed=printed)
    return _times(model.D, drive.qdd) + _times(model.C, drive.qd) + model.G


def redundant_efforts(case: Case, motion: Motion) -> Array:
    """The same torques by the model in active and sensed passive joints (58).

    Args:
        case: The 3-RRR in a variant, mode and configuration.
        motion: The prescribed motion; only that of the motors is used.

    Returns:
        Efforts [N m], shape (nt, 3).
    """
    p, drive = parameters(case.mechanism), motion.law(motion.t)
    x, q = positions(p, drive.q, passive_guess(case))
    qd = _times(transformation(p, q), drive.qd)
    kinematics = kinematics_of(p, x, q, qd)
    qdd = _times(kinematics.T, drive.qdd) + _times(kinematics.T_dot, drive.qd)  # (45)
    model = redundant_model(p, x, q, qd, g=-float(case.mechanism.gravity[1]))
    return _times(model.D, qdd) + _times(model.C, qd) + model.G


def passive_guess(case: Case) -> Array:
    """Positions of the passive joints in the starting guess of a case [rad], shape (3,)."""
    joints = {joint.name: k for k, joint in enumerate(case.mechanism.joints)}
    return np.array([case.guess[case.mechanism.q_slices[joints[f"qp{i}"]].start] for i in (1, 2, 3)])


def closure_active(p: Parameters, x: PlanarPoses, qa: Array) -> Array:
    """Closure equations Φ of task coordinates and active joints (28).

    Args:
        qa: Active joints [rad], shape (nt, 3).

    Returns:
        Φ [m²], shape (nt, 3).
    """
    return (_distal(p, x, qa) ** 2).sum(-1) - p.l**2


def closure_chains(p: Parameters, x: PlanarPoses, q: Array) -> Array:
    """Closure equations Γ of task coordinates and all joints (27), a chain after the other.

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).

    Returns:
        Γ [m], shape (nt, 6).
    """
    return (corners(p, q) + p.d[:, None] * _u(x[:, 2:] + PHI) - x[:, None, :2]).reshape(-1, 6)


def closure_passive(p: Parameters, q: Array, printed: Set[str] = AS_CORRECTED) -> Array:
    """Closure equations f of active and passive joints (30).

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        printed: Keys of errata that are left as printed.

    Returns:
        f [m²], shape (nt, 3).
    """
    return (_side(p, q, printed) ** 2).sum(-1) - p.h**2


def corners(p: Parameters, q: Array) -> Array:
    """Corners OC_i of the platform from the joints (31).

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).

    Returns:
        OC_i [m], shape (nt, 3, 2).
    """
    return p.OA + p.L[:, None] * _u(q[:, :3]) + p.l[:, None] * _u(q[:, :3] + q[:, 3:])


def direct_position(p: Parameters, q: Array, printed: Set[str] = AS_CORRECTED) -> PlanarPoses:
    """Pose from all joints, averaged over the legs (31) to (34); exact if all d_i are equal.

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        printed: Keys of errata that are left as printed.
    """
    OC = corners(p, q)
    OP = OC.mean(axis=1)  # (32)
    CP = OP[:, None] - OC  # (33)
    if "arctangents" in printed:
        with np.errstate(divide="ignore"):  # a vertical arm is at a quarter turn
            theta = (np.arctan(CP[..., 1] / CP[..., 0]).sum(-1) - 5 * np.pi / 2) / 3
    else:
        theta = np.remainder(np.arctan2(CP[..., 1], CP[..., 0]) - PHI + np.pi, 2 * np.pi).mean(-1) - np.pi
    return np.concatenate([OP, theta[:, None]], axis=1)  # (34)


def inverse_position(p: Parameters, x: PlanarPoses, elbow: Array, printed: Set[str] = AS_CORRECTED) -> Array:
    """Joints from the pose (35), (36), each angle continued from sample to sample.

    Args:
        elbow: Sign of sin q_p of each leg, which identifies the working mode [-], shape (3,).
        printed: Keys of errata that are left as printed.

    Returns:
        Joints q_a, q_p [rad], shape (nt, 6).

    Raises:
        LoopClosureError: If the pose is out of reach.
    """
    reach = p.d[:, None] * _u(x[:, 2:] + PHI)
    K = x[:, None, :2] - p.OA - reach
    if "k_y" in printed:
        K[..., 1] = x[:, :1] - p.OA[:, 1] - reach[..., 1]
    qa = np.unwrap(_half_angle(K, (p.l**2 - (K**2).sum(-1) - p.L**2) / (-2 * p.L), elbow), axis=0)
    K_p = x[:, None, :2] - p.L[:, None] * _u(qa) - reach
    if "k_py" in printed:
        K_p[..., 1] = x[:, :1] - p.L * np.sin(qa) - reach[..., 1]
    arm = K_p - p.OA
    absolute = np.arctan2(arm[..., 1], arm[..., 0])
    if printed & {"k_p", "passive_root"}:
        length = p.L if "k_p" in printed else p.l
        K_i = ((p.OA**2).sum(-1) - (K_p**2).sum(-1) - length**2) / (-2 * length)
        roots = np.stack([_half_angle(K_p, K_i, sign * np.ones(3)) for sign in (1, -1)])
        distance = np.abs(np.remainder(roots - absolute + np.pi, 2 * np.pi) - np.pi)
        choice = distance[0] > distance[1] if "passive_root" not in printed else distance[0] <= distance[1]
        absolute = np.where(choice, roots[1], roots[0])
    qp = np.unwrap(absolute - qa, axis=0)
    turns = 2 * np.pi * np.round(qp[0] / (2 * np.pi))
    return np.concatenate([qa, qp - turns], axis=1)


def positions(p: Parameters, qa: Array, guess: Array, printed: Set[str] = AS_CORRECTED) -> tuple[Array, Array]:
    """Pose and all joints from the active joints: (30) by Newton's method, (31) to (34), then (35), (36).

    Args:
        qa: Active joints [rad], shape (nt, 3).
        guess: Passive joints near the first sample [rad], shape (3,).
        printed: Keys of errata that are left as printed.

    Returns:
        Task coordinates [m, m, rad], shape (nt, 3), and joints [rad], shape (nt, 6).

    Raises:
        LoopClosureError: If Newton's method does not converge, or the pose is out of reach.
    """
    q = np.zeros((len(qa), 6))
    for k, active in enumerate(qa):
        passive = passive_joints(p, active[None], (q[k - 1, 3:] if k else guess)[None], printed)
        q[k] = passive[0]
        residual = float(np.abs(closure_passive(p, passive, printed)).max())
        if not residual < ROUND_OFF:
            raise LoopClosureError(
                f"analytic/paper: equation (30) has no solution near sample {k}: residual {residual:.3g} m²",
                residual=residual,
                tolerance=ROUND_OFF,
                time=float("nan"),
            )
    x = direct_position(p, q, printed)
    again = inverse_position(p, x, np.sign(np.sin(guess)), printed)
    return x, again


def passive_joints(
    p: Parameters, qa: Array, guess: Array, printed: Set[str] = AS_CORRECTED, *, iterations: int = 20
) -> Array:
    """Solve (30) for the passive joints by Newton's method, all samples at once.

    Args:
        qa: Active joints [rad], shape (nt, 3).
        guess: Passive joints near the solution [rad], shape (nt, 3).
        printed: Keys of errata that are left as printed.
        iterations: Largest number of iterations [-].

    Returns:
        Joints q_a, q_p [rad], shape (nt, 6); unconverged samples violate (30).
    """
    q = np.concatenate([qa, guess], axis=1)
    for _ in range(iterations):
        f = closure_passive(p, q, printed)
        if not np.abs(f).max() > ROUND_OFF / 100:
            break
        q[:, 3:] -= np.linalg.solve(passive_jacobians(p, q, printed)[1], f[..., None])[..., 0]
    return q


def active_jacobians(p: Parameters, x: PlanarPoses, qa: Array) -> tuple[Array, Array]:
    """J_xa and J_qa, the derivatives of (28) (37).

    Args:
        qa: Active joints [rad], shape (nt, 3).

    Returns:
        J_xa [m or m²] and J_qa [m²], both of shape (nt, 3, 3).
    """
    s = 2 * _distal(p, x, qa)
    turned = _dot(s, -p.d[:, None] * _perpendicular(_u(x[:, 2:] + PHI)))
    J_qa = _dot(s, -p.L[:, None] * _perpendicular(_u(qa)))
    return np.concatenate([s, turned[..., None]], axis=2), J_qa[:, None] * np.eye(3)


def active_jacobian_rates(p: Parameters, x: PlanarPoses, qa: Array, xd: Array, qad: Array) -> tuple[Array, Array]:
    """Rates of J_xa and J_qa (42).

    Args:
        qa: Active joints [rad], shape (nt, 3).
        xd: Rates of the task coordinates [m/s, m/s, rad/s], shape (nt, 3).
        qad: Rates of the active joints [rad/s], shape (nt, 3).

    Returns:
        Rates of J_xa [m/s or m²/s] and J_qa [m²/s], both of shape (nt, 3, 3).
    """
    arm, link = p.d[:, None] * _u(x[:, 2:] + PHI), p.L[:, None] * _u(qa)
    turning, rate = xd[:, 2, None, None], qad[..., None]
    s = 2 * _distal(p, x, qa)
    s_dot = 2 * (xd[:, None, :2] - _perpendicular(link) * rate - _perpendicular(arm) * turning)
    turned = _dot(s_dot, -_perpendicular(arm)) + _dot(s, arm * turning)
    J_qa_dot = _dot(s_dot, -_perpendicular(link)) + _dot(s, link * rate)
    return np.concatenate([s_dot, turned[..., None]], axis=2), J_qa_dot[:, None] * np.eye(3)


def chain_jacobians(p: Parameters, x: PlanarPoses, q: Array) -> tuple[Array, Array]:
    """J_x and J_q, the derivatives of (27) (38).

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).

    Returns:
        J_x [- or m/rad], shape (nt, 6, 3), and J_q [m/rad], shape (nt, 6, 6).
    """
    links = p.L[:, None] * _u(q[:, :3]), p.l[:, None] * _u(q[:, :3] + q[:, 3:])
    arm = p.d[:, None] * _u(x[:, 2:] + PHI)
    return _chain_rows(_perpendicular(arm), *map(_perpendicular, links), moving=1.0)


def chain_jacobian_rates(p: Parameters, x: PlanarPoses, q: Array, xd: Array, qd: Array) -> tuple[Array, Array]:
    """Rates of J_x and J_q (43).

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        xd: Rates of the task coordinates [m/s, m/s, rad/s], shape (nt, 3).
        qd: Rates of the joints [rad/s], shape (nt, 6).

    Returns:
        Rate of J_x [1/s or m/rad/s], shape (nt, 6, 3), and of J_q [m/rad/s], shape (nt, 6, 6).
    """
    near = -p.L[:, None] * _u(q[:, :3]) * qd[:, :3, None]
    far = -p.l[:, None] * _u(q[:, :3] + q[:, 3:]) * (qd[:, :3] + qd[:, 3:])[..., None]
    return _chain_rows(-p.d[:, None] * _u(x[:, 2:] + PHI) * xd[:, 2, None, None], near, far, moving=0.0)


def passive_jacobians(p: Parameters, q: Array, printed: Set[str] = AS_CORRECTED) -> tuple[Array, Array]:
    """J_qas and J_qs, the derivatives of (30) (40).

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        printed: Keys of errata that are left as printed.

    Returns:
        J_qas and J_qs [m²/rad], both of shape (nt, 3, 3).
    """
    c = 2 * _side(p, q, printed)
    return tuple(_pair_rows(c, *arms) for arms in _arms(p, q, printed))  # type: ignore[return-value]


def passive_jacobian_rates(p: Parameters, q: Array, qd: Array, printed: Set[str] = AS_CORRECTED) -> tuple[Array, Array]:
    """Rates of J_qas and J_qs (44).

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        qd: Their rates [rad/s], shape (nt, 6).
        printed: Keys of errata that are left as printed.

    Returns:
        Rates of J_qas and J_qs [m²/rad/s], both of shape (nt, 3, 3).
    """
    arms, rates = _arms(p, q, printed), _arm_rates(p, q, qd, printed)
    (near_a, far_a), (near_p, far_p) = arms
    active, passive = qd[:, :3, None], qd[:, 3:, None]
    c = 2 * _side(p, q, printed)
    c_dot = 2 * (near_a * active + near_p * passive - far_a * active[:, NEXT] - far_p * passive[:, NEXT])
    return tuple(  # type: ignore[return-value]
        _pair_rows(c_dot, *arm) + _pair_rows(c, *rate) for arm, rate in zip(arms, rates, strict=True)
    )


def transformation(p: Parameters, q: Array, printed: Set[str] = AS_CORRECTED) -> Array:
    """T of q̇ = T q̇a (41).

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        printed: Keys of errata that are left as printed.

    Returns:
        T [-], shape (nt, 6, 3).
    """
    J_qas, J_qs = passive_jacobians(p, q, printed)
    return np.concatenate([np.broadcast_to(np.eye(3), J_qas.shape), -np.linalg.solve(J_qs, J_qas)], axis=1)


def kinematics_of(p: Parameters, x: PlanarPoses, q: Array, qd: Array, printed: Set[str] = AS_CORRECTED) -> Kinematics:
    """J_C (39) and T (41) with their rates (43) to (45).

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        qd: Their rates [rad/s], shape (nt, 6).
        printed: Keys of errata that are left as printed.
    """
    J_x, J_q = chain_jacobians(p, x, q)
    J_x_T = J_x.swapaxes(1, 2)
    gram = np.linalg.inv(J_x_T @ J_x)
    inverse = gram @ J_x_T  # (11)
    J_C = -inverse @ J_q
    J_x_dot, J_q_dot = chain_jacobian_rates(p, x, q, _times(J_C, qd), qd)
    left_over = J_q + J_x @ J_C  # what the chains disagree by: none if q closes the loops
    J_C_dot = -inverse @ (J_q_dot + J_x_dot @ J_C) - gram @ J_x_dot.swapaxes(1, 2) @ left_over
    T = transformation(p, q, printed)
    J_qas_dot, J_qs_dot = passive_jacobian_rates(p, q, qd, printed)
    T_dot = np.zeros_like(T)
    T_dot[:, 3:] = -np.linalg.solve(passive_jacobians(p, q, printed)[1], J_qas_dot + J_qs_dot @ T[:, 3:])
    return Kinematics(J_C=J_C, J_C_dot=J_C_dot, T=T, T_dot=T_dot)


def platform_model(p: Parameters, *, g: float, printed: Set[str] = AS_CORRECTED) -> tuple[Array, Array]:
    """D_x and G_x of the platform subsystem (46), (52).

    Args:
        g: Gravity along −Y [m/s²].
        printed: Keys of errata that are left as printed.

    Returns:
        D_x [kg or kg m²], shape (3, 3), and G_x [N or N m], shape (3,).
    """
    weighing = p.mp if "platform_weight" in printed else p.mp + p.mc
    return np.diag([p.mp + p.mc, p.mp + p.mc, p.Ip + p.Ic]), np.array([0.0, weighing * g, 0.0])


def chain_model(p: Parameters, q: Array, qd: Array, *, g: float, printed: Set[str] = AS_CORRECTED) -> Model:
    """D_q, C_q and G_q of the serial subchains (54) to (57), in all six joints.

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        qd: Their rates [rad/s], shape (nt, 6).
        g: Gravity along −Y [m/s²].
        printed: Keys of errata that are left as printed.

    Returns:
        The terms, of shapes (nt, 6, 6), (nt, 6, 6) and (nt, 6).
    """
    (qa, qp), (qad, qpd) = np.split(q, 2, axis=1), np.split(qd, 2, axis=1)
    lcl = p.lcL if "distal_center" in printed else p.lcl
    d_a = p.mL * p.lcL**2 + p.ms * p.L**2 + p.ml * (p.L**2 + lcl**2 + 2 * p.L * lcl * np.cos(qp)) + p.IL + p.Il + p.Is
    d_ap = p.ml * (lcl**2 + p.L * lcl * np.cos(qp)) + (0.0 if "lagrangian_cross" in printed else p.Il)
    d_p = p.mL * p.lcL**2 + p.IL if "lagrangian_passive" in printed else p.ml * lcl**2 + p.Il
    h = -p.ml * p.L * lcl * np.sin(qp)
    D, C = np.zeros((len(q), 6, 6)), np.zeros((len(q), 6, 6))
    a, s = np.arange(3), np.arange(3, 6)
    D[:, a, a], D[:, a, s], D[:, s, a], D[:, s, s] = d_a, d_ap, d_ap, d_p
    C[:, a, a], C[:, a, s] = h * qpd, h * (qad + qpd)
    C[:, s, a] = (1 if "c_passive" in printed else -1) * h * qad
    distal = p.ml * lcl * g
    g_a = (p.mL * p.lcL + p.ml * p.L + p.ms * p.L) * g * np.cos(qa) + distal * np.cos(qa + qp)
    g_p = distal * (np.cos(qa) + np.cos(qp) if "g_passive" in printed else np.cos(qa + qp))
    return Model(D=D, C=C, G=np.concatenate([g_a, g_p], axis=1))


def redundant_model(
    p: Parameters, x: PlanarPoses, q: Array, qd: Array, *, g: float, printed: Set[str] = AS_CORRECTED
) -> Model:
    """The model in active and sensed passive joints (58): D and C are 3×6.

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        qd: Their rates [rad/s], shape (nt, 6).
        g: Gravity along −Y [m/s²].
        printed: Keys of errata that are left as printed.
    """
    return _joined(p, q, qd, kinematics_of(p, x, q, qd, printed), g, printed)


def active_model(
    p: Parameters, x: PlanarPoses, q: Array, qd: Array, *, g: float, printed: Set[str] = AS_CORRECTED
) -> Model:
    """The model in active joints, (26) with T_q = T: D and C are 3×3.

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).
        qd: Their rates [rad/s], shape (nt, 6).
        g: Gravity along −Y [m/s²].
        printed: Keys of errata that are left as printed.
    """
    kinematics = kinematics_of(p, x, q, qd, printed)
    full = _joined(p, q, qd, kinematics, g, printed)
    return Model(D=full.D @ kinematics.T, C=full.C @ kinematics.T + full.D @ kinematics.T_dot, G=full.G)


def singularity_determinant(p: Parameters, x: PlanarPoses, q: Array) -> Array:
    """Determinant that vanishes if the locked motors do not hold the platform.

    Its rows are the forces along the distal links: unit vector of B_iC_i, moment about P divided by d_i.

    Args:
        q: Joints q_a, q_p [rad], shape (nt, 6).

    Returns:
        The determinant [-], shape (nt,).
    """
    along = _u(q[:, :3] + q[:, 3:])
    moment = _dot(along, -_perpendicular(_u(x[:, 2:] + PHI)))  # C_i − P = −d u, turned by a quarter
    return np.linalg.det(np.concatenate([along, moment[..., None]], axis=2))


def _joined(p: Parameters, q: Array, qd: Array, kinematics: Kinematics, g: float, printed: Set[str]) -> Model:
    """Both subsystems, projected by J_C and T (58)."""
    D_x, G_x = platform_model(p, g=g, printed=printed)
    chains = chain_model(p, q, qd, g=g, printed=printed)
    J_C_T, T_T = kinematics.J_C.swapaxes(1, 2), kinematics.T.swapaxes(1, 2)
    return Model(
        D=T_T @ (chains.D + J_C_T @ D_x @ kinematics.J_C),
        C=T_T @ (chains.C + J_C_T @ D_x @ kinematics.J_C_dot),
        G=_times(T_T, chains.G + J_C_T @ G_x),
    )


def _half_angle(K: Array, K_i: Array, sign: Array) -> Array:
    """The angle with K_x cos + K_y sin = K_i by the tangent of its half, as (35) and (36) solve it."""
    a, b, c = -K[..., 0] - K_i, 2 * K[..., 1], K[..., 0] - K_i
    discriminant = b**2 - 4 * a * c
    if not (discriminant >= 0).all():
        least = float(discriminant.min())
        raise LoopClosureError(
            f"analytic/paper: equations (35), (36) have no real root: discriminant {least:.3g} m²",
            residual=-least,
            tolerance=0.0,
            time=float("nan"),
        )
    return 2 * np.arctan2(-b + sign * np.sqrt(discriminant), 2 * a)


def _distal(p: Parameters, x: Array, qa: Array) -> Array:
    """B_iC_i from the pose and the active joints, (nt, 3, 2)."""
    return x[:, None, :2] - p.OA - p.L[:, None] * _u(qa) - p.d[:, None] * _u(x[:, 2:] + PHI)


def _side(p: Parameters, q: Array, printed: Set[str]) -> Array:
    """OC_i − OC_{i+1} as (30) writes it, (nt, 3, 2)."""
    _, (near_p, far_p) = _arms(p, q, printed)
    middle = p.OA + p.L[:, None] * _u(q[:, :3])
    return middle - middle[:, NEXT] - _perpendicular(near_p - far_p)  # a quarter turn back from E l u


def _arms(p: Parameters, q: Array, printed: Set[str]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Derivatives of OC_i and OC_{i+1} along their active joints, and along their passive joints, each (nt, 3, 2)."""
    link, u = p.L[:, None] * _u(q[:, :3]), _u(q[:, :3] + q[:, 3:])
    near, far = p.l[:, None] * u, (p.l if "next_link" in printed else p.l[NEXT])[:, None] * u[:, NEXT]
    E = _perpendicular
    return (E(link + near), E(link[:, NEXT] + far)), (E(near), E(far))


def _arm_rates(
    p: Parameters, q: Array, qd: Array, printed: Set[str]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Rates of `_arms`."""
    w = (qd[:, :3] + qd[:, 3:])[..., None]
    link, u = -p.L[:, None] * _u(q[:, :3]) * qd[:, :3, None], -_u(q[:, :3] + q[:, 3:]) * w
    near, far = p.l[:, None] * u, (p.l if "next_link" in printed else p.l[NEXT])[:, None] * u[:, NEXT]
    return (link + near, link[:, NEXT] + far), (near, far)


def _pair_rows(c: Array, near: Array, far: Array) -> Array:
    """Rows c_i · OC_i − c_i · OC_{i+1} of the derivatives along each leg, (nt, 3, 3)."""
    rows, i = np.zeros((len(c), 3, 3)), np.arange(3)
    rows[:, i, i], rows[:, i, NEXT] = _dot(c, near), -_dot(c, far)
    return rows


def _chain_rows(arm: Array, near: Array, far: Array, *, moving: float) -> tuple[Array, Array]:
    """Rows of J_x and J_q, or of their rates, from the derivatives of arm and links, each (nt, 3, 2)."""
    J_x, J_q, i = np.zeros((len(arm), 3, 2, 3)), np.zeros((len(arm), 3, 2, 6)), np.arange(3)
    J_x[..., :2], J_x[..., 2] = -moving * np.eye(2), arm
    J_q[:, i, :, i], J_q[:, i, :, i + 3] = (near + far).swapaxes(0, 1), far.swapaxes(0, 1)
    return J_x.reshape(-1, 6, 3), J_q.reshape(-1, 6, 6)


def _u(angle: Array) -> Array:
    """Unit vectors (cos, sin), on a new last axis."""
    return _pairs(np.cos(angle), np.sin(angle))


def _perpendicular(vectors: Array) -> Array:
    """Vectors turned by a quarter to the left."""
    return _pairs(-vectors[..., 1], vectors[..., 0])


def _pairs(x: Array, y: Array) -> Array:
    """Vectors (x, y), on a new last axis; numpy's `stack` takes several times as long on a few vectors."""
    pairs = np.empty((*x.shape, 2), x.dtype)
    pairs[..., 0], pairs[..., 1] = x, y
    return pairs


def _dot(a: Array, b: Array) -> Array:
    return (a * b).sum(axis=-1)


def _times(matrices: Array, vectors: Array) -> Array:
    """A matrix times a vector, for each sample."""
    return (matrices @ vectors[..., None])[..., 0]


def _along_x(lengths: Array) -> Array:
    return np.stack([lengths, np.zeros(3)], axis=-1)
