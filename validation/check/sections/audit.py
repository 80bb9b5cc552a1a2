"""Section of the report: the audit of each engine, and its first difference from the model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from loopcheck.validation.check.audit.audit import EFFORT, TIERS
from loopcheck.validation.check.views import case_name
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.verdicts import CASE, FILE, READING, SEVERITY
from loopcheck.validation.report.blocks import NOTHING, Block, Cell, Section, Table, folded_if_long, table

if TYPE_CHECKING:
    import pandas as pd

Row: TypeAlias = Mapping[Any, Any]
"""A row of the table of audits, by its columns."""
NOWHERE = "no difference"
UNSUPPORTED = ": not supported: "
"""Part of the note on an engine without support for the model."""


def audit_section(results: Results) -> Section:
    """The worst verdicts of each engine in each tier, and its first difference from the model."""
    audit = results.audit[~results.audit["note"].fillna("").str.contains(UNSUPPORTED, regex=False)]
    by_engine: dict[tuple[str, ...], list[Row]] = {}
    for row in audit.to_dict("records"):
        by_engine.setdefault(tuple(str(row[name]) for name in (*CASE, "engine")), []).append(row)
    rows = [
        [
            Cell(case_name((robot, variant, mode, configuration), results)),
            Cell(engine),
            *(_worst(of_engine, tier) for tier in TIERS[:2]),
            Cell(first_divergence(of_engine)),
        ]
        for (robot, variant, mode, configuration, engine), of_engine in by_engine.items()
    ]
    folds = [
        Section(title=f"Audit of {robot}", anchor=f"audit-{k}", folded=True, blocks=[_quantities(of_robot)])
        for k, (robot, of_robot) in enumerate(audit.groupby("robot", sort=False), start=1)
    ]
    text = (
        "The audit compares the model with the quantities that each engine reports. Static tier: masses, joints, "
        "loads and constraints in one pose. Instantaneous tier: mass matrix, velocity terms, weights, dampers and "
        "constraints in three states of the motion. Errors are relative to the size of the quantity, and errors of "
        "efforts to the effort scale. An engine that fails the static tier simulates a different robot, "
        f"and its efforts are not compared. The row {FILE} compares the compiled model, which the reference uses, with "
        f"further readers that share no code with its reader ('{READING}'). If such a row differs, the model is "
        "wrong, and no source of the case agrees. Engines without support for the model have no audit."
    )
    columns = ["case", "engine", *TIERS[:2], "first difference"]
    shown = folded_if_long("Audit by case", "audit-cases", Table(columns, rows))
    blocks: Sequence[Block] = [text, *shown, *folds] if rows else ["No engine was audited."]
    return Section(title="Audit", anchor="audit", blocks=blocks)


def first_divergence(audit: Iterable[Row]) -> str:
    """The first difference of an engine and of each of its routes from the model.

    Args:
        audit: Rows of the audit table, of one engine in one case.
    """
    beyond = [row for row in audit if row["verdict"] != "agree" and not row["error"] <= row["tolerance"]]
    of_engine = [
        f"{row['tier']}: {row['quantity']} of {row['element']}"
        for row in beyond
        if not row["quantity"].startswith(EFFORT)
    ]
    of_routes = [
        f"{row['quantity'].removeprefix(EFFORT)}: {row['tier']}, {_off(row['error'], row['verdict'], row['element'])}"
        for row in beyond
        if row["quantity"].startswith(EFFORT)
    ]
    return "; ".join([*of_engine[:1], *of_routes]) or NOWHERE


def _off(error: object, verdict: object, element: object) -> str:
    number = float(str(error))
    return str(verdict) if math.isnan(number) else f"effort of {element} off by {number:.1e} of its scale"


def _worst(rows: Sequence[Row], tier: str) -> Cell:
    """The worst verdict of the engine in a tier with the largest error, without efforts."""
    of_tier = [row for row in rows if row["tier"] == tier and not row["quantity"].startswith(EFFORT)]
    if not of_tier:
        return Cell(NOTHING)
    verdict = min((row["verdict"] for row in of_tier), key=SEVERITY.index)
    measured = [row for row in of_tier if not math.isnan(row["error"])]
    largest = max(measured, key=lambda row: row["error"], default=None)
    worst = "" if largest is None else f"\n{largest['error']:.1e} ({largest['quantity']})"
    return Cell(f"{verdict}{worst}", verdict)


def _quantities(rows: pd.DataFrame) -> Table:
    """The worst case of each quantity of each engine."""
    group = rows.groupby(["engine", "tier", "quantity"], sort=False).ngroup()
    ordered = rows.assign(group=group, severity=rows["verdict"].map(SEVERITY.index)).sort_values(
        ["group", "severity", "error"], ascending=[True, True, False], kind="stable"
    )
    worst = ordered.groupby("group").head(1)
    worst = worst.assign(case=worst[CASE[1:]].agg(" · ".join, axis=1))
    headers = {
        **{name: name for name in ("engine", "tier", "quantity", "element", "unit")},
        **{name: name for name in ("wanted", "found")},
        "error": "error [-]",
        "tolerance": "tolerance [-]",
        "verdict": "verdict",
        "case": "worst case",
        "note": "note",
    }
    return table(worst.assign(note=worst["note"].fillna(""))[list(headers)].rename(columns=headers))
