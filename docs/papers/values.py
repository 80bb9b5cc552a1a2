"""Values of the page of the papers: computed by our independent models, in SI units unless a name says otherwise."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from docs.papers.cases import prescribed
from docs.papers.formulations import Traced, on_the_tree, recursion, times, virtual_work, with_sensors
from docs.papers.operations import PRINTED, of_trace, of_wang
from docs.papers.state_equations import simulated
from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.matrices import Matrices, dynamic_model
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.closures import closure_jacobian_at
from loopcheck.analytic.kinematics.mobility import in_words, mobility
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import kordjazi2011, staicu2006, wang2019, zubizarreta2010
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.studies.control.runs import CONTROLLERS, INDICES, ControlSettings, RunGroup, run_batch

Values = Mapping[str, float | str]
LEVELS = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Errors of the parameters of the controllers' robots [%]."""
TEMPLATES = 10
"""Robots of the controllers, as in the paper."""
H = 1e-5
"""Step of differences [s]."""


def peaks(robot: str, configuration: str, mode: str = "") -> str:
    """Largest absolute effort of each actuator, with its unit."""
    case, motion = prescribed(robot, configuration=configuration, mode=mode)
    effort = Noc().compute_efforts(case, motion).effort
    units = {*case.mechanism.actuator_units}
    return f"{', '.join(f'{peak:.4g}' for peak in np.abs(effort).max(axis=0))} {units.pop() if len(units) == 1 else ''}"


def of_all_models(robot: str) -> float:
    """Largest difference between natural orthogonal complement and Lagrangian model over the largest effort [-]."""
    worst = 0.0
    for configuration in ("horizontal", "vertical"):
        case, motion = prescribed(robot, configuration=configuration)
        noc, lagrange = (source.compute_efforts(case, motion).effort for source in (Noc(), Lagrange()))
        worst = max(worst, float(np.abs(noc - lagrange).max() / np.abs(noc).max()))
    return worst


def loops(robot: str) -> str:
    """Loops, closure equations and freedoms."""
    case, motion = prescribed(robot)
    return in_words(mobility(case.mechanism, motion.q[10]))


def skewness(case: Case, motion: Motion) -> float:
    """Largest symmetric part of Ṁ − 2C over the largest entry of C, by a difference in time [-]."""
    state = State(mechanism=case.mechanism, q=motion.q[10:-10:10], qd=motion.qd[10:-10:10])
    model = dynamic_model(state)

    def M(s: int) -> Array:
        q = retract(case.mechanism, state.q, s * H * state.qd)
        return dynamic_model(State(mechanism=case.mechanism, q=q, qd=state.qd), model.coordinates).M

    skew = (M(1) - M(-1)) / (2 * H) - 2 * model.C
    return float(np.abs(skew + skew.swapaxes(1, 2)).max() / np.abs(model.C).max())


def platform(mode: str) -> dict[str, Array]:
    """Time, position of P and orientation of the platform of the 3-PRR in a mode."""
    case, motion = prescribed("3prr", mode=mode)
    state, P = State.at_rest(case.mechanism, motion.q), case.mechanism.site("P")
    at = state.poses.p[:, P.body] + state.poses.R[:, P.body] @ P.position
    names = [joint.name for joint in case.mechanism.joints]
    angle = motion.q[:, names.index("q4")] + motion.q[:, names.index("q7")]
    return {"t": motion.t, "x": at[:, 0], "y": at[:, 1], "angle": np.degrees(angle)}


def least_singular_value(mode: str) -> float:
    """Smallest singular value of Φᵘ over the motion of the 3-PRR that is no zero row [m/rad]."""
    case, motion = prescribed("3prr", mode=mode)
    mechanism = case.mechanism
    passive = ~mechanism.selection.any(axis=0)
    return float(np.linalg.svd(closure_jacobian_at(mechanism, motion.q)[..., passive], compute_uv=False)[:, 3].min())


