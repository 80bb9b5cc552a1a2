"""Published free motions: transcription, the benchmark's own equations, and the published digits."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp

from loopcheck.analytic.dynamics.forward import accelerations_by_multipliers, accelerations_by_noc, simulate
from loopcheck.analytic.dynamics.lagrange import lagrange_model
from loopcheck.analytic.kinematics.closures import closure_jacobian_at, closure_residual
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.errors import MechanismError, NotFoundError, SingularityError
from loopcheck.validation.execution.journal import JOURNAL
from loopcheck.validation.studies.free_motion.benchmark import benchmark_names, load_benchmark
from loopcheck.validation.studies.free_motion.measure import ANALYTIC, Start, energy_drift, start_of
from tests.validation.conftest import Command

G = 9.81


@pytest.mark.parametrize("name", benchmark_names())
def test_the_initial_state_closes_the_loops(name: str) -> None:
    """Errors of transcription would show here."""
    start = start_of(load_benchmark(name))
    at = poses(start.mechanism, start.q[None])
    assert np.abs(closure_residual(start.mechanism, at, start.q[None])).max() < 1e-15
    assert np.abs(closure_jacobian_at(start.mechanism, start.q[None])[0] @ start.qd).max() < 1e-12


@pytest.mark.extended("test_andrews_squeezer_is_the_one_of_the_benchmark")
def test_andrews_squeezer_meets_the_published_digits(loopcheck: Command, tmp_path: Path) -> None:
    status, out, _ = loopcheck("study", "free-motion", "andrews", "--jobs", "1", "--out", tmp_path)
    assert status == 0
    assert "mujoco/tight" in out
    assert {path.name for path in tmp_path.iterdir()} == {
        *("benchmarks.csv", "free_motion.html", "free_motion.md", "run.json"),
        JOURNAL,
    }
    errors = pd.read_csv(tmp_path / "benchmarks.csv").set_index(["source", "quantity"])["error"]
    assert errors[ANALYTIC, "joints [m or rad]"] < 1e-7
    assert errors[ANALYTIC, "multipliers [N]"] < 1e-6 * 199.1753333731910
    assert errors[ANALYTIC, "energy drift [of its peak]"] < 1e-9
    assert errors["mujoco/tight", "joints [m or rad]"] < 1e-3 < errors["mujoco/default", "joints [m or rad]"]


def test_andrews_squeezer_is_the_one_of_the_benchmark() -> None:
    """M, f and the six constraints in the benchmark's own coordinates, at a state away from all symmetry."""
    start = start_of(load_benchmark("andrews"))
    names = [joint.name for joint in start.mechanism.joints]
    rng = np.random.default_rng(3)
    q, qd = start.q + 0.2 * rng.normal(size=7), rng.normal(size=7)
    model = lagrange_model(start.mechanism, q[None], qd[None])
    order = [names.index(n) for n in ("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon")]
    M, f, g_q = _andrews(q[order], qd[order])
    np.testing.assert_allclose(model.M[0][np.ix_(order, order)], M, atol=1e-18)
    np.testing.assert_allclose(-(model.coriolis + model.gravity)[0, order], f - 0.033 * np.eye(7)[0], atol=1e-14)
    in_plane = [0, 1, 3, 4, 6, 7]
    np.testing.assert_allclose(model.Phi[0][np.ix_(in_plane, order)], g_q, atol=1e-16)


@pytest.mark.extended("test_forty_four_bars_accelerate_as_a_pendulum")
def test_two_four_bars_follow_the_smooth_branch_through_their_singularities() -> None:
    """Against the reduced equation, before and after the crossings at 0.7144, 1.2282 and 2.6568 s."""
    start, t = start_of(load_benchmark("n_four_bar_2")), np.array([0.0, 0.7, 1.0, 1.5, 3.0])
    q, qd = simulate(start.mechanism, lambda _: start.effort, start.q, start.qd, t, independent=start.independent)
    theta, rate = _falling(2, t)
    np.testing.assert_allclose(q[:, 0] + np.pi / 2, theta, atol=1e-8)
    np.testing.assert_allclose(qd[:, 0], rate, atol=1e-8)
    np.testing.assert_allclose(q, q[:, :1] * [1, -1, 1, -1, 1], atol=1e-7)  # the couplers stay level: no other branch


