"""Comparison of the simulated robot with the model, before any comparison of efforts, in three tiers.

Static: masses, joints, loads and constraints in one pose. Instantaneous: the terms of the equations of motion at some
states of the motion, and the efforts of routes that take the state as input. Trajectory: the efforts of routes that
simulate. If the static tier or the acceleration of the loops fails, the engine simulates another robot, and no result
of it is compared.

The rows of the files of the robot have two parts. The compiled model, which MuJoCo's compiler reads as for the
reference, is audited in the same way. Further readers, which share no code with that of the reference, read the files
again: plain XML, and the parsers of engines. If one of them disagrees, the model is in doubt, and so are the reference
and every engine built from it: no row of that case agrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from loopcheck import engines
from loopcheck.analytic.dynamics.lagrange import LagrangeModel, lagrange_model
from loopcheck.analytic.kinematics.closing import allowed
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import EngineError, HarnessError, NotRepresentableError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.second_reading.differences import ROUND_OFF, Comparison, compare_inertia, compare_with_file
from loopcheck.robots.size import closure_units, resolved_part
from loopcheck.validation.check.audit import tiers
from loopcheck.validation.check.audit.model_inventory import expected_inventory
from loopcheck.validation.check.audit.tiers import QuantityCheck
from loopcheck.validation.check.audit.tree_terms import TreeTerms, tree_of
from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import audits, registered
from loopcheck.validation.common.verdicts import CASE, FILE, READING, SEVERITY, Key, within
from loopcheck.validation.execution.errors import internal_error

if TYPE_CHECKING:
    import pandas as pd

TIERS = ("static", "instantaneous", "trajectory")
EFFORT = "effort, "
"""Prefix of the quantity of an effort, before the route."""
POSES = (0.43, 0.17, 0.79)
"""States along the motion, away from the rest states of a periodic motion; the static tier uses the first [-]."""
ALL = "all"
"""Quantity of an engine without an audit."""
TERMS = "terms of the equations"
"""Quantity of an engine that does not report the terms of its equations."""

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTerms:
    """Reference of the audits of all engines in a case."""

    q: Array
    """Joint positions at the audited states [m or rad], shape (nt, nq)."""
    qd: Array
    """Joint velocities at the audited states [m/s or rad/s], shape (nt, nv)."""
    qdd: Array
    """Joint accelerations at the audited states [m/s² or rad/s²], shape (nt, nv)."""
    inventory: Inventory
    """Inventory of the model in the first pose, without lengths of tendons, which no engine has as coordinates."""
    terms: LagrangeModel
    """Terms of the model in all states, without them."""


def expected_terms(case: Case, motion: Motion) -> ExpectedTerms:
    """Reference of the audits of all engines in a case: the model and its terms at some states of the motion."""
    samples = [round(part * (len(motion.t) - 1)) for part in POSES]
    q, qd, qdd = motion.q[samples], motion.qd[samples], motion.qdd[samples]
    terms = lagrange_model(case.mechanism, q, qd)
    inventory = expected_inventory(case.mechanism, q[0], (terms.gravity - terms.load)[0])
    tree = TreeTerms(case.mechanism, q, qd)
    return ExpectedTerms(q=q, qd=qd, qdd=qdd, inventory=tree.inventory(inventory), terms=tree.terms(terms))


def audit(case: Case, want: ExpectedTerms, engine: str) -> list[Row]:
    """Rows of the audit table of a case and an engine: the static tier, and the instantaneous tier without efforts.

    Args:
        case: The audited case.
        want: Reference of the audit.
        engine: Name of the engine, or `FILE`; a failure of the engine is a row too.
    """
    return list(_audit(case, want, engine))


def blocking_reasons(rows: Iterable[Row]) -> Mapping[tuple[Key, str], str]:
    """Reasons against any comparison with an engine, by case and engine: a wrong robot, or an incomplete audit."""
    reasons: dict[tuple[Key, str], str] = {}
    for row in rows:
        blocks = row["tier"] == "static" or row["quantity"] in (ALL, tiers.CLOSURE_ACCELERATION)
        if row["verdict"] != "agree" and blocks:
            robot, variant, mode, configuration = (str(row[name]) for name in CASE)
            where = ((robot, variant, mode, configuration), str(row["engine"]))
            reasons.setdefault(where, _reason(row))
    return reasons


def doubts(rows: Iterable[Row]) -> Mapping[Key, str]:
    """Reasons against the reference, by case: the first disagreement of the robot's files with the model."""
    reasons: dict[Key, str] = {}
    for row in rows:
        if row["engine"] == FILE and row["verdict"] == "disagree":
            robot, variant, mode, configuration = (str(row[name]) for name in CASE)
            if np.isnan(row["wanted"]) or np.isnan(row["found"]):
                reasons.setdefault(
                    (robot, variant, mode, configuration), f"the model differs from its file: {row['note']}"
                )
                continue
            unit = "" if row["unit"] == "-" else f" {row['unit']}"
            values = f"{row['wanted']:.17g} in the model, {row['found']:.17g}{unit} in the file"
            reason = f"the model differs from its file: {row['quantity']} of {row['element']} is {values}"
            reasons.setdefault((robot, variant, mode, configuration), reason)
    return reasons


