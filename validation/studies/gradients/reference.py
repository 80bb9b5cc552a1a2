"""Exact derivatives at a state, and the motions of all dofs that keep its loops closed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from loopcheck.analytic.batch import forward_dynamics, inverse_dynamics
from loopcheck.analytic.batch.gradient import PAIRS
from loopcheck.analytic.batch.trace import trace
from loopcheck.analytic.dynamics.forward import dependent_velocities
from loopcheck.analytic.dynamics.noc import needed_efforts, tree_model
from loopcheck.analytic.kinematics.closures import closure_jacobian_at, solve_dependent
from loopcheck.analytic.kinematics.continuation import close
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.declarations import ACCELERATION, ACTING, FORCE
from loopcheck.robots.arrays import AnyArray, Array, JointAccelerations, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Body, Mechanism
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import Case

STEP = 1e-4
"""Step of differences of fourth order of closed states [rad, m or per s]: their error is near 1e-11."""
WEIGHTS = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
"""Weights of these differences, by the number of steps [-]."""
FORWARD, INVERSE = ("q", "qd", "effort"), ("q", "qd", "qdd", "parameters")
"""Inputs of both quantities."""
IMAGINARY = 1e-40
"""Imaginary step along a motion [-]: its square vanishes beside 1."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A state of a robot, without external wrenches."""

    mechanism: Mechanism
    q: JointPositions
    qd: JointVelocities
    qdd: JointAccelerations
    effort: Array
    """Efforts that the motion requires [N or N m], shape (na,)."""

    @cached_property
    def forward(self) -> "Reference":
        """Derivatives of the accelerations of independent dofs."""
        batch = forward_dynamics(
            self.mechanism, self.q[None], self.qd[None], self.effort[None], evaluator="numpy", derivatives=FORWARD
        )
        exact = {name: batch.derivatives[name][0] for name in FORWARD}
        return Reference(sample=self, quantity=ACCELERATION, independent=batch.independent, exact=exact)

    @cached_property
    def inverse(self) -> "Reference":
        """Derivatives of the efforts; of redundant efforts the part that moves the robot, whatever their choice.

        Raises:
            MechanismError: If an element is not traced.
        """
        mechanism = self.mechanism
        traced = trace(mechanism, self.q)
        independent = tuple(traced.shape.independent)
        rates = mechanism.rates_of(mechanism.drives).T
        drive = Drive(
            mechanism.values_of(mechanism.drives, self.q[None]), self.qd[None] @ rates, self.qdd[None] @ rates
        )
        batch = inverse_dynamics(mechanism, drive, self.q[None], traced=traced, evaluator="numpy", derivatives=INVERSE)
        dofs = [mechanism.dof_slices[j].start for j in mechanism.actuated_joints]
        places = [dofs.index(dof) for dof in independent]
        exact = {
            name: block[0].reshape(mechanism.na, -1) if name == "parameters" else block[0][:, places]
            for name, block in batch.derivatives.items()
        }
        reference = Reference(sample=self, quantity=FORCE, independent=independent, exact=exact)
        moving = {name: reference.P @ reference.A.T @ block for name, block in exact.items()}
        return reference if mechanism.na == len(independent) else replace(reference, exact=moving)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Exact derivatives along the independent dofs, and the same from derivatives of an engine along all dofs."""

    sample: Sample
    quantity: str
    """See `loopcheck.engines.declarations.Differentiated.quantity`."""
    independent: tuple[int, ...]
    exact: Mapping[str, Array]
    """By input: rows are independent dofs or actuators."""

    def projected(self, blocks: Mapping[str, Array]) -> Mapping[str, Array]:
        """Derivatives along motions with closed loops.

        Args:
            blocks: Derivatives of an engine, see `loopcheck.engines.declarations.Derivatives`.
        """
        along = {
            name: np.sum([blocks[other] @ part for other, part in parts.items()], axis=0)
            for name, parts in self._motions.items()
        }
        if self.quantity == ACCELERATION:
            rows = list(self.independent)
            return {name: block[rows] for name, block in {**along, "effort": blocks["effort"]}.items()}
        along["q"] = along["q"] - self._of_multipliers
        along |= {"parameters": blocks["parameters"]} if "parameters" in blocks else {}
        return {name: self.P @ self._L.T @ block for name, block in along.items()}

    @cached_property
    def A(self) -> Array:
        """Rates of the actuators per independent velocity [-], shape (na, n)."""
        return self.sample.mechanism.selection @ self._L

    @cached_property
    def P(self) -> Array:
        """Efforts of least norm per force on each independent dof [-], shape (na, n)."""
        scales = self.sample.mechanism.effort_scales[:, None]
        return scales * np.linalg.pinv(self.A.T * scales.T)

    @cached_property
    def _mask(self) -> AnyArray:
        mask = np.zeros(self.sample.mechanism.nv, dtype=bool)
        mask[list(self.independent)] = True
        return mask

    @cached_property
    def _L(self) -> Array:
        """Velocities of all dofs per independent velocity [-], shape (nv, n)."""
        n = len(self.independent)
        columns = dependent_velocities(
            self.sample.mechanism, np.repeat(self.sample.q[None], n, 0), np.eye(n)[self._order], self._mask
        )
        return columns.T

    @property
    def _order(self) -> list[int]:
        """Places of the independent dofs among them in increasing order."""
        return np.argsort(np.argsort(self.independent)).tolist()

    @cached_property
    def _motions(self) -> Mapping[str, Mapping[str, Array]]:
        """Changes of q, q̇ and q̈ of all dofs per change of each independent input [-, 1/s or 1/s²], (nv, n) each."""
        sample, third = self.sample, ACTING[self.quantity]
        zero, n = np.zeros(sample.mechanism.nv), len(self.independent)

        def changes(of_q: float, of_qd: float) -> tuple[Array, Array]:
            columns = []
            for column in self._L.T:
                sides = {k: self._closed(of_q * k * column, of_qd * k * column) for k in WEIGHTS}
                columns.append([sum(weight * sides[k][i] for k, weight in WEIGHTS.items()) / STEP for i in range(2)])
            v, a = np.array(columns).reshape(n, 2, len(zero)).transpose(1, 2, 0)
            return v, a

        of_q, of_qd = changes(STEP, 0.0), changes(0.0, STEP)
        motions = {"q": {"q": self._L, "qd": of_q[0]}, "qd": {"qd": self._L}}
        if self.quantity == ACCELERATION:
            return motions
        motions["q"][third], motions["qd"][third] = of_q[1], of_qd[1]
        return {**motions, third: {third: self._L}}

    def _closed(self, step: Array, change: Array) -> tuple[Array, Array]:
        """Velocities and accelerations of all dofs after a step, the independent ones held but for a change."""
        sample, mask = self.sample, self._mask
        mechanism = sample.mechanism
        q, _ = close(mechanism, retract(mechanism, sample.q[None], step[None]), ~mask)
        qd = dependent_velocities(mechanism, q, (sample.qd + change)[None, mask], mask)
        state = State(mechanism=mechanism, q=q, qd=qd)
        qdd = np.where(mask, sample.qdd, 0.0)
        right = state.Phi @ qdd[:, None] + state.Phi_dot @ qd[..., None]
        qdd[~mask] = solve_dependent(state.Phi[..., ~mask], right)[0, :, 0]
        return qd[0], qdd

    @cached_property
    def _of_multipliers(self) -> Array:
        """Change of Φᵀ λ, with the multipliers held, per change of each independent position, shape (nv, n)."""
        sample = self.sample
        mechanism, q = sample.mechanism, sample.q[None]
        model = tree_model(State(mechanism=mechanism, q=q, qd=sample.qd[None]))
        force = model.force(sample.qdd[None], sample.qd[None])[0] - sample.effort @ mechanism.selection
        multipliers = np.linalg.lstsq(closure_jacobian_at(mechanism, q)[0].T, force, rcond=1e-9)[0]
        moved = retract(mechanism, np.repeat(q, len(self.independent), 0), 1j * IMAGINARY * self._L.T)
        rates = closure_jacobian_at(mechanism, moved).imag / IMAGINARY
        return (rates.swapaxes(1, 2) @ multipliers).T


def sample_of(case: Case) -> Sample:
    """The fastest state of the prescribed motion, without the external wrenches of the robot."""
    motion = prescribe(case)
    k = int(np.argmax(np.abs(motion.qd / np.abs(motion.qd).max(axis=0).clip(np.finfo(float).tiny)).sum(axis=1)))
    return sample_at(replace(case.mechanism, wrenches=()), motion.q[k], motion.qd[k], motion.qdd[k])


def sample_at(mechanism: Mechanism, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> Sample:
    """A state with the efforts that it requires."""
    effort = needed_efforts(State(mechanism=mechanism, q=q[None], qd=qd[None]), qdd[None]).effort[0]
    return Sample(mechanism=mechanism, q=q, qd=qd, qdd=qdd, effort=effort)


def with_parameter(mechanism: Mechanism, b: int, k: int, step: float) -> Mechanism:
    """A mechanism with an inertial parameter of a body increased by a step.

    Args:
        b: Index of the body.
        k: Number of the parameter, see `loopcheck.engines.declarations.CONSTANTS`.
        step: Change of the parameter [kg, kg m or kg m²].
    """
    bodies = list(mechanism.bodies)
    bodies[b] = changed(bodies[b], k, step)
    return replace(mechanism, bodies=tuple(bodies))


def changed(body: Body, k: int, step: float) -> Body:
    """A body with an inertial parameter increased by a step, see `with_parameter`."""
    h, c = body.mass * body.center, body.center
    about_origin = body.inertia + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
    mass = body.mass + step * (k == 0)
    if 1 <= k < 4:
        h = h + step * np.eye(3)[k - 1]
    if k >= 4:
        i, j = PAIRS[k - 4]
        about_origin = about_origin.copy()
        about_origin[i, j] += step
        about_origin[j, i] += step * (i != j)
    c = h / mass
    return replace(body, mass=mass, center=c, inertia=about_origin - mass * (c @ c * np.eye(3) - np.outer(c, c)))
