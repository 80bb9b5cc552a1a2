"""A seeded error of an engine is named by exactly its quantity and element, and is as large as it was made."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism, Wrench
from loopcheck.robots.robot import Case
from loopcheck.validation.check.audit.audit import ExpectedTerms, expected_terms
from loopcheck.validation.check.audit.tiers import QUANTITIES, QuantityCheck, instantaneous, static
from loopcheck.validation.common.tolerances import audits
from tests.conftest import CaseMaker
from tests.engines.mechanisms import FIVE_BAR

ERROR = 1e-3
"""Seeded error [-]."""
SAMPLE = 1
"""State of the seeded fault."""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory, model_case: CaseMaker) -> Case:
    """Springs, dampers, references, gears, rotors, held weight; and a wrench besides."""
    path = tmp_path_factory.mktemp("models") / "five_bar.xml"
    path.write_text(FIVE_BAR, encoding="utf-8")
    made = model_case(path, amplitude=0.15)
    vectors = {"point": [0.2, -0.1, 0.3], "moment": [0.3, -0.2, 7.0], "force": [2.0, 1.0, -3.0]}
    load = Wrench(body=1, **{name: np.array(vector) for name, vector in vectors.items()})
    return replace(made, mechanism=replace(made.mechanism, wrenches=(load,)))


@pytest.fixture(scope="module")
def want(case: Case) -> ExpectedTerms:
    return expected_terms(case, prescribe(case))


@pytest.fixture(scope="module")
def right(want: ExpectedTerms) -> Matrices:
    """Of an engine with the model's own results."""
    terms = want.terms
    rest = terms.gravity
    return Matrices(
        M=np.concatenate([terms.M, terms.M]),
        bias=np.concatenate([terms.coriolis + rest, rest]),
        passive=np.concatenate([terms.load - terms.dissipation, terms.load]),
        J=np.concatenate([terms.Phi, terms.Phi]),
        closure_bias=np.concatenate([-(terms.Phi @ want.qdd[..., None])[..., 0], np.zeros(terms.Phi.shape[:2])]),
    )


def named(rows: Sequence[QuantityCheck]) -> list[tuple[Any, ...]]:
    """Quantity, element and size of every error that is not round-off."""
    found = []
    for held in rows:
        assert held.error.shape == held.expected.shape == held.actual.shape
        assert len(held.elements) == len(held.expected)
        for element, entry in zip(*np.nonzero(held.error > 1e-13), strict=True):
            found.append((held.quantity, held.elements[element], float(held.error[element, entry])))
    return found


def test_what_is_right_has_no_errors(case: Case, want: ExpectedTerms, right: Matrices) -> None:
    assert named([*static(want.inventory, want.inventory, want.terms.M[0])]) == []
    rows = [*instantaneous(case.mechanism, want.terms, right, (want.qd, want.qdd))]
    assert named(rows) == []
    assert [held.quantity for held in rows] == ["mass matrix", *SPOILT, "forbidden directions", "closure acceleration"]


def size(inventory: Inventory) -> float:
    return float(max(np.abs(inventory.center).max(), np.abs(inventory.anchor).max()))


def weight(inventory: Inventory) -> float:
    return float(inventory.total_mass * np.linalg.norm(inventory.gravity))


def load(want: ExpectedTerms) -> Array:
    """All that acts on each dof of the tree in free fall, by size [N or N m]."""
    return np.abs(want.terms.M[0]) @ np.abs(np.linalg.solve(want.terms.M[0], want.inventory.rest_force))


