"""Fields of `Inventory` and `Matrices` from readings of an engine: each engine reads its own state."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from loopcheck.engines.equations import Equations, LoopEquations
from loopcheck.engines.loads import at_centers
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import FREEDOM, Matrices, off_axis
from loopcheck.robots.mechanism import Mechanism


def names_of(mechanism: Mechanism) -> dict[str, Any]:
    """Fields of `Inventory` that name the elements of a mechanism, in its own order."""
    return {
        "bodies": tuple(body.name for body in mechanism.bodies),
        "joints": tuple(joint.name for joint in mechanism.joints),
        "dofs": tuple(
            joint.name
            for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True)
            for _ in range(dofs.start, dofs.stop)
        ),
        "actuators": tuple(actuator.name for actuator in mechanism.actuators),
    }


def joint_fields(joints: Iterable[tuple[str, Any, Any]]) -> dict[str, Any]:
    """Freedom, axis and anchor of each joint.

    Args:
        joints: Kind of each joint, its axis [-] and a point on the axis [m], world axes, shape (3,) each.
    """
    every = list(joints)
    freedom, axes, anchors = (np.zeros((len(every), k)) for k in (2, 3, 3))
    for j, (kind, axis, point) in enumerate(every):
        freedom[j] = FREEDOM[kind]
        if kind in ("hinge", "slide"):
            axes[j] = axis
        if kind in ("hinge", "ball"):
            anchors[j] = off_axis(point, axes[j])
    return {"freedom": freedom, "axis": axes, "anchor": anchors}


def body_fields(mass: Array, center: Array, R: Array, inertia: Array, total: float | None = None) -> dict[str, Any]:
    """Masses, mass centres and inertias of the bodies.

    Args:
        mass: Masses [kg], shape (nb,).
        center: Mass centres, world axes [m], shape (nb, 3).
        R: Axes in which the inertias are read [-], shape (nb, 3, 3).
        inertia: Inertias about the mass centres [kg m²], shape (nb, 3, 3).
        total: Mass of the whole model [kg]; by default that of the bodies.
    """
    return {
        "mass": mass,
        "total_mass": float(mass.sum()) if total is None else total,
        "center": center,
        "moments": np.linalg.eigvalsh(inertia),
        "inertia": R @ inertia @ R.swapaxes(1, 2),
    }


def load_fields(mechanism: Mechanism, lever: Callable[[int, Array], Array]) -> dict[str, Any]:
    """Force on each body and moment about its mass centre, of an engine that gets its loads step by step.

    Args:
        lever: Vector from the mass centre of a body to a point of the body, world axes [m], shape (3,).
    """
    return dict(zip(("force", "moment"), at_centers(mechanism, lever), strict=True))


def equation_fields(equations: LoopEquations, q: JointPositions) -> dict[str, Any]:
    """Fields of `Inventory` from an engine's equations; leaves the engine there, at rest."""
    units = np.eye(equations.mechanism.nv)
    _, bias, passive = equations.tree_terms(q, np.zeros(len(units)))
    against = [passive - equations.tree_terms(q, unit)[2] for unit in units]
    return {
        "damping": np.reshape(against, units.shape).T,
        "rest_force": bias - passive,
        "J": equations.jacobian(q),
        "opening": equations.opening(q).largest,
    }


def matrices_along(equations: Equations, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """All terms at some states."""
    terms = [equations.tree_terms(*state) for state in zip(q, qd, strict=True)]
    M, bias, passive = (np.array(values) for values in zip(*terms, strict=True))
    return Matrices(
        M=M,
        bias=bias,
        passive=passive,
        J=np.array([equations.jacobian(position) for position in q]),
        closure_bias=np.array([equations.closure_bias(*state) for state in zip(q, qd, strict=True)]),
    )
