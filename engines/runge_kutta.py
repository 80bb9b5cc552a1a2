"""The classical Runge-Kutta method of fourth order for mechanisms with ball and free joints.

Positions are integrated in the coordinates of the displacement since the beginning of the step, because the angular
velocities of ball and free joints at different stages belong to different poses (Munthe-Kaas 1999).
"""

from collections.abc import Callable, Sequence

import numpy as np

from loopcheck.robots.arrays import AnyArray, Array, cross

TABLEAU = np.array([[0, 0, 0, 0], [1 / 2, 0, 0, 0], [0, 1 / 2, 0, 0], [0, 0, 1, 0], [1 / 6, 1 / 3, 1 / 3, 1 / 6]])
"""Weights of the stages in the state of each, and in that at the end [-], shape (5, 4)."""
HALF_STEPS = (1, 1, 2)
"""Times of the second, third and fourth stage in half steps."""


class RungeKutta:
    """Steps of a fixed length.

    With the first velocity v and the accelerations a_j of the stages, stage i has the velocity v + dt Σ A_ij a_j. Its
    displacement is dt Σ A_ij u_j, with the rate u_j the velocity of stage j, plus the term of `_turning` for
    rotations. So both are sums of v, a and turnings, with the same weights in all steps.
    """

    def __init__(self, dt: float, nv: int, turns: Sequence[slice]) -> None:
        """Compute the weights of the sums.

        Args:
            dt: Step [s].
            nv: Number of dofs.
            turns: Places of the angular velocities of ball and free joints among the velocities.
        """
        A, self._turns = TABLEAU, turns
        self._rows = np.zeros((9, nv))
        """The first velocity, four accelerations, four rotations (the first is zero)."""
        displacement = np.hstack([dt * A.sum(axis=1, keepdims=True), dt**2 * A @ A[:4], dt * A])
        velocity = np.hstack([np.ones((5, 1)), dt * A, np.zeros((5, 4))])
        self._weights = list(np.stack([displacement, velocity], axis=1))

    def step(
        self,
        move: Callable[[AnyArray, AnyArray], None],
        acceleration: Callable[[int], Array],
        start: tuple[Array, Array],
    ) -> None:
        """A single step.

        Args:
            move: Sets the state to a displacement from the beginning of the step and a velocity, each of shape (nv,).
            acceleration: Computes the accelerations in that state, so many half steps into the step, shape (nv,).
            start: Velocities [m/s or rad/s] and accelerations [m/s² or rad/s²] at the beginning, each of shape (nv,).
        """
        rows, weights, turns = self._rows, self._weights, self._turns
        rows[0], rows[1] = start
        for stage, half_steps in enumerate(HALF_STEPS, start=1):
            displacement, velocity = weights[stage].dot(rows)
            move(displacement, velocity)
            rows[stage + 1] = acceleration(half_steps)
            for turn in turns:
                rows[stage + 5, turn] = _turning(displacement[turn], velocity[turn])
        move(*weights[4].dot(rows))


def _turning(theta: AnyArray, omega: AnyArray) -> AnyArray:
    """Rate of a turn θ in addition to the angular velocity ω in body axes, θ × ω / 2 + θ × (θ × ω) / 12, (3,)."""
    once = cross(theta, omega)
    return once / 2 + cross(theta, once) / 12
