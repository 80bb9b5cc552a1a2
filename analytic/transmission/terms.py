"""Weight, damping and springs of a mechanism at its shared joints, and its transmission to the motors."""

from dataclasses import dataclass, replace

import numpy as np

from loopcheck.analytic.dynamics.noc import tree_model
from loopcheck.analytic.dynamics.powers import tree_inertia
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.transmission.joint_space import JointSpace, joint_motions
from loopcheck.robots.arrays import Array, EffortSeries, PositionSeries


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTerms:
    """The equations of a mechanism at its shared joints, at some poses."""

    transmission: Array
    """Rate of each actuator per rate of each shared coordinate, T; joint efforts are Tᵀ τ [-, or ratios of the units],
    shape (nt, na, n)."""
    mass: Array
    """Inertia, DᵀMD [kg, kg m or kg m²], shape (nt, n, n)."""
    damping: Array
    """Damping, DᵀCD [N s/m, N s or N m s/rad], shape (nt, n, n)."""
    spring: Array
    """Effort that holds the springs [N or N m], shape (nt, n)."""
    weight: Array
    """Effort that holds the weights and constant loads [N or N m], shape (nt, n)."""

    @property
    def still(self) -> Array:
        """Effort at rest [N or N m], shape (nt, n)."""
        return self.weight + self.spring


def joint_terms(space: JointSpace, q: PositionSeries) -> JointTerms:
    """The equations of a mechanism at its shared joints.

    Args:
        space: Mechanism and shared joints.
    """
    mechanism = space.mechanism
    state = State(mechanism=mechanism, q=q, qd=np.zeros((len(q), mechanism.nv)))
    D = joint_motions(space, state)
    D_T = D.swapaxes(1, 2)
    tree = tree_model(state)
    light = replace(mechanism, gravity=np.zeros(3), wrenches=())
    springs = tree_model(State(mechanism=light, q=q, qd=state.qd)).G
    return JointTerms(
        transmission=mechanism.selection @ D,
        mass=D_T @ tree_inertia(state) @ D,
        damping=D_T @ tree.D @ D,
        spring=(D_T @ springs[..., None])[..., 0],
        weight=(D_T @ (tree.G - springs)[..., None])[..., 0],
    )


def to_motors(transmission: Array) -> Array:
    """T⁻ᵀ, which maps efforts at the joints to those of the motors; see `motor_efforts`.

    Args:
        transmission: T [-, or ratios of the units], shape (nt, na, n).

    Returns:
        [-, or ratios of the units], shape (nt, na, n).
    """
    return np.asarray(np.linalg.pinv(transmission).swapaxes(1, 2))


def motor_efforts(transmission: Array, efforts: Array) -> EffortSeries:
    """Efforts of the motors that give efforts at the joints, T⁻ᵀ τ_x; of least norm if there are more than joints.

    Args:
        transmission: T [-, or ratios of the units], shape (nt, na, n).
        efforts: Efforts at the joints [N or N m], shape (nt, n).

    Returns:
        Efforts of the motors [N or N m], shape (nt, na).
    """
    return np.einsum("tna,tn->ta", np.linalg.pinv(transmission), efforts)