Scale = Callable[[Inventory], float]
SEEDED: dict[str, tuple[str, tuple[int, ...], str, Scale]] = {
    "kind of joint": ("freedom", (1, 0), "left2", lambda _: 1.0),
    "axis": ("axis", (2, 1), "right", lambda _: 1.0),
    "anchor": ("anchor", (3, 0), "right2", size),
    "mass": ("mass", (1,), "left2", lambda _: 0.4),
    "mass centre": ("center", (2, 1), "right", size),
    "principal moments": ("moments", (1, 0), "left2", lambda _: 4e-3),
    "inertia": ("inertia", (3, 0, 1), "right2", lambda _: 2.5e-3),
    "armature": ("armature", (0, 0), "left", lambda _: 0.02),
    "damping": ("damping", (1, 1), "left2", lambda _: 0.05),
    "dry friction": ("friction", (0,), "left", lambda _: 1.0),
    "stiffness": ("stiffness", (1,), "left2", lambda _: 2.0),
    "spring reference": ("spring_reference", (1,), "left2", lambda _: 0.7),
    "gravity": ("gravity", (2,), "robot", lambda _: 9.0),
    "external force": ("force", (0, 1), "left", lambda _: 3.0),
    "external moment": ("moment", (3, 0), "right2", lambda i: float(np.abs(i.moment).max())),
    "gear": ("transmission", (1, 0), "right", lambda _: 3.0),
    "force at rest": ("rest_force", (3,), "right2", weight),
}


@pytest.mark.parametrize("quantity", SEEDED)
def test_a_seeded_error_of_the_robot_is_named(quantity: str, want: ExpectedTerms) -> None:
    field, place, element, scale = SEEDED[quantity]
    want_named(want, spoilt(want.inventory, field, place, ERROR * scale(want.inventory)), quantity, element)


def test_a_seeded_error_of_a_number_is_named(want: ExpectedTerms) -> None:
    found = want.inventory
    want_named(want, replace(found, total_mass=found.total_mass + ERROR * 1.8), "total mass", "robot")
    want_named(want, replace(found, opening=found.opening + ERROR * size(found)), "opening of the loops", "robot")


def test_every_quantity_is_seeded() -> None:
    assert {*SEEDED, "total mass", "opening of the loops"} == set(QUANTITIES)


@pytest.mark.parametrize(
    ("field", "place", "element", "scale"),
    [
        ("freedom", (3, 1), "right2", lambda want: 1.0),
        ("anchor", (0, 2), "left", lambda want: size(want.inventory)),
        ("force", (1, 1), "left2", lambda want: 3.0),
        ("armature", (1, 1), "left2", lambda want: want.terms.M[0][1, 1]),
        ("armature", (0, 3), "left", lambda want: np.sqrt(0.02 * 0.003)),
        ("damping", (2, 2), "right", lambda want: abs(want.inventory.rest_force[2])),
        ("damping", (0, 1), "left", lambda want: load(want)[0]),
        ("stiffness", (0,), "left", lambda want: 2.0),
        ("spring_reference", (3,), "right2", lambda want: 0.7),
    ],
)
def test_what_is_not_there_is_seen_beside_what_it_would_act_on(
    field: str, place: tuple[int, ...], element: str, scale: Callable[[ExpectedTerms], float], want: ExpectedTerms
) -> None:
    (quantity,) = [name for name, (own, _, _) in QUANTITIES.items() if own == field]
    want_named(want, spoilt(want.inventory, field, place, ERROR * scale(want)), quantity, element)


def test_places_and_springs_are_seen_beside_the_largest(want: ExpectedTerms) -> None:
    """Not each beside its own: a body near the origin, a spring near its rest position, an axis not of length one."""
    own = replace(
        want.inventory,
        center=np.array([[0.01, 0, 0], [3, 0, 0], [0, 0, 0], [0, 0, 0]]),
        anchor=np.array([[0.01, 0, 0], [0.5, 0, 0], [0, 0, 0], [0, 0, 0]]),
        spring_reference=np.array([0.1, 0.7, 0.0, 0.0]),
        force=np.array([[0.1, 0, 0], [3.0, 0, 0], [0, 0, 0], [0, 0, 0]]),
        freedom=np.array([[3.0, 3], [1, 0], [1, 0], [1, 0]]),
        axis=np.array([[0, 0, 0], [0, 0, 2.0], [0, 0, 1], [0, 0, 1]]),
    )
    largest = {"center": 3.0, "anchor": 3.0, "spring_reference": 0.7, "force": 3.0, "freedom": 1.0, "axis": 1.0}
    for field, scale in largest.items():
        place = (0,) if field == "spring_reference" else (1, 0) if field == "axis" else (0, 0)
        (found,) = named([*static(own, spoilt(own, field, place, ERROR * scale), want.terms.M[0])])
        assert found[2] == pytest.approx(ERROR), field
    far = replace(own, anchor=4 * own.center)
    assert named([*static(far, spoilt(far, "center", (0, 0), ERROR * 12), want.terms.M[0])])[0][2] == pytest.approx(
        ERROR
    )


