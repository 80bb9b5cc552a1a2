"""The reference on a serial arm, against Newton and Euler on its published table and published efforts."""

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array
from loopcheck.robots.robot import DEFAULT, load, make_case

TABLE = np.array(
    [
        # a, d, alpha / (pi/2), mass, mass centre, Ixx, Iyy, Izz, Jm, G, B, Tc
        [0, 0.672, 1, 0, 0, 0, 0, 0, 0.35, 0, 200e-6, 62.6111, 1.48e-3, 0.395],
        [0.4318, 0, 0, 17.4, -0.3638, 0.006, 0.2275, 0.13, 0.524, 0.539, 200e-6, 107.815, 0.817e-3, 0.126],
        [0.0203, 0.15005, -1, 4.8, -0.0203, -0.0141, 0.07, 0.066, 0.086, 0.0125, 200e-6, 53.7063, 1.38e-3, 0.132],
        [0, 0.4318, 1, 0.82, 0, 0.019, 0, 1.8e-3, 1.3e-3, 1.8e-3, 33e-6, 76.0364, 71.2e-6, 11.2e-3],
        [0, 0, -1, 0.34, 0, 0, 0, 0.3e-3, 0.4e-3, 0.3e-3, 33e-6, 71.923, 82.6e-6, 9.26e-3],
        [0, 0, 0, 0.09, 0, 0, 0.032, 0.15e-3, 0.15e-3, 0.04e-3, 33e-6, 76.686, 36.7e-6, 3.96e-3],
    ]
)
"""A row per link: standard Denavit-Hartenberg parameters, inertia and motor (Corke and Armstrong-Hélouvry 1994)."""
JM, G, B, TC = TABLE[:, 10:].T
QN = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
"""The pose of the published results [rad]."""
INERTIA = [
    [3.6594, -0.4044, 0.1006, -0.0025, 0, 0],
    [-0.4044, 4.4137, 0.3509, 0, 0.0024, 0],
    [0.1006, 0.3509, 0.9378, 0, 0.0015, 0],
    [-0.0025, 0, 0, 0.1925, 0, 0],
    [0, 0.0024, 0.0015, 0, 0.1713, 0],
    [0, 0, 0, 0, 0, 0.1941],
]
"""Inertia matrix with rotors [kg m²]; like the efforts, from the tests of P. Corke's Robotics Toolbox for Python."""
WEIGHT = [0, 31.6399, 6.0351, 0, 0.0283, 0]
"""Efforts at rest [N m]."""
AT_UNIT_RATES = [29.1421, 56.5044, 16.3528, 1.2645, 1.1239, 0.5196]
"""Efforts at joint velocities of 1 rad/s, with Coulomb friction [N m]."""


def newton_euler(q: Array, qd: Array, qdd: Array, gravity: Array) -> Array:
    """Efforts of one state by the recursive Newton-Euler algorithm in link frames, shape (6,) (Luh et al. 1980)."""
    z, w, dw, a, links = np.array([0, 0, 1.0]), np.zeros(3), np.zeros(3), -gravity, []
    for (length, d, twist, m, *rest), x, v, acc in zip(TABLE, q, qd, qdd, strict=True):
        c, s, (ct, st) = np.cos(x), np.sin(x), [(1, 0), (0, 1), (0, -1)][int(twist)]
        R = np.array([[c, -s * ct, s * st], [s, c * ct, -c * st], [0, st, ct]])  # of this link's frame in the last
        p, centre, inertia = np.array([length, d * st, d * ct]), np.array(rest[:3]), np.diag(rest[3:6])
        w, dw = R.T @ (w + v * z), R.T @ (dw + acc * z + np.cross(w, v * z))
        a = R.T @ a + np.cross(dw, p) + np.cross(w, np.cross(w, p))
        force = m * (a + np.cross(dw, centre) + np.cross(w, np.cross(w, centre)))
        links.append((R, p, centre, force, inertia @ dw + np.cross(w, inertia @ w)))
    f, n, tau, R_next = np.zeros(3), np.zeros(3), JM * G**2 * qdd + B * G**2 * qd, np.eye(3)
    for k, (R, p, centre, force, moment) in reversed(list(enumerate(links))):
        f, n = R_next @ f, R_next @ n
        n, f = n + np.cross(p, f + force) + np.cross(centre, force) + moment, f + force  # about the last frame
        tau[k] += n @ (R.T @ z)
        R_next = R
    return tau


def efforts(q: Array, qd: Array, qdd: Array, configuration: str = "horizontal") -> Array:
    """Efforts of the reference [N m]; each argument of shape (nt, 6) or (6,)."""
    case = make_case(load("puma560"), variant=DEFAULT, mode="home", configuration=configuration)
    q, qd, qdd = (np.array(values) for values in np.broadcast_arrays(*np.atleast_2d(q, qd, qdd)))
    return needed_efforts(State(mechanism=case.mechanism, q=q, qd=qd), qdd).effort


@pytest.mark.parametrize(("configuration", "down"), [("horizontal", [0, 0, -9.81]), ("vertical", [0, -9.81, 0])])
def test_the_reference_is_newton_and_euler_on_the_published_table(configuration: str, down: list[float]) -> None:
    q, qd, qdd = np.random.default_rng(5).uniform(-2, 2, (3, 8, 6))
    expected = [newton_euler(*state, np.array(down)) for state in zip(q, qd, qdd, strict=True)]
    np.testing.assert_allclose(efforts(q, qd, qdd, configuration), expected, rtol=1e-12, atol=1e-12)


def test_the_reference_has_the_published_weight_and_inertia() -> None:
    rest = np.zeros(6)
    at_rest = efforts(QN, rest, rest)
    np.testing.assert_allclose(at_rest[0], WEIGHT, atol=5.1e-5)
    np.testing.assert_allclose(efforts(QN, rest, np.eye(6)) - at_rest, INERTIA, atol=5.1e-5)


def test_the_reference_has_the_published_velocity_terms_but_for_dry_friction() -> None:
    moving = efforts(QN, np.ones(6), np.zeros(6))[0]
    np.testing.assert_allclose(moving + G * TC, AT_UNIT_RATES, atol=5.1e-5)