@pytest.mark.extended("test_what_is_no_benchmark_is_refused")
def test_a_motion_that_ends_in_a_singularity_is_refused() -> None:
    start, t = start_of(load_benchmark("n_four_bar_2")), np.array([0.0, 0.71441])
    with pytest.raises(SingularityError, match=r"meets a singularity near t = 0\.71") as caught:
        simulate(start.mechanism, lambda _: start.effort, start.q, start.qd, t, independent=start.independent)
    assert caught.value.time == pytest.approx(0.7144, abs=5e-3)


@pytest.mark.parametrize(("name", "sites"), [("n_four_bar_2", 2), ("n_four_bar_40", 40)])
def test_published_positions_are_those_of_the_reduced_equation(name: str, sites: int) -> None:
    (instant,) = load_benchmark(name).instants
    theta, rate = (values[-1] for values in _falling(sites, np.array([0.0, instant.t])))
    np.testing.assert_allclose(instant.positions["B0"], [np.cos(theta), np.sin(theta), 0], atol=1e-10)
    for velocity in instant.velocities.values():
        np.testing.assert_allclose(velocity, [-rate * np.sin(theta), rate * np.cos(theta), 0], atol=1e-10)


def test_forty_four_bars_accelerate_as_a_pendulum() -> None:
    start = start_of(load_benchmark("n_four_bar_40"))
    q, qd = np.full((1, 81), -0.5), np.full((1, 81), -1.0)
    q[:, 1:80:2] *= -1  # the couplers, which stay level
    qd[:, 1:80:2] *= -1
    for_free = np.zeros((1, 1))
    by_noc = accelerations_by_noc(start.mechanism, q, qd, for_free, start.independent)[0]
    by_multipliers = accelerations_by_multipliers(start.mechanism, q, qd, for_free)[0][0]
    wanted = -(20.5 + 40) / (41 / 3 + 40) * G * np.cos(np.pi / 2 - 0.5) * np.sign(qd[0]) * -1
    np.testing.assert_allclose(by_noc, wanted, atol=1e-10)
    np.testing.assert_allclose(by_multipliers, wanted, atol=1e-10)


@pytest.mark.extended("test_the_initial_state_closes_the_loops")
def test_the_generic_four_bar_falls_as_its_energy_says() -> None:
    """Its crank's equation from energies alone: θ' follows from E(θ, θ') = E0, whatever the constraint forces."""
    start, t = start_of(load_benchmark("four_bar")), np.linspace(0, 0.4, 5)
    q, qd = _simulated(start, t)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        h = 1e-4
        J, V = zip(*(_four_bar(y[0] + s * h) for s in (-2, -1, 0, 1, 2)), strict=True)
        slope = np.array([1, -8, 0, 8, -1]) / (12 * h)
        return np.array([y[1], -(slope @ J * y[1] ** 2 / 2 + slope @ V) / J[2]])

    wanted = solve_ivp(rate, (0, t[-1]), [0.5, 2.0], t_eval=t, rtol=1e-10, atol=1e-12).y
    np.testing.assert_allclose(q[:, 0], wanted[0], atol=1e-8)
    np.testing.assert_allclose(qd[:, 0], wanted[1], atol=1e-7)


@pytest.mark.extended("test_the_slider_crank_starts_as_published")
def test_the_slider_is_where_the_crank_puts_it() -> None:
    start, t = start_of(load_benchmark("slider_crank")), np.linspace(0, 0.5, 6)
    q, qd = _simulated(start, t)
    y, z = 0.1 - 0.08 * np.sin(q[:, 0]), 0.12 + 0.08 * np.cos(q[:, 0])
    x = np.sqrt(0.3**2 - y**2 - z**2)
    np.testing.assert_allclose(q[:, 1], x, atol=1e-12)
    velocity = (y * 0.08 * np.cos(q[:, 0]) + z * 0.08 * np.sin(q[:, 0])) * qd[:, 0] / x
    np.testing.assert_allclose(qd[:, 1], velocity, atol=1e-12)
    assert energy_drift(start, q, qd) < 1e-9