def of_kordjazi() -> Values:
    """Kordjazi and Akbarzadeh 2011."""
    values: dict[str, float | str] = {"loops": loops("3prr"), "models": of_all_models("3prr")}
    for mode in ("plus", "minus"):
        path = platform(mode)
        values |= {
            f"x_{mode}": f"{path['x'][0]:.5f} to {path['x'][-1]:.5f} m, largest {path['x'].max():.4f} m",
            f"y_{mode}": f"{path['y'][0]:.5f} to {path['y'][-1]:.5f} m",
            f"angle_{mode}": f"{path['angle'][0]:.2f}° to {path['angle'][-1]:.2f}°, lowest {path['angle'].min():.2f}°",
            f"sigma_{mode}": least_singular_value(mode),
            f"peaks_horizontal_{mode}": peaks("3prr", "horizontal", mode=mode),
            f"peaks_vertical_{mode}": peaks("3prr", "vertical", mode=mode),
        }
    case, motion = prescribed("3prr")
    sliders = motion.law(np.array([1.0])).q[0]
    paper = kordjazi2011.efforts(case, motion)
    noc = Noc().compute_efforts(case, motion).effort
    start = dynamic_model(State(mechanism=case.mechanism, q=motion.q[:1], qd=motion.qd[:1]), ("q1", "q2", "q3")).M[0]
    return {
        **values,
        "sliders": ", ".join(f"{x:.5f}" for x in sliders),
        "paper": float(np.abs(paper - noc).max() / np.abs(noc).max()),
        "skew": skewness(case, motion),
        "M": f"{start[0, 0]:.4f} on the diagonal, {start[0, 1]:.4f} beside it",
    }


def of_zubizarreta() -> Values:
    """Zubizarreta et al. 2010."""
    case, motion = prescribed("3rrr", configuration="vertical")
    plain, redundant = zubizarreta2010.efforts(case, motion), zubizarreta2010.redundant_efforts(case, motion)
    noc = Noc().compute_efforts(case, motion).effort
    parts, steps = with_sensors(case, motion)
    return {
        "loops": loops("3rrr"),
        "models": of_all_models("3rrr"),
        "peaks_horizontal": peaks("3rrr", "horizontal"),
        "peaks_vertical": peaks("3rrr", "vertical"),
        "redundant": float(np.abs(plain - redundant).max()),
        "paper": float(np.abs(plain - noc).max() / np.abs(noc).max()),
        "skew": skewness(case, motion),
        "generic_operations": recursion(case, motion)[1].operations,
        **{f"{name}_operations": part.operations for name, part in parts.items()},
        "steps": steps,
        "position_operations": steps * parts["step"].operations + parts["pose"].operations,
        "sample_operations": steps * parts["step"].operations + parts["motors"].operations,
        **_times_of_zubizarreta(case, motion),
        **_control(),
    }


def _control() -> Values:
    """Mean indices of each controller over robots with parameters 1 to 5 % off, ISE [1e-6 m² s], others [1e-3]."""
    groups = {name: RunGroup("exact", "pmp", 0, "all", name, LEVELS, TEMPLATES) for name in CONTROLLERS}
    runs = {name: run_batch(ControlSettings(), group) for name, group in groups.items()}
    means = {name: of.groupby("level")[[*INDICES]].mean() for name, of in runs.items()}
    scales = dict.fromkeys(INDICES, 1e3) | {"ISE": 1e6}
    texts = {
        index: "; ".join(f"{name} {', '.join(f'{scale * x:.4g}' for x in of[index])}" for name, of in means.items())
        for index, scale in scales.items()
    }
    ratio = float(means["task space"]["ISE"].iloc[-1] / means["extended"]["ISE"].iloc[-1])
    return {**texts, "templates": TEMPLATES, "ratio_task": ratio}


def _times_of_zubizarreta(case: Case, motion: Motion) -> Values:
    """Times of a single sample, the least of some [µs], and ratios in this run."""
    p = zubizarreta2010.parameters(case.mechanism)
    qa = motion.law(motion.t).q
    x, q = zubizarreta2010.positions(p, qa, zubizarreta2010.passive_guess(case))
    qd = np.zeros_like(q)
    guess = q[0, 3:]
    from_motors = _time(lambda: zubizarreta2010.positions(p, qa[1:2], guess))
    from_sensors = _time(lambda: zubizarreta2010.direct_position(p, q[1:2]))
    plain = _time(lambda: zubizarreta2010.active_model(p, x[1:2], q[1:2], qd[1:2], g=9.81))
    extended = _time(lambda: zubizarreta2010.redundant_model(p, x[1:2], q[1:2], qd[1:2], g=9.81))
    return {
        "position_ratio": from_motors / from_sensors,
        "model_ratio": plain / extended,
        "sample_ms": 1e3 * (from_motors + plain),
        "extended_ms": 1e3 * (from_sensors + extended),
    }


def _time(run: Callable[[], Any]) -> float:
    """CPU time of a call, the least of some [s]."""
    import time

    run()
    times = []
    for _ in range(20):
        before = time.process_time()
        for _ in range(5):
            run()
        times.append((time.process_time() - before) / 5)
    return min(times)