@pytest.mark.parametrize("share", [1e-2, -1e-9])
def test_a_damper_that_is_a_little_wrong_is_named(share: float, want: ExpectedTerms) -> None:
    """Off by a hundredth of itself, and by a billionth of the largest for a zero quantity."""
    place, own = ((1, 1), 0.05) if share > 0 else ((2, 2), -0.1)
    rows = static(want.inventory, spoilt(want.inventory, "damping", place, share * own), want.terms.M[0])
    limit = audits()["static"].relative_error or 0.0
    assert [row.quantity for row in rows if (row.error > limit).any()] == ["damping"]


def test_damping_of_what_rests_without_force_is_seen_beside_its_inertia(want: ExpectedTerms) -> None:
    own = replace(want.inventory, rest_force=np.zeros(4))
    inertia = want.terms.M[0][2, 2]
    rows = [*static(own, spoilt(own, "damping", (2, 2), ERROR * inertia), want.terms.M[0])]
    assert named(rows) == [("damping", "right", pytest.approx(ERROR))]


def test_forces_and_moments_have_the_larger_of_their_scales(want: ExpectedTerms) -> None:
    """A moment is also seen beside the forces at the robot's size, a force at rest beside the required efforts."""
    own = replace(want.inventory, moment=np.zeros((4, 3)))
    spoilt_moment = spoilt(own, "moment", (0, 0), ERROR * 3.0 * size(own))
    assert named([*static(own, spoilt_moment, want.terms.M[0])]) == [("external moment", "left", pytest.approx(ERROR))]
    heavy = replace(want.inventory, rest_force=np.array([0.0, 0.0, 0.0, 1e3]))
    spoilt_force = spoilt(heavy, "rest_force", (3,), ERROR * 1e3)
    assert named([*static(heavy, spoilt_force, want.terms.M[0])]) == [("force at rest", "right2", pytest.approx(ERROR))]


def want_named(want: ExpectedTerms, found: Inventory, quantity: str, element: str) -> None:
    rows = [*static(want.inventory, found, want.terms.M[0])]
    assert named(rows) == [(quantity, element, pytest.approx(ERROR))]
    (held,) = [held for held in rows if held.quantity == quantity]
    assert held.unit == {name: unit for name, (_, _, unit) in QUANTITIES.items()}[quantity]
    assert held.note == ""


def spoilt(inventory: Inventory, field: str, place: tuple[int, ...], error: float) -> Inventory:
    values = np.array(getattr(inventory, field))
    values[place] += error
    changed: dict[str, Any] = {field: values}
    return replace(inventory, **changed)


def test_what_is_rebuilt_is_said_where_there_is_some(want: ExpectedTerms) -> None:
    by = {"armature": "gears", "friction": "springs"}
    notes = {
        held.quantity: held.note
        for held in static(want.inventory, replace(want.inventory, rebuilt=by), want.terms.M[0])
    }
    assert {quantity: note for quantity, note in notes.items() if note} == {"armature": "rebuilt: gears"}


def without_last_actuator(own: Inventory) -> Inventory:
    return replace(own, actuators=own.actuators[:2], transmission=own.transmission[:2])


def with_renamed_body(own: Inventory) -> Inventory:
    return replace(own, bodies=("left", "rod", "right", "tip"))


def in_another_order(own: Inventory) -> Inventory:
    return replace(own, joints=("left", "right", "left2", "right2"))


def with_renamed_dof(own: Inventory) -> Inventory:
    return replace(own, dofs=("left", "left2", "other", "right2"), J=2 * own.J[:, ::-1])


