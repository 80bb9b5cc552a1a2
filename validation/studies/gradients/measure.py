"""Derivatives of an engine against differences of its own values, and against the exact derivatives."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from loopcheck import engines
from loopcheck.analytic.batch.gradient import CONSTANTS
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.engines.contract import Gradients
from loopcheck.engines.declarations import ACCELERATION, ACTING, Differentiated
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError, MechanismError, NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case
from loopcheck.validation.common.verdicts import NOT_SUPPORTED
from loopcheck.validation.studies.gradients.reference import Reference, Sample, sample_of, with_parameter

LIMIT = 1e-4
"""Largest error of a derivative, relative to its row [-]: finite differences of the engines reach 1e-5."""
STEP = 1.3e-6
"""Step of central differences [any unit]; no engine uses the same, or its differences would repeat ours."""
INERTIAL_STEP = 0.1
"""Step of differences along inertial parameters [kg, kg m or kg m²]."""
SMALL = 1e-3
"""Size of a row relative to its block, below which the block is the scale [-]."""
VANISHING = 1e-6
"""Size of a block relative to the values, below which the values are the scale [1/m, 1/rad, s, ...]."""
RESOLVED = 3
"""Times of the noise of differences that an error must exceed to count [-]."""
PARAMETERS = ("mass", *(f"h{i}" for i in "xyz"), *("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"))
"""Names of the inertial parameters of a body."""
NONE = "the engine returns no derivatives of dynamics with loops"

Functions: TypeAlias = Callable[[Mechanism], AbstractContextManager[Sequence[Differentiated]]]
Rows: TypeAlias = tuple[list[dict[str, Any]], list[dict[str, Any]]]
"""Rows of the table of findings, and of the table of entries."""


def measured(engine: str, case: Case) -> Rows:
    """Rows of the functions of an engine for a robot, or a row with the reason of a failure."""
    part: Gradients = engines.part(engine, "gradients")
    try:
        return judged(engine, case.robot.name, sample_of(case), part.functions)
    except (NotRepresentableError, MechanismError) as error:
        return [_failed(engine, case, NOT_SUPPORTED, str(error))], []
    except HarnessError as error:
        return [_failed(engine, case, "not run", str(error))], []


def without_part(engine: str, case: Case) -> dict[str, Any]:
    """The row of an engine without `gradients.py`."""
    reason = engines.engine(engine).untried.get("gradients")
    return _failed(engine, case, "not run", reason) if reason else _failed(engine, case, NOT_SUPPORTED, NONE)


def not_measured(engine: str, case: Case, reason: str) -> Rows:
    """Rows of a lost task."""
    return [_failed(engine, case, "not run", reason)], []


def _failed(engine: str, case: Case, verdict: str, reason: str) -> dict[str, Any]:
    """The row of an engine without figures for a robot."""
    return {"robot": case.robot.name, "engine": engine, "verdict": verdict, "note": reason}


def judged(engine: str, robot: str, sample: Sample, functions: Functions) -> Rows:
    """Findings and entries of all functions of an engine at a state.

    Raises:
        HarnessError: If the engine fails or cannot represent the robot.
    """
    findings, entries = [], []
    with functions(sample.mechanism) as every:
        found = [(function, *_found(function, sample)) for function in every]
    for function, derivatives, (fine, coarse), peak in found:
        about = {"robot": robot, "engine": engine, "function": function.name, "quantity": function.quantity}
        if "parameters" in derivatives:
            fine["parameters"] = coarse["parameters"] = _parameter_differences(function, sample, functions)
        try:
            reference = sample.forward if function.quantity == ACCELERATION else sample.inverse
        except MechanismError as error:
            findings.append({**about, "verdict": "not comparable", "note": str(error)})
            continue
        for row, of_row in _rows(function, reference, derivatives, (fine, coarse), peak):
            findings.append({**about, **row})
            entries += [{**about, **entry} for entry in of_row]
    return findings, entries


def _found(function: Differentiated, sample: Sample) -> tuple[Mapping[str, Array], list[dict[str, Array]], float]:
    """Derivatives, differences of the values at a step and at its double, and the largest value."""
    differences, at = [_differences(function, sample, scale * STEP) for scale in (1, 2)], _inputs(function, sample)
    return function.derivatives(*at), differences, float(np.abs(function.value(*at)).max())


def _inputs(function: Differentiated, sample: Sample) -> tuple[Array, Array, Array]:
    return sample.q, sample.qd, sample.effort if function.quantity == ACCELERATION else sample.qdd


def _differences(function: Differentiated, sample: Sample, step: float) -> dict[str, Array]:
    q, qd, third = _inputs(function, sample)

    def slopes(value: Callable[[Array], Array], size: int) -> Array:
        return np.array([(value(step * one) - value(-step * one)) / (2 * step) for one in np.eye(size)]).T

    def displaced(x: Array) -> Array:
        return function.value(retract(sample.mechanism, q[None], x[None])[0], qd, third)

    return {
        "q": slopes(displaced, len(qd)),
        "qd": slopes(lambda x: function.value(q, qd + x, third), len(qd)),
        ACTING[function.quantity]: slopes(lambda x: function.value(q, qd, third + x), len(third)),
    }


def _parameter_differences(function: Differentiated, sample: Sample, functions: Functions) -> Array:
    """Changes of the values per inertial parameter: they are linear, so the step and the rest of the bodies are free.

    All bodies are 1 kg and 1 kg m² heavier, so that every change leaves a possible inertia.
    """
    bodies = (replace(body, mass=body.mass + 1, inertia=body.inertia + np.eye(3)) for body in sample.mechanism.bodies)
    mechanism = replace(sample.mechanism, bodies=tuple(bodies))

    def value(changed: Mechanism) -> Array:
        with functions(changed) as every:
            (same,) = [other for other in every if other.name == function.name]
            return same.value(*_inputs(function, sample))

    base = value(mechanism)
    places = [(b, k) for b in range(len(mechanism.bodies)) for k in range(CONSTANTS)]
    return np.array(
        [(value(with_parameter(mechanism, *place, INERTIAL_STEP)) - base) / INERTIAL_STEP for place in places]
    ).T


def _rows(
    function: Differentiated,
    reference: Reference,
    derivatives: Mapping[str, Array],
    differences: tuple[Mapping[str, Array], Mapping[str, Array]],
    peak: float,
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """A finding for each input and row of the reference, with its entries."""
    fine, coarse = differences
    found, own, beside = (reference.projected(blocks) for blocks in (derivatives, fine, coarse))
    mechanism = reference.sample.mechanism
    for block in found:
        wrong, noise = _errors(derivatives[block], fine[block], coarse[block], peak)
        columns = _columns(mechanism, block)
        fault = "" if wrong <= LIMIT + RESOLVED * noise else fault_of(derivatives[block], fine[block], columns)
        exact = reference.exact[block]
        scale = _scale(exact, peak)
        for k, name in enumerate(_names(mechanism, function.quantity, reference.independent)):
            error, shift, floor = (
                float(np.abs(x[k] - y[k]).max() / scale[k])
                for x, y in ((found[block], exact), (own[block], exact), (own[block], beside[block]))
            )
            row = {
                "input": block,
                "row": name,
                "size": float(np.abs(exact[k]).max()),
                "own_error": wrong,
                "error": error,
                "shift": shift,
                "floor": max(floor, noise),
            }
            yield {**row, **_verdict(function, row, fault)}, _entries(row, k, exact, found, own, reference)


def _verdict(function: Differentiated, row: Mapping[str, Any], fault: str) -> dict[str, str]:
    """An engine is wrong if its derivative is not that of its own values; another quantity is no fault."""
    if not np.isfinite([row["own_error"], row["error"], row["floor"]]).all():
        return {"verdict": "disagree", "note": "numbers are not finite"}
    if fault:
        return {"verdict": "disagree", "note": fault}
    if row["error"] <= LIMIT:
        return {"verdict": "agree", "note": ""}
    if row["shift"] > LIMIT + RESOLVED * row["floor"]:
        return {"verdict": "informational", "note": f"another quantity: {function.meaning or 'not explained'}"}
    if RESOLVED * row["floor"] > LIMIT:
        return {"verdict": "not comparable", "note": "differences of the engine's values do not resolve the error"}
    return {
        "verdict": "informational",
        "note": "error of the engine's derivative, grows along motions with closed loops",
    }


def _entries(
    row: Mapping[str, Any],
    k: int,
    exact: Array,
    found: Mapping[str, Array],
    own: Mapping[str, Array],
    reference: Reference,
) -> list[dict[str, Any]]:
    block = row["input"]
    if block == "parameters":  # too many for a picture
        return []
    mechanism = reference.sample.mechanism
    columns = [_columns(mechanism, "q")[dof] for dof in reference.independent]
    if block == "effort":
        columns = _columns(mechanism, block)
    return [
        {
            "input": block,
            "row": row["row"],
            "column": column,
            "exact": float(exact[k, j]),
            "engine_value": float(found[block][k, j]),
            "differences": float(own[block][k, j]),
        }
        for j, column in enumerate(columns)
    ]


def _names(mechanism: Mechanism, quantity: str, independent: Sequence[int]) -> list[str]:
    if quantity == ACCELERATION:
        return [_columns(mechanism, "q")[dof] for dof in independent]
    return [actuator.name for actuator in mechanism.actuators]


def _columns(mechanism: Mechanism, block: str) -> list[str]:
    if block == "effort":
        return [actuator.name for actuator in mechanism.actuators]
    if block == "parameters":
        return [f"{name} of {body.name}" for body in mechanism.bodies for name in PARAMETERS]
    names = []
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        count = dofs.stop - dofs.start
        names += [joint.name if count == 1 else f"{joint.name} {i + 1}" for i in range(count)]
    return names


def _scale(block: Array, peak: float) -> Array:
    """Largest entry of each row, at least a part of that of the block and of the values, shape (rows,)."""
    rows = np.abs(block).max(axis=1, initial=0.0)
    return np.maximum(rows, max(SMALL * float(rows.max(initial=0.0)), VANISHING * peak, np.finfo(float).tiny))


def _errors(found: Array, fine: Array, coarse: Array, peak: float) -> tuple[float, float]:
    """Largest error and noise of a block, relative to its rows [-]."""
    scale = _scale(fine, peak)[:, None]
    return float(np.abs((found - fine) / scale).max()), float(np.abs((fine - coarse) / scale).max())


def fault_of(found: Array, wanted: Array, columns: Sequence[str]) -> str:
    """Description of a wrong derivative: its columns, and its relation to the right one.

    Args:
        found: Derivative [any unit], shape (rows, columns).
        wanted: Differences of the values [any unit], shape (rows, columns).
        columns: Names of the columns.
    """
    if found.shape == wanted.shape[::-1] and _is_near(found, wanted.T, wanted):
        return "transposed"
    wrong = [k for k in range(len(columns)) if not _is_near(found[:, k], wanted[:, k], wanted)]
    part, right = found[:, wrong], wanted[:, wrong]
    factor = float((part * right).sum() / max((right * right).sum(), np.finfo(float).tiny))
    size = float(np.abs(part - right).max() / max(np.abs(wanted).max(), np.finfo(float).tiny))
    kind = f"off by {size:.2g} of the largest entry"
    if _is_near(part, factor * right, wanted):
        kinds = {0.0: "missing", -1.0: "sign reversed"}
        kind = kinds.get(round(factor, 3) + 0.0, f"{factor:.3g} times the right value")
    where = "all columns" if len(wrong) == len(columns) else ", ".join(columns[k] for k in wrong)
    return f"not the derivative of the engine's own values: {where}: {kind}"


def _is_near(x: Array, y: Array, scale: Array) -> bool:
    return bool(np.abs(x - y).max(initial=0.0) <= 10 * LIMIT * max(float(np.abs(scale).max()), np.finfo(float).tiny))