def effort_rows(summary: pd.DataFrame) -> Iterator[Row]:
    """Rows of the audit table for the efforts of the engines' routes, taken from the table of verdicts."""
    for names, rows in summary.groupby([*CASE, "source"], sort=False):
        source = str(names[-1])
        if source in sources.ANALYTIC or sources.is_log(source):
            continue
        engine, route = source.split("/")
        errors = rows["relative_error"]
        worst = rows.iloc[int(np.nan_to_num(errors).argmax())]
        limit = registered().get(source), registered().get(f"{engine}/forward")
        tolerance = next((t.relative_error for t in limit if t and t.relative_error), None)
        yield {
            **dict(zip(CASE, map(str, names), strict=False)),
            "engine": engine,
            "tier": "trajectory" if sources.simulates(source) else "instantaneous",
            "quantity": f"{EFFORT}{route}",
            "element": worst["actuator"],
            "unit": worst["unit"],
            "wanted": np.nan,
            "found": np.nan,
            "error": float(errors.max(skipna=False)),
            "tolerance": tolerance,
            "verdict": min(rows["verdict"], key=SEVERITY.index),
            "note": "; ".join(dict.fromkeys(str(note) for note in rows["note"].dropna() if note)),
        }


def _audit(case: Case, want: ExpectedTerms, engine: str) -> Iterator[Row]:
    """Rows of one engine; rows before a failure of the engine stay."""
    tier, tree, nv = "static", tree_of(case.mechanism), case.mechanism.spanning_tree[1]
    try:
        q = want.q[0]
        inventory = engines.read_file(case, q) if engine == FILE else engines.audit(engine, case.mechanism, q)
        P = _resolved_part(tree, inventory.J)
        inventory = inventory if P is None else replace(inventory, J=P @ inventory.J)
        yield from (
            _row(case, engine, tier, check) for check in tiers.static(want.inventory, inventory, want.terms.M[0])
        )
        if engine == FILE:
            yield from _second_reading(case)
            return
        yield from _reading_of_engine(case, engine)
        if inventory.dofs != want.inventory.dofs:
            return
        tier = "instantaneous"
        if not engines.engine(engine).tells_terms:
            note = f"{engine} does not report the terms of its equations; the audit covers its efforts"
            yield {**failed_row(case.key, engine, "not comparable", note, tier=tier), "quantity": TERMS}
            return
        positions, velocities = np.concatenate([want.q, want.q]), np.concatenate([want.qd, 0 * want.qd])
        matrices = _resolved(tree, engines.matrices(engine, case.mechanism, positions, velocities))
        checks = tiers.instantaneous(tree, want.terms, matrices, (want.qd[:, :nv], want.qdd[:, :nv]))
        yield from (_row(case, engine, tier, check) for check in checks)
    except NotRepresentableError as error:
        yield failed_row(case.key, engine, "not comparable", str(error), tier=tier)
    except HarnessError as error:
        yield failed_row(case.key, engine, "not run", str(error), tier=tier)
    except Exception as error:  # a bug of ours or of an engine must not take the other rows along
        yield failed_row(case.key, engine, "not run", internal_error(error), tier=tier)


def _resolved_part(mechanism: Mechanism, J: Array) -> Array | None:
    """Projector on the equations of an engine that the file resolves; None without one row per equation."""
    same = J.shape[-2] == len(closure_units(mechanism).units)
    return resolved_part(mechanism, J) if same and mechanism.closing.accuracy else None