@pytest.mark.parametrize(
    ("change", "kind", "numbers", "note", "missing"),
    [
        (without_last_actuator, "actuators", (3, 2), "lost: right again", {"gear"}),
        (
            with_renamed_body,
            "bodies",
            (4, 2),
            "lost: left2, right2; added: rod, tip",
            {"mass", "mass centre", "principal moments", "inertia", "external force", "external moment"},
        ),
        (in_another_order, "joints", (4, 2), "", {"kind of joint", "axis", "anchor", "stiffness", "spring reference"}),
        (
            with_renamed_dof,
            "dofs",
            (4, 3),
            "lost: right; added: other",
            {"armature", "damping", "dry friction", "force at rest", "forbidden directions"},
        ),
    ],
)
def test_what_is_lost_or_called_otherwise_is_named(
    change: Callable[[Inventory], Inventory],
    kind: str,
    numbers: tuple[int, int],
    note: str,
    missing: set[str],
    want: ExpectedTerms,
) -> None:
    """And its dependents are not compared, as they lack a partner."""
    whole = {held.quantity: held for held in static(want.inventory, want.inventory, want.terms.M[0])}
    rows = {held.quantity: held for held in static(want.inventory, change(want.inventory), want.terms.M[0])}
    assert set(whole) - set(rows) == missing
    held = rows[f"number of {kind}"]
    assert (held.expected.item(), held.actual.item()) == numbers
    assert (held.error.item(), held.note) == (numbers[0] - numbers[1], note)
    assert (held.unit, held.elements) == ("-", ("robot",))
    assert {name for name, _, _ in named([*rows.values()])} == {f"number of {kind}"}


def test_what_is_added_is_named(want: ExpectedTerms) -> None:
    rows = static(without_last_actuator(want.inventory), want.inventory, want.terms.M[0])
    (held,) = [held for held in rows if held.quantity == "number of actuators"]
    assert (held.expected.item(), held.actual.item(), held.note) == (2, 3, "added: right again")


def test_no_actuators_are_no_row(want: ExpectedTerms) -> None:
    passive = replace(want.inventory, actuators=(), transmission=np.zeros((0, 4)))
    assert "gear" not in {held.quantity for held in static(passive, passive, want.terms.M[0])}


ROWS = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
"""Two constraints on four dofs."""
RIGID = ("constraint rows", "rank of the constraints", "dof", "forbidden directions")


def rigid(want: ExpectedTerms, J: Array, J_found: Array) -> dict[str, Any]:
    """Wanted and found numbers of the constraints, and the largest error of their directions."""
    rows = static(replace(want.inventory, J=J), replace(want.inventory, J=J_found), want.terms.M[0])
    numbers = {held.quantity: held for held in rows if held.quantity in RIGID}
    directions = numbers.pop("forbidden directions", None)
    found = {name: (held.expected.item(), held.actual.item()) for name, held in numbers.items()}
    return found if directions is None else {**found, "beyond": (0.0, float(directions.error.max()))}


def test_constraints_are_counted_and_ranked(want: ExpectedTerms) -> None:
    """Scaled, mixed or repeated rows forbid the same motions; a missing or another direction is named."""
    same = {"constraint rows": (2, 2), "rank of the constraints": (2, 2), "dof": (2, 2)}
    mixed = np.array([[3.0, 0.0], [1.0, -200.0]]) @ ROWS
    assert rigid(want, ROWS, mixed) == {**same, "beyond": (0, pytest.approx(0, abs=1e-14))}
    repeated = rigid(want, ROWS, np.vstack([ROWS, ROWS.sum(0)]))
    assert repeated == {**same, "constraint rows": (2, 3), "beyond": (0, pytest.approx(0, abs=1e-14))}
    fewer = rigid(want, ROWS, ROWS[:1])
    assert fewer == {
        "constraint rows": (2, 1),
        "rank of the constraints": (2, 1),
        "dof": (2, 3),
        "beyond": (0, pytest.approx(1)),
    }
    assert rigid(want, 1e-9 * ROWS, ROWS) == {**same, "beyond": (0, pytest.approx(0, abs=1e-14))}
    assert rigid(want, ROWS, 0 * ROWS)["beyond"] == (0, pytest.approx(1))
    none = np.zeros((0, 4))
    assert rigid(want, none, none) == {"constraint rows": (0, 0), "rank of the constraints": (0, 0), "dof": (4, 4)}
    assert rigid(want, none, ROWS)["beyond"] == (0, pytest.approx(1))
    assert rigid(want, 7 * ROWS, none)["beyond"] == (0, pytest.approx(1))


