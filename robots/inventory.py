"""The model as an engine simulates it: read back from the engine's own state for comparison with the model file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from loopcheck.robots.arrays import Array, frozen

FREEDOM: Mapping[str, tuple[int, int]] = {"hinge": (1, 0), "slide": (0, 1), "ball": (3, 0), "free": (3, 3)}
"""Rotations and translations of a joint by its kind [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """A robot in an engine, in a given pose; vectors and tensors in world axes."""

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    dofs: tuple[str, ...]
    """Name of the joint of each dof."""
    actuators: tuple[str, ...]
    mass: Array
    """Mass of each body [kg], shape (nb,)."""
    total_mass: float
    """Total moving mass [kg]."""
    center: Array
    """Mass centres [m], shape (nb, 3)."""
    moments: Array
    """Principal moments of inertia, ascending [kg m²], shape (nb, 3)."""
    inertia: Array
    """Inertias about the mass centres [kg m²], shape (nb, 3, 3)."""
    freedom: Array
    """Rotations and translations of each joint [-], shape (nj, 2)."""
    axis: Array
    """Axes of hinges and slides, zero for other joints [-], shape (nj, 3)."""
    anchor: Array
    """Point of a hinge's axis nearest to the origin, point of a ball, zero for other joints [m], shape (nj, 3)."""
    armature: Array
    """Inertia of the rotors of joints and tendons [kg, kg m or kg m²], shape (nv, nv)."""
    damping: Array
    """Viscous damping of joints and tendons [N s/m, N s or N m s/rad], shape (nv, nv)."""
    friction: Array
    """Dry friction of each dof [N or N m], shape (nv,)."""
    stiffness: Array
    """Stiffness of each joint's spring [N/m or N m/rad], shape (nj,)."""
    spring_reference: Array
    """Rest positions of the springs of hinges and slides, zero without a spring [m or rad], shape (nj,)."""
    gravity: Array
    """Acceleration of gravity [m/s²], shape (3,)."""
    force: Array
    """External force on each body, gravity compensation included [N], shape (nb, 3)."""
    moment: Array
    """Moment of these forces and external moments about the mass centre [N m], shape (nb, 3)."""
    rest_force: Array
    """Force on each dof that holds the tree at rest: against weights, springs and loads [N or N m], shape (nv,)."""
    J: Array
    """Jacobian of the constraints [m/rad or m/m], shape (nc, nv)."""
    opening: float
    """Largest loop gap in the pose: distance of two points [m], or angle between two frames [rad].

    Independent of axes, and so comparable between engines even if the loops of the model have a gap.
    """
    transmission: Array
    """Actuator velocities per joint velocity [-], shape (na, nv)."""
    rebuilt: Mapping[str, str] = field(default_factory=dict)
    """Substitutes for quantities that the engine cannot represent natively, by name of the field."""

    def __post_init__(self) -> None:
        nb, nj, nv = len(self.bodies), len(self.joints), len(self.dofs)
        shapes: dict[str, tuple[int | None, ...]] = {
            "mass": (nb,),
            **dict.fromkeys(("center", "moments", "force", "moment"), (nb, 3)),
            "inertia": (nb, 3, 3),
            "freedom": (nj, 2),
            **dict.fromkeys(("axis", "anchor"), (nj, 3)),
            **dict.fromkeys(("armature", "damping"), (nv, nv)),
            **dict.fromkeys(("friction", "rest_force"), (nv,)),
            **dict.fromkeys(("stiffness", "spring_reference"), (nj,)),
            "gravity": (3,),
            "J": (None, nv),
            "transmission": (len(self.actuators), nv),
        }
        for name, shape in shapes.items():
            object.__setattr__(self, name, frozen(getattr(self, name), shape, name=f"inventory, {name}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrices:
    """An engine's terms of M q̈ + bias = passive + Sᵀτ + Jᵀλ in the dofs of the model, at some states."""

    M: Array
    """Inertia matrix of the spanning tree [kg, kg m or kg m²], shape (nt, nv, nv)."""
    bias: Array
    """Velocity terms and weights [N or N m], shape (nt, nv)."""
    passive: Array
    """Springs, dampers, gravity compensation and external wrenches [N or N m], shape (nt, nv)."""
    J: Array
    """Loop-closure Jacobian [m/rad or m/m], shape (nt, nc, nv)."""
    closure_bias: Array
    """J̇ q̇ in the rows of J, by the engine's kinematics [m/s² or rad/s²], shape (nt, nc)."""
    solver_bias: Array | None = None
    """J̇ q̇ as used by the engine's constraint solver, shape (nt, nc); None if it has no separate value."""

    def __post_init__(self) -> None:
        nt, nv = len(self.M), self.M.shape[-1]
        shapes: dict[str, tuple[int | None, ...]] = {
            "M": (nt, nv, nv),
            **dict.fromkeys(("bias", "passive"), (nt, nv)),
            "J": (nt, None, nv),
            "closure_bias": (nt, self.J.shape[1]),
        }
        if self.solver_bias is not None:
            shapes["solver_bias"] = (nt, self.J.shape[1])
        for name, shape in shapes.items():
            object.__setattr__(self, name, frozen(getattr(self, name), shape, name=f"matrices, {name}"))


def off_axis(point: Array, axis: Array) -> Array:
    """The part of a point across an axis: the same for all points of a line along it.

    Args:
        point: The point [m], shape (3,).
        axis: Unit axis [-], shape (3,).

    Returns:
        Its part across [m], shape (3,).
    """
    return point - (point @ axis) * axis