def _resolved(mechanism: Mechanism, matrices: Matrices) -> Matrices:
    """Matrices of an engine, the loops as far as the file resolves them."""
    P = _resolved_part(mechanism, matrices.J)
    if P is None:
        return matrices
    bias, of_solver = (P @ matrices.closure_bias[..., None])[..., 0], matrices.solver_bias
    if of_solver is not None:
        of_solver = (P @ of_solver[..., None])[..., 0]
    return replace(matrices, J=P @ matrices.J, closure_bias=bias, solver_bias=of_solver)


def _second_reading(case: Case) -> Iterator[Row]:
    """Rows of the reading of the file by plain XML; overrides of a variant are not in the file."""
    model = case.mechanism.model
    mechanism = read_mechanism(replace(model, overrides={})) if model.overrides else case.mechanism
    comparison = compare_with_file(mechanism, has_own_gravity=False)
    yield from _rows_of_reading(case.key, "plain XML", comparison)


def _reading_of_engine(case: Case, engine: str) -> Iterator[Row]:
    """Rows of the inertias of the file by the own parser of an engine, if it has a parser of the format."""
    model = case.mechanism.model
    if not model.overrides and engines.provides(engine, "file_inertia"):
        try:
            links = engines.file_inertia(engine, model.path)
        except EngineError:
            return  # not confirmed: parsers do not read every file
        comparison = compare_inertia(case.mechanism, links)
        yield from _rows_of_reading(case.key, f"the parser of {engine}", comparison)


def _rows_of_reading(key: Key, reader: str, comparison: Comparison) -> Iterator[Row]:
    """A row for each difference, or a row for all values; no row if nothing was compared."""
    common = {**dict(zip(CASE, key, strict=True)), "engine": FILE, "tier": "static", "tolerance": ROUND_OFF}
    for difference in comparison.differences:
        first, second = difference.values
        yield {
            **common,
            "quantity": difference.quantity,
            "element": difference.element,
            "unit": difference.unit or "-",
            "wanted": first,
            "found": second,
            "error": abs(first - second) / max(abs(first), abs(second)) if first != second else np.nan,
            "verdict": "disagree",
            "note": f"{READING} by {reader}: {difference}",
        }
    unread = f", not the inertia of {comparison.parts_unread} of the moving parts" if comparison.parts_unread else ""
    if comparison.compared and not comparison.differences:
        yield {
            **common,
            "quantity": READING,
            "element": "robot",
            "unit": "-",
            **dict.fromkeys(("wanted", "found"), np.nan),
            "error": 0.0,
            "verdict": "agree",
            "note": f"{reader}: {comparison.compared} values{unread}",
        }


def _row(case: Case, engine: str, tier: str, check: QuantityCheck) -> Row:
    """The worst entry of a quantity."""
    tolerance = _tolerance(engine, tier)
    tolerance = allowed(tolerance, case.mechanism) if check.quantity in tiers.OF_LOOPS else tolerance
    error = check.error
    element, entry = divmod(int((error if error.any() else np.abs(check.expected)).argmax()), error.shape[1])
    return {
        **dict(zip(CASE, case.key, strict=True)),
        "engine": engine,
        "tier": tier,
        "quantity": check.quantity,
        "element": check.elements[element],
        "unit": check.unit,
        "wanted": check.expected[element, entry],
        "found": check.actual[element, entry],
        "error": error[element, entry],
        "tolerance": tolerance,
        "verdict": "agree" if within(error[element, entry], tolerance) else "disagree",
        "note": check.note,
    }


def _tolerance(engine: str, tier: str) -> float:
    """Largest error of a quantity by the floating-point precision of the engine [-]."""
    single = engine != FILE and engines.engine(engine).single_precision
    return audits()[f"{tier}_single" if single else tier].relative_error or 0.0


def failed_row(key: Key, engine: str, verdict: str, note: str, *, tier: str = "static") -> Row:
    """The row of an engine that could not be audited."""
    return {
        **dict(zip(CASE, key, strict=True)),
        "engine": engine,
        "tier": tier,
        "quantity": ALL,
        "element": "robot",
        "unit": "-",
        **dict.fromkeys(("wanted", "found", "error", "tolerance"), np.nan),
        "verdict": verdict,
        "note": note,
    }


def _reason(row: Row) -> str:
    if row["verdict"] != "disagree":
        return f"not audited: {row['note']}"
    values = f"must be {row['wanted']:.17g}, got {row['found']:.17g} {row['unit']}".removesuffix(" -")
    note = f" ({row['note']})" if row["note"] else ""
    return f"{row['engine']} simulates a different robot: {row['quantity']} of {row['element']} {values}{note}"