def twist_constraints(case: Case, motion: Motion) -> tuple[float, int]:
    """Largest entry of K T over that of T, and the rank of K, with K t = 0 the constraints of all joints of the robot.

    The rows of K are those of each joint of the tree, which no joint velocity moves, and those of the closures: they do
    not come from T (Wang et al. 2019, (14) to (20)).
    """
    mechanism = case.mechanism
    state = State(mechanism=mechanism, q=motion.q[5:6], qd=motion.qd[5:6])
    K_of_tree = state.K[0].reshape(-1, mechanism.nv)
    U, values, _ = np.linalg.svd(K_of_tree)
    of_joints = U[:, int((values > 1e-10 * values[0]).sum()) :].T
    of_closures = state.Phi[0] @ np.linalg.pinv(K_of_tree)
    K = np.concatenate([of_joints, of_closures])
    T = K_of_tree @ dynamic_model(state).L[0]
    rank = int(np.linalg.matrix_rank(K, tol=1e-8))
    return float(np.abs(K @ T).max() / np.abs(T).max()), rank


def qr_against_squares(turn: bool) -> tuple[float, float, float]:
    """Condition number of A near α = 0, ζ = d f / l₃, and the relative errors of efforts by QR and by AᵀA [-].

    Args:
        turn: In coordinates x' = R x, with which no column of A vanishes.
    """
    p = wang2019.parameters(case_of("2pur2rpu").mechanism)
    x = np.array([[1e-7, 0.3, p.d * p.f / p.l3 * (1 + 1e-7)]])
    A = wang2019.actuation(p, x)[0]
    if turn:
        a, b = 0.7, 0.4
        Rz = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1.0]])
        Rx = np.array([[1.0, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
        A = A @ Rz @ Rx
    tau = A.T @ np.array([1.0, -0.5, 0.3, 0.8])
    exact = _exact_minimum_norm(A, tau)
    by_qr = wang2019.minimum_norm(A[None], tau[None])[0]
    by_squares = A @ np.linalg.solve(A.T @ A, tau)
    size = np.abs(exact).max()
    errors = [float(np.abs(each - exact).max() / size) for each in (by_qr, by_squares)]
    return float(np.linalg.cond(A)), errors[0], errors[1]


def _exact_minimum_norm(A: Array, tau: Array) -> Array:
    """A (AᵀA)⁻¹ τ in fractions, by Gauss and Jordan: no round-off at all."""
    rows = [[Fraction(x) for x in row] for row in A.tolist()]
    n = len(rows[0])
    S = [[_sum(r[i] * r[j] for r in rows) for j in range(n)] + [Fraction(float(tau[i]))] for i in range(n)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if S[i][k] != 0)
        S[k], S[pivot] = S[pivot], S[k]
        S[k] = [entry / S[k][k] for entry in S[k]]
        for i in range(n):
            if i != k:
                S[i] = [entry - S[i][k] * other for entry, other in zip(S[i], S[k], strict=True)]
    return np.array([float(_sum(a * row[-1] for a, row in zip(of, S, strict=True))) for of in rows])


def _sum(terms: Iterable[Fraction]) -> Fraction:
    return sum(terms, Fraction(0))


def of_wang_2019() -> Values:
    """Wang, Belzile, Angeles and Li 2019."""
    case, motion = prescribed("2pur2rpu")
    p = wang2019.parameters(case.mechanism)
    singular = np.linalg.svd(wang2019.actuation(p, np.array([[0.0, 0.3, p.d * p.f / p.l3]]))[0], compute_uv=False)
    orthogonal, rank = twist_constraints(case, motion)
    fifth = case_of(CATALOGUE / "2pur2rpu/2pur2rpu.xml", actuated="q1,q2,q3,q4,theta3")
    fifth_motion = prescribe(fifth)
    state = State(mechanism=fifth.mechanism, q=fifth_motion.q[:1], qd=fifth_motion.qd[:1])
    model = dynamic_model(state)
    acceleration, velocity = (_coordinate_rates(model, x[0]) for x in (fifth_motion.qdd, fifth_motion.qd))
    force = model.M[0] @ acceleration + (model.C[0] + model.D[0]) @ velocity + model.G[0]
    W = fifth.mechanism.effort_scales
    wanted = W * (np.linalg.pinv((W[:, None] * model.A[0]).T) @ force)
    found = Noc().compute_efforts(fifth, fifth_motion).effort[0]
    plain, turned = of_wang(case), of_wang(case, turns_tensors=True)
    in_paper, in_turned = qr_against_squares(False), qr_against_squares(True)
    model = dynamic_model(State(mechanism=case.mechanism, q=motion.q[::10], qd=motion.qd[::10]))
    return {
        "loops": loops("2pur2rpu"),
        "models": of_all_models("2pur2rpu"),
        "KT": orthogonal,
        "rank_K": rank,
        "least_eigenvalue": float(np.linalg.eigvalsh(model.M).min()),
        "skew": skewness(case, motion),
        "peaks_horizontal": peaks("2pur2rpu", "horizontal"),
        "singular_rank": int((singular > 1e-12).sum()),
        "singular_zeta": 1e3 * p.d * p.f / p.l3,
        **{
            f"{name}_{where}": value
            for where, of in (("paper", in_paper), ("turned", in_turned))
            for name, value in zip(("cond", "qr", "squares"), of, strict=True)
        },
        "fifth_A": f"{len(wanted)} × {model.A.shape[2]}",
        "fifth": float(np.abs(found - wanted).max() / np.abs(wanted).max()),
        **{f"operations_{name}": f"{plain[name]} (printed {PRINTED[name]})" for name in PRINTED},
        "operations_total": plain["total"],
        "operations_turned": turned["total"],
    }


def _coordinate_rates(model: Matrices, rates: Array) -> Array:
    """Least-squares rates of the coordinates from rates of all dofs, at the first sample."""
    return np.linalg.lstsq(model.L[0], rates, rcond=None)[0]


def of_angeles() -> Values:
    """Angeles 2014, both six-legged platforms."""
    values: dict[str, float | str] = {}
    for robot in ("6spu", "6x6r"):
        ends = [simulated(robot, h, 1.0) for h in (0.02, 0.01)]
        held = simulated(robot, 0.02, 4.0, feedback=True)
        case, motion = prescribed(robot)
        operations, angles = of_trace(case, motion)
        model = dynamic_model(State(mechanism=case.mechanism, q=motion.q[::20], qd=motion.qd[::20]))
        values |= {
            f"{robot}_loops": loops(robot),
            f"{robot}_models": of_all_models(robot),
            f"{robot}_peaks": peaks(robot, "vertical"),
            f"{robot}_coarse": ends[0].deviation,
            f"{robot}_fine": ends[1].deviation,
            f"{robot}_order": float(np.log2(ends[0].deviation / ends[1].deviation)),
            f"{robot}_energy": ends[1].energy,
            f"{robot}_feedback": held.deviation,
            f"{robot}_operations": operations,
            f"{robot}_angles": angles,
            f"{robot}_Lambda": float(np.abs(model.A - np.eye(6)).max()),
        }
    return values


def of_staicu() -> Values:
    """Staicu et al. 2006."""
    case, motion = prescribed("2t1r")
    paper, noc = staicu2006.efforts(case, motion), Noc().compute_efforts(case, motion).effort
    work, (bare, checked) = virtual_work(case, motion), recursion(case, motion)
    newton_euler, lagrange = on_the_tree(case, motion)
    return {
        "loops": loops("2t1r"),
        "models": of_all_models("2t1r"),
        "peaks": peaks("2t1r", "horizontal"),
        "dense": 2 / 3 * 48**3 + 2 * 48**2,
        "paper": float(np.abs(paper - noc).max() / np.abs(noc).max()),
        "work": work.operations,
        "recursion": bare.operations,
        "checked": checked.operations,
        "newton_euler": newton_euler.operations,
        "lagrange": lagrange.operations,
        "longer": lagrange.operations - newton_euler.operations,
        **_times_of_staicu({"work": work, "recursion": bare, "checked": checked}),
    }


def _times_of_staicu(ways: Mapping[str, Traced]) -> Values:
    """Times as machine code over that of virtual work: the median in this run, the lowest and the highest."""
    spent = times(ways)
    ratios = {name: spent[name] / spent["work"] for name in spent if name != "work"}
    return {f"{name}_time": f"{np.median(x):.3g} ({x.min():.3g} to {x.max():.3g})" for name, x in ratios.items()}


PAPERS: Mapping[str, Callable[[], Values]] = {
    "kordjazi2011": of_kordjazi,
    "zubizarreta2010": of_zubizarreta,
    "wang2019": of_wang_2019,
    "angeles2014": of_angeles,
    "staicu2006": of_staicu,
}
"""Values of each paper by their names in `rows.toml`."""