@pytest.mark.parametrize("swapped", [False, True])
def test_a_direction_that_is_off_is_as_large_as_its_angle(want: ExpectedTerms, *, swapped: bool) -> None:
    turned = ROWS + ERROR * np.array([[0.0, 0.0, 0.0, 5.0], [0.0, 0.0, 0.0, 0.0]])
    pair = (5 * turned, ROWS) if swapped else (ROWS, 5 * turned)
    rows = static(replace(want.inventory, J=pair[0]), replace(want.inventory, J=pair[1]), want.terms.M[0])
    (held,) = [held for held in rows if held.quantity == "forbidden directions"]
    assert (held.unit, held.elements) == ("-", want.inventory.dofs)
    assert held.error.argmax() // held.error.shape[1] == 3
    assert held.error.max() == pytest.approx(5 * ERROR, rel=1e-3)
    assert (held.expected == 0).all()


def largest_force(want: ExpectedTerms) -> float:
    terms = want.terms
    inertial = np.einsum("tij,tj->ti", terms.M, want.qdd)
    return float(max(np.abs(x).max() for x in (inertial, terms.coriolis, terms.gravity, terms.dissipation, terms.load)))


MOVING, REST = SAMPLE, 3 + SAMPLE
SPOILT: dict[str, tuple[dict[str, tuple[int, ...]], str]] = {
    "velocity terms": ({"bias": (MOVING,)}, "N or N m"),
    "weights, springs and loads": ({"bias": (MOVING, REST)}, "N or N m"),
    "dampers": ({"passive": (MOVING,)}, "N or N m"),
}
"""Forces to change, in motion or at rest or in both, for a single wrong quantity; and its unit."""


@pytest.mark.parametrize("quantity", SPOILT)
def test_a_seeded_error_of_the_forces_is_named(quantity: str, case: Case, want: ExpectedTerms, right: Matrices) -> None:
    fields, unit = SPOILT[quantity]
    values = {name: np.array(getattr(right, name)) for name in fields}
    for name, samples in fields.items():
        values[name][list(samples), 2] += ERROR * largest_force(want)
    rows = [*instantaneous(case.mechanism, want.terms, replace(right, **values), (want.qd, want.qdd))]
    assert named(rows) == [(quantity, "right", pytest.approx(ERROR))]
    assert {held.quantity: held.unit for held in rows}[quantity] == unit


def test_loads_are_no_dampers(case: Case, want: ExpectedTerms, right: Matrices) -> None:
    """Missing springs and loads, at rest and in motion, are named as such."""
    passive = np.array(right.passive)
    passive[[MOVING, REST], 0] -= ERROR * largest_force(want)
    rows = [*instantaneous(case.mechanism, want.terms, replace(right, passive=passive), (want.qd, want.qdd))]
    assert named(rows) == [("weights, springs and loads", "left", pytest.approx(ERROR))]


@pytest.mark.parametrize("term", ["coriolis", "gravity", "dissipation", "load", "inertial"])
def test_forces_are_seen_beside_the_largest_of_them(
    term: str, case: Case, want: ExpectedTerms, right: Matrices
) -> None:
    qdd = want.qdd * (1e6 if term == "inertial" else 1)
    terms = want.terms if term == "inertial" else replace(want.terms, **{term: 1e6 * getattr(want.terms, term)})
    largest = largest_force(replace(want, terms=terms, qdd=qdd))
    assert largest > 1e3 * largest_force(want)
    scales = {
        held.quantity: held.scale.item()
        for held in instantaneous(case.mechanism, terms, right, (want.qd, qdd))
        if held.quantity in SPOILT
    }
    assert scales == dict.fromkeys(SPOILT, pytest.approx(largest))


def test_a_seeded_error_of_the_mass_matrix_is_named(case: Case, want: ExpectedTerms, right: Matrices) -> None:
    M = np.array(right.M)
    M[SAMPLE, 2, 1] += ERROR * np.sqrt(M[SAMPLE, 2, 2] * M[SAMPLE, 1, 1])
    rows = [*instantaneous(case.mechanism, want.terms, replace(right, M=M), (want.qd, want.qdd))]
    assert named(rows) == [("mass matrix", "right", pytest.approx(ERROR))]
    assert {held.quantity: held.unit for held in rows}["mass matrix"] == "kg, kg m or kg m²"