def test_the_slider_crank_starts_as_published() -> None:
    """Slider at 0.24 m/s, and the rod's angular velocity (1.92, -0.96, 0.48) rad/s."""
    start = start_of(load_benchmark("slider_crank"))
    at = poses(start.mechanism, start.q[None])
    np.testing.assert_allclose(start.qd[2:] @ at.axes[0, 2:], [1.92, -0.96, 0.48], atol=1e-12)
    assert start.qd[1] == pytest.approx(0.24, abs=1e-12)


def test_bricard_keeps_its_energy_with_redundant_closures() -> None:
    start = start_of(load_benchmark("bricard"))
    assert np.linalg.matrix_rank(lagrange_model(start.mechanism, start.q[None], start.qd[None]).Phi[0]) == 4
    q, qd = _simulated(start, np.linspace(0, 2.0, 5))
    assert energy_drift(start, q, qd) < 1e-9
    assert np.ptp(q[:, 0]) > 0.5


def test_what_is_no_benchmark_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"unknown benchmark: '3prr'. Known: andrews"):
        load_benchmark("3prr")
    (tmp_path / "andrews").mkdir()
    text = (CATALOGUE / "andrews" / "benchmark.toml").read_text(encoding="utf-8")
    (tmp_path / "andrews" / "benchmark.toml").write_text(text.replace("span", "spam"), encoding="utf-8")
    monkeypatch.setattr("loopcheck.validation.studies.free_motion.benchmark.CATALOGUE", tmp_path)
    with pytest.raises(MechanismError, match=r"benchmark.toml: (span: required key is missing|spam)"):
        load_benchmark("andrews")


