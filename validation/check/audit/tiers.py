"""Quantities of an engine compared with the quantities of the model, tier by tier, each with its unit of error."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.dynamics.lagrange import LagrangeModel
from loopcheck.analytic.kinematics.closures import (
    closure_names,
    null_space,
    solve_dependent,
)
from loopcheck.robots.arrays import Array, svd
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import size, unit_rates
from loopcheck.validation.common.limits import ROUND_OFF

CLOSURE_ACCELERATION = "closure acceleration"
"""J̇ q̇ by the kinematics of an engine, an input of its `kkt` route."""
FORBIDDEN, OPENING = "forbidden directions", "opening of the loops"
OF_LOOPS = (FORBIDDEN, OPENING, CLOSURE_ACCELERATION, f"{CLOSURE_ACCELERATION} in its solver")
"""Quantities that loops of a rounded file leave open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityCheck:
    """One quantity of an engine compared with the quantity of the model."""

    quantity: str
    unit: str
    elements: Sequence[str]
    """Names of the elements with this quantity, at least one element."""
    expected: Array
    """Entries of all elements in the model [unit], shape (elements, entries)."""
    actual: Array
    """Entries of all elements in the engine [unit], shape (elements, entries)."""
    scale: Array
    """Scale of the errors [unit], shape (elements or 1, entries or 1)."""
    note: str = ""

    @property
    def error(self) -> Array:
        """Errors of all entries [-], shape (elements, entries)."""
        return np.abs(self.actual - self.expected) / self.scale


def static(expected: Inventory, actual: Inventory, M: Array) -> Iterator[QuantityCheck]:
    """Comparison of the inventory of an engine with the model: first all numbers of elements, then their properties.

    Args:
        M: Inertia matrix of the model in the same pose [kg, kg m or kg m²], shape (nv, nv).
    """
    alike = {"": True}
    for kind in ("bodies", "joints", "dofs", "actuators"):
        names, others = getattr(expected, kind), getattr(actual, kind)
        alike[kind] = names == others
        yield _names(kind, names, others)
    scales = _scales(expected, M)
    for name, (field, kind, unit) in QUANTITIES.items():
        elements = getattr(expected, kind) if kind else ("robot",)
        is_of_tree = field == "opening" and not len(expected.J) + len(actual.J)
        if elements and alike[kind] and not is_of_tree:
            values, others = (np.reshape(getattr(one, field), (len(elements), -1)) for one in (expected, actual))
            yield QuantityCheck(
                quantity=name,
                unit=unit,
                elements=elements,
                expected=values,
                actual=others,
                scale=scales.get(field, _by_element(values)),
                note=f"rebuilt: {actual.rebuilt[field]}" if field in actual.rebuilt and values.any() else "",
            )
    yield from _rigid(expected, actual)


QUANTITIES = {
    "kind of joint": ("freedom", "joints", "-"),
    "axis": ("axis", "joints", "-"),
    "anchor": ("anchor", "joints", "m"),
    "mass": ("mass", "bodies", "kg"),
    "total mass": ("total_mass", "", "kg"),
    "mass centre": ("center", "bodies", "m"),
    "principal moments": ("moments", "bodies", "kg m²"),
    "inertia": ("inertia", "bodies", "kg m²"),
    "armature": ("armature", "dofs", "kg or kg m²"),
    "damping": ("damping", "dofs", "N s/m or N m s/rad"),
    "dry friction": ("friction", "dofs", "N or N m"),
    "stiffness": ("stiffness", "joints", "N/m or N m/rad"),
    "spring reference": ("spring_reference", "joints", "m or rad"),
    "gravity": ("gravity", "", "m/s²"),
    "external force": ("force", "bodies", "N"),
    "external moment": ("moment", "bodies", "N m"),
    "gear": ("transmission", "actuators", "-"),
    "force at rest": ("rest_force", "dofs", "N or N m"),
    OPENING: ("opening", "", "m or rad"),
}
"""Field of the inventory, kind of element and unit, by quantity; causes come before effects, to name the cause."""