def test_inertia_of_what_has_none_is_seen_beside_the_largest(case: Case, want: ExpectedTerms, right: Matrices) -> None:
    massless = np.array(want.terms.M)
    massless[:, 3], massless[:, :, 3] = 0, 0
    M = np.concatenate([massless, massless])
    largest = np.sqrt(M.max(initial=0, where=np.eye(4, dtype=bool)))
    M[SAMPLE, 3, 3] += ERROR * largest**2
    terms = replace(want.terms, M=massless)
    rows = [*instantaneous(case.mechanism, terms, replace(right, M=M), (want.qd, want.qdd))]
    assert named(rows) == [("mass matrix", "right2", pytest.approx(ERROR))]


def test_a_seeded_error_of_the_closure_is_named(case: Case, want: ExpectedTerms, right: Matrices) -> None:
    assert right.closure_bias is not None
    bias = np.array(right.closure_bias)
    scale = max(np.abs(bias).max(), (np.abs(want.terms.Phi) @ np.abs(want.qdd)[..., None]).max())
    bias[SAMPLE, 1] += ERROR * scale
    rows = [*instantaneous(case.mechanism, want.terms, replace(right, closure_bias=bias), (want.qd, want.qdd))]
    assert named(rows) == [("closure acceleration", "tip", pytest.approx(ERROR))]
    assert rows[-1].unit == "m/s² or rad/s²"
    bias[SAMPLE, 1] = 1e3 * scale
    rows = [*instantaneous(case.mechanism, want.terms, replace(right, closure_bias=bias), (want.qd, want.qdd))]
    assert rows[-1].scale.item() == pytest.approx(1e3 * scale)


def test_rows_that_are_not_the_models_have_a_number(case: Case, want: ExpectedTerms, right: Matrices) -> None:
    """As for an engine that closes a loop by other joints."""
    J, bias = (np.concatenate([rows, rows], axis=1) for rows in (right.J, right.closure_bias))
    twice = replace(right, J=J, closure_bias=bias)
    *_, held = instantaneous(case.mechanism, want.terms, twice, (want.qd, want.qdd))
    assert held.quantity == "closure acceleration"
    assert held.elements == [f"row {k}" for k in range(6)]
    assert held.error.max() < 1e-13


def test_a_direction_that_is_lost_in_motion_is_named(case: Case, want: ExpectedTerms, right: Matrices) -> None:
    """The engine's rest position is free: the directions are those of the states."""
    J = np.array(right.J)
    J[SAMPLE, 0] = 0
    rows = [*instantaneous(case.mechanism, want.terms, replace(right, J=J), (want.qd, want.qdd))]
    assert "forbidden directions" in {quantity for quantity, _, _ in named(rows)}
    J = np.array(right.J)
    J[REST, 0] = 0
    rows = [*instantaneous(case.mechanism, want.terms, replace(right, J=J), (want.qd, want.qdd))]
    assert "forbidden directions" not in {quantity for quantity, _, _ in named(rows)}


@pytest.mark.parametrize("model", ["floating_rotors", "pendulum_tree"])
def test_a_tree_has_nothing_to_close(model: str, model_case: CaseMaker) -> None:
    from tests.conftest import MODELS

    case = model_case(MODELS / f"{model}.xml", amplitude=0.1)
    want = expected_terms(case, prescribe(case))
    terms = want.terms
    none = Matrices(
        M=np.concatenate([terms.M, terms.M]),
        bias=np.concatenate([terms.coriolis + terms.gravity, terms.gravity]),
        passive=np.concatenate([terms.load - terms.dissipation, terms.load]),
        J=np.zeros((6, 0, terms.M.shape[1])),
        closure_bias=np.zeros((6, 0)),
    )
    rows = [*instantaneous(case.mechanism, terms, none, (want.qd, want.qdd))]
    assert [held.quantity for held in rows] == ["mass matrix", *SPOILT]
    assert rows[0].elements == names_of_dofs(case.mechanism)
    assert named(rows) == []


def names_of_dofs(mechanism: Mechanism) -> tuple[str, ...]:
    counts: dict[Any, int] = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}
    return tuple(joint.name for joint in mechanism.joints for _ in range(counts[joint.kind]))