def _simulated(start: Start, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return simulate(start.mechanism, lambda _: start.effort, start.q, start.qd, t, independent=start.independent)


def _falling(N: int, t: np.ndarray) -> np.ndarray:
    """Angle and rate of the uprights, which all turn as a single pendulum."""
    P, I = (N + 1) / 2 + N, (N + 1) / 3 + N

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        return np.array([y[1], -P / I * G * np.cos(y[0])])

    return solve_ivp(rate, (0, t[-1]), [np.pi / 2, -1.0], "DOP853", t_eval=t, rtol=1e-13, atol=1e-14).y


def _four_bar(theta: float) -> tuple[float, float]:
    """Inertia felt by the crank [kg m²] and potential energy [J], from two circles that meet."""

    def points(angle: complex) -> np.ndarray:
        B = 0.4 * np.array([np.cos(angle), np.sin(angle)])
        D = np.array([1.0, 0.0]) - B
        d2 = D @ D
        along = (1.1**2 - 0.8**2 + d2) / (2 * d2)
        across = np.sqrt(1.1**2 / d2 - along**2)
        return np.array([B, B + along * D + across * np.array([-D[1], D[0]])])

    B, C = points(theta)
    B_t, C_t = points(theta + 1e-30j).imag / 1e-30
    spin = [1.0, *(_turn(p, v) for p, v in ((C - B, C_t - B_t), (C - [1.0, 0.0], C_t)))]
    masses, centres, rates = (
        (0.4, 1.1, 0.8),
        (B / 2, (B + C) / 2, (C + np.array([1.0, 0.0])) / 2),
        (B_t / 2, (B_t + C_t) / 2, C_t / 2),
    )
    J = sum(m * v @ v + m * m**2 / 12 * w**2 for m, v, w in zip(masses, rates, spin, strict=True))  # 1 kg/m
    return float(J), float(G * sum(m * c[1] for m, c in zip(masses, centres, strict=True)))


def _turn(arm: np.ndarray, velocity: np.ndarray) -> float:
    return float((arm[0] * velocity[1] - arm[1] * velocity[0]) / (arm @ arm))


def _andrews(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The benchmark's M (7, 7), f (7,) and constraint Jacobian (6, 7), for (β, Θ, γ, Φ, δ, Ω, ε)."""
    m1, m2, m3, m4, m5, m6, m7 = 0.04325, 0.00365, 0.02373, 0.00706, 0.0705, 0.00706, 0.05498
    i1, i2, i3, i4, i5, i6, i7 = 2.194e-6, 4.41e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5
    xb, yb, xc, yc = -0.03635, 0.03273, 0.014, 0.072
    d, da, e, ea, rr, ra = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
    ss, sa, sb, sc, sd, ta, tb = 0.035, 0.01874, 0.01043, 0.018, 0.02, 0.02308, 0.00916
    u, ua, ub, zf, zt, fa, c0, l0 = 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421, 4530, 0.07785
    be, th, ga, ph, de, om, ep = q
    s, c = np.sin, np.cos
    bep, thp, _, php, dep, omp, epp = v
    M = np.zeros((7, 7))
    M[0, 0] = m1 * ra**2 + m2 * (rr**2 - 2 * da * rr * c(th) + da**2) + i1 + i2
    M[0, 1] = M[1, 0] = m2 * (da**2 - da * rr * c(th)) + i2
    M[1, 1] = m2 * da**2 + i2
    M[2, 2] = m3 * (sa**2 + sb**2) + i3
    M[3, 3] = m4 * (e - ea) ** 2 + i4
    M[3, 4] = M[4, 3] = m4 * ((e - ea) ** 2 + zt * (e - ea) * s(ph)) + i4
    M[4, 4] = m4 * (zt**2 + 2 * zt * (e - ea) * s(ph) + (e - ea) ** 2) + m5 * (ta**2 + tb**2) + i4 + i5
    M[5, 5] = m6 * (zf - fa) ** 2 + i6
    M[5, 6] = M[6, 5] = m6 * ((zf - fa) ** 2 - u * (zf - fa) * s(om)) + i6
    M[6, 6] = m6 * ((zf - fa) ** 2 - 2 * u * (zf - fa) * s(om) + u**2) + m7 * (ua**2 + ub**2) + i6 + i7
    xd, yd = sd * c(ga) + sc * s(ga) + xb, sd * s(ga) - sc * c(ga) + yb
    length = np.hypot(xd - xc, yd - yc)
    fx, fy = -c0 * (length - l0) / length * np.array([xd - xc, yd - yc])
    f = np.array(
        [
            0.033 - m2 * da * rr * thp * (thp + 2 * bep) * s(th),
            m2 * da * rr * bep**2 * s(th),
            fx * (sc * c(ga) - sd * s(ga)) + fy * (sd * c(ga) + sc * s(ga)),
            m4 * zt * (e - ea) * dep**2 * c(ph),
            -m4 * zt * (e - ea) * php * (php + 2 * dep) * c(ph),
            -m6 * u * (zf - fa) * epp**2 * c(om),
            m6 * u * (zf - fa) * omp * (omp + 2 * epp) * c(om),
        ]
    )
    g_q = np.zeros((6, 7))
    g_q[0::2, 0] = -rr * s(be) + d * s(be + th)
    g_q[0::2, 1] = d * s(be + th)
    g_q[1::2, 0] = rr * c(be) - d * c(be + th)
    g_q[1::2, 1] = -d * c(be + th)
    g_q[0, 2], g_q[1, 2] = -ss * c(ga), -ss * s(ga)
    g_q[2, 3], g_q[3, 3] = -e * c(ph + de), -e * s(ph + de)
    g_q[2, 4], g_q[3, 4] = -e * c(ph + de) + zt * s(de), -e * s(ph + de) - zt * c(de)
    g_q[4, 5], g_q[5, 5] = zf * s(om + ep), -zf * c(om + ep)
    g_q[4, 6], g_q[5, 6] = zf * s(om + ep) - u * c(ep), -zf * c(om + ep) - u * s(ep)
    return M, f, g_q