def _scales(expected: Inventory, M: Array) -> dict[str, Array]:
    """Units of errors that differ from the size of the element itself.

    Zero armature is compared with the inertia. Zero damping is compared with the inertia and the damping that stops it
    within a second, and also with the force at rest, as the engine's damping is measured as a difference of forces. The
    coupling of dampers between two dofs is compared with all forces on the second dof; otherwise the round-off of a
    heavy robot would count against a light link. Both dofs must have a damper, and their own damping is compared
    separately.
    """
    size = _largest(expected.center, expected.anchor)
    force, moment = _largest(expected.force), _largest(expected.moment, size * expected.force)
    weight = expected.total_mass * float(np.linalg.norm(expected.gravity))
    scales = {
        **dict.fromkeys(("center", "anchor", "opening"), size),
        **dict.fromkeys(("freedom", "axis"), 1.0),
        "spring_reference": _largest(expected.spring_reference),
        "force": force,
        "moment": moment,
        "rest_force": _largest(expected.rest_force, weight),
    }
    by_dof = {}
    beside = np.maximum(np.diag(M), np.abs(expected.rest_force))
    for name, values, least in (("armature", expected.armature, np.diag(M)), ("damping", expected.damping, beside)):
        size_of_dof = np.sqrt(np.where(np.diag(values) > 0, np.diag(values), least))
        by_dof[name] = size_of_dof[:, None] * size_of_dof
    falling = np.linalg.lstsq(M, expected.rest_force, rcond=ROUND_OFF)[0]
    load = np.maximum(np.abs(expected.rest_force), np.abs(M) @ np.abs(falling))
    by_dof["damping"] = np.maximum(by_dof["damping"], load[:, None] * (1 - np.eye(len(load))))
    return {**{name: np.full((1, 1), scale) for name, scale in scales.items()}, **by_dof}


def _rigid(expected: Inventory, actual: Inventory) -> Iterator[QuantityCheck]:
    """The constraints: their number, their rank, the remaining dof, and the forbidden motions."""
    (free, nv), (others, nv_found) = ((null_space(one.J).shape[1], one.J.shape[1]) for one in (expected, actual))
    yield _number("constraint rows", len(expected.J), len(actual.J))
    yield _number("rank of the constraints", nv - free, nv_found - others)
    yield _number("dof", free, others)
    if expected.dofs == actual.dofs and len(expected.J) + len(actual.J):
        yield _forbidden(expected.dofs, expected.J[None], actual.J[None])


def instantaneous(
    mechanism: Mechanism, terms: LagrangeModel, actual: Matrices, rates: tuple[Array, Array]
) -> Iterator[QuantityCheck]:
    """Comparison of the terms of an engine at some states with the terms of the model.

    Args:
        terms: Terms of the model at the states.
        actual: Terms of the engine, first at the states and then at rest in the same positions.
        rates: Joint velocities [m/s or rad/s] and accelerations [m/s² or rad/s²], each of shape (nt, nv).
    """
    nt, dofs = len(terms.M), _names_of_dofs(mechanism)
    moving, rest = slice(0, nt), slice(nt, None)
    inertial = (terms.M @ rates[1][..., None])[..., 0]
    force = np.full((1, 1), _largest(inertial, terms.coriolis, terms.gravity, terms.dissipation, terms.load))
    diagonal = np.sqrt(np.diagonal(terms.M, axis1=1, axis2=2))
    diagonal = np.where(diagonal > 0, diagonal, _largest(diagonal))
    yield QuantityCheck(
        quantity="mass matrix",
        unit="kg, kg m or kg m²",
        elements=dofs,
        expected=_by_dof(terms.M),
        actual=_by_dof(actual.M[moving]),
        scale=_by_dof(diagonal[:, :, None] * diagonal[:, None]),
    )
    for quantity, expected, values in (
        ("velocity terms", terms.coriolis, actual.bias[moving] - actual.bias[rest]),
        ("weights, springs and loads", terms.gravity - terms.load, actual.bias[rest] - actual.passive[rest]),
        ("dampers", terms.dissipation, actual.passive[rest] - actual.passive[moving]),
    ):
        yield QuantityCheck(
            quantity=quantity,
            unit="N or N m",
            elements=dofs,
            expected=_by_dof(expected),
            actual=_by_dof(values),
            scale=force,
        )
    if terms.Phi.size + actual.J.size:
        yield _forbidden(dofs, terms.Phi, actual.J[moving])
    biases = {CLOSURE_ACCELERATION: actual.closure_bias, f"{CLOSURE_ACCELERATION} in its solver": actual.solver_bias}
    for quantity, bias in biases.items():
        if bias is not None and bias.size:
            yield _closure_acceleration(mechanism, terms, quantity, (actual.J[moving], bias[moving]), rates)


