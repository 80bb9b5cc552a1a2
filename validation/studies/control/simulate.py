"""One controller on many robots at once, and the indices of the position error of the tool centre point."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.papers import zubizarreta2010 as paper
from loopcheck.robots.arrays import Array
from loopcheck.validation.studies.control.controllers import Controller, Reference, angle_between, times
from loopcheck.validation.studies.control.plant import Plant

DIVERGED = 0.1
"""Position error of a diverged run [m]: the radius of the circle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """The circle that the platform is to follow, turned about its centre once."""

    radius: float = 0.1
    """Radius [m]."""
    period: float = 2.0
    """Time of a turn, and of the run: T_end [s]."""
    dt: float = 1e-3
    """Time between two control actions; torques are held between them [s]."""

    @property
    def t(self) -> Array:
        """Times of the control actions and the end [s], shape (nt,)."""
        return np.linspace(0.0, self.period, round(self.period / self.dt) + 1)

    def pose(self) -> tuple[Array, Array, Array]:
        """Task coordinates, rates and accelerations at `t`, all of shape (nt, 3)."""
        rate = 2 * np.pi / self.period
        angle = rate * self.t
        out = self.radius * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
        along = self.radius * np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
        return out, rate * along, -(rate**2) * out


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledRuns:
    """Results of robots that were run together; NaN after divergence."""

    ISE: Array
    """Integral of the squared position error [m² s], shape (n,)."""
    IAE: Array
    """Integral of the position error [m s], shape (n,)."""
    ITAE: Array
    """Integral of time times position error [m s²], shape (n,)."""
    diverged_at: Array
    """Time of divergence [s], shape (n,); NaN without divergence."""
    error: Array
    """Position error of P [m], shape (nt, n)."""
    x: Array
    """True task coordinates [m, m, rad], shape (nt, n, 3)."""
    q: Array
    """Measured joints [rad], shape (nt, n, 6)."""


def references(nominal: paper.Parameters, elbow: Array, task: Circle) -> list[Reference]:
    """Reference at each control action: joints by the nominal inverse position problem, rates exactly.

    Args:
        nominal: Parameters used by the controllers.
        elbow: Sign of sin q_p of each leg [-], shape (3,).
    """
    x, xd, xdd = task.pose()
    q = paper.inverse_position(nominal, x, elbow)
    J_x, J_q = paper.chain_jacobians(nominal, x, q)
    qd = times(-np.linalg.inv(J_q) @ J_x, xd)
    J_x_dot, J_q_dot = paper.chain_jacobian_rates(nominal, x, q, xd, qd)
    right = J_x @ xdd[..., None] + J_x_dot @ xd[..., None] + J_q_dot @ qd[..., None]
    qdd = -np.linalg.solve(J_q, right)[..., 0]
    return [Reference(*rows) for rows in zip(x, xd, xdd, q, qd, qdd, strict=True)]


def simulate(controller: Controller, plant: Plant, path: Sequence[Reference], task: Circle) -> ControlledRuns:
    """Run a controller on all robots of a plant over the whole task.

    A diverged robot stands still from then on: the reference replaces its measurements, so that it does not disturb the
    computation of the other robots, and its indices are NaN.

    Args:
        controller: The control law.
        plant: The robots, at the start.
        path: Reference at each control action and at the end.
    """
    t = task.t
    n = len(plant.pose())
    error, x, joints = np.zeros((len(t), n)), np.zeros((len(t), n, 3)), np.zeros((len(t), n, 6))
    diverged_at = np.full(n, np.nan)
    with np.errstate(invalid="ignore", over="ignore"):
        for k, now in enumerate(path):
            x[k] = plant.pose()
            q, qd = plant.joints()
            error[k] = np.hypot(*(x[k, :, :2] - now.x[:2]).T)
            diverges = ~(error[k] < DIVERGED) | ~np.isfinite(q).all(axis=1) | ~np.isfinite(qd).all(axis=1)
            diverged_at[diverges & np.isnan(diverged_at)] = t[k]
            gone = np.isfinite(diverged_at)
            joints[k] = now.q - angle_between(now.q, q)
            if k + 1 < len(t):
                q, qd = np.where(gone[:, None], now.q, q), np.where(gone[:, None], now.qd, qd)
                plant.step(np.where(gone[:, None], 0.0, controller.torque(now, q, qd)), task.dt)
    error[:, np.isfinite(diverged_at)] = np.nan

    def integral(values: Array) -> Array:
        return np.asarray(np.trapezoid(values, t, axis=0), dtype=np.float64)

    return ControlledRuns(
        ISE=integral(error**2),
        IAE=integral(error),
        ITAE=integral(t[:, None] * error),
        diverged_at=diverged_at,
        error=error,
        x=x,
        q=joints,
    )