def _closure_acceleration(
    mechanism: Mechanism,
    terms: LagrangeModel,
    quantity: str,
    loops: tuple[Array, Array],
    rates: tuple[Array, Array],
) -> QuantityCheck:
    """J̇ q̇ of the engine: the negative of J q̈ for all accelerations that keep the loops of the model closed.

    It is a difference of the accelerations of two points and is compared with these accelerations. On a flying robot
    with a locked loop the closures have no acceleration of their own.
    """
    names, (J, bias) = closure_names(mechanism), loops
    closing = solve_dependent(terms.Phi, terms.closure_bias[..., None])
    expected = -(J @ closing)[..., 0]
    return QuantityCheck(
        quantity=quantity,
        unit="m/s² or rad/s²",
        elements=names if len(names) == J.shape[1] else [f"row {row}" for row in range(J.shape[1])],
        expected=expected.T,
        actual=bias.T,
        scale=np.full(
            (1, 1), _largest(np.abs(J) @ np.abs(rates[1])[..., None], bias, _accelerations(mechanism, rates))
        ),
    )


def _accelerations(mechanism: Mechanism, rates: tuple[Array, Array]) -> Array:
    """Accelerations due to each dof alone, of points at the distance of the robot's size [m/s²], shape (2, nt, nv)."""
    turns, growth = (rate / unit_rates(mechanism) for rate in rates)
    return size(mechanism) * np.stack([turns**2, np.abs(growth)])


def _forbidden(dofs: Sequence[str], Phi: Array, J: Array) -> QuantityCheck:
    """Directions of motion forbidden by only one of two sets of constraints; rows may differ by any factor."""
    rest = [side for pair in zip(Phi, J, strict=True) for side in (_beyond(*pair), _beyond(*pair[::-1]))]
    actual = np.concatenate(rest).T
    return QuantityCheck(
        quantity=FORBIDDEN,
        unit="-",
        elements=dofs,
        expected=np.zeros(actual.shape),
        actual=actual,
        scale=np.ones((1, 1)),
    )


def _beyond(rows: Array, others: Array) -> Array:
    """Part of some rows outside the space of other rows, relative to their largest entry, shape of the rows."""
    if not rows.size or not others.size:
        return rows / _largest(rows)
    _, values, V = svd(others, full_matrices=False)
    V = V[values > ROUND_OFF * values[0]]
    return (rows - rows @ V.T @ V) / _largest(rows)


def _names(kind: str, names: Sequence[str], others: Sequence[str]) -> QuantityCheck:
    """Number of elements; for equal numbers with different names, the number of equal names."""
    missing, added = (", ".join(n for n in a if n not in b) for a, b in ((names, others), (others, names)))
    note = "; ".join(f"{what}: {which}" for what, which in (("lost", missing), ("added", added)) if which)
    same = sum(a == b for a, b in zip(names, others, strict=False))
    return _number(f"number of {kind}", len(names), same if len(others) == len(names) else len(others), note)


def _number(quantity: str, expected: int, actual: int, note: str = "") -> QuantityCheck:
    one = np.ones((1, 1))
    return QuantityCheck(
        quantity=quantity,
        unit="-",
        elements=("robot",),
        expected=expected * one,
        actual=actual * one,
        scale=one,
        note=note,
    )


def _by_element(values: Array) -> Array:
    """The largest entry of each element; for a zero element, the largest entry of all elements."""
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    return np.where(largest > 0, largest, _largest(largest))


def _by_dof(values: Array) -> Array:
    """Values per sample and dof with the dofs first, shape (nv, any)."""
    return np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)


def _names_of_dofs(mechanism: Mechanism) -> tuple[str, ...]:
    pairs = zip(mechanism.joints, mechanism.dof_slices, strict=True)
    return tuple(joint.name for joint, dofs in pairs for _ in range(dofs.start, dofs.stop))


def _largest(*values: Array | float) -> float:
    """Largest absolute value of some numbers; 1 if all are zero."""
    return max(float(np.abs(value).max(initial=0.0)) for value in values) or 1.0
