"""Where engines first leave the reference, as the table of the audit tells, and the section of the report on it."""

import math
from collections.abc import Sequence

import pandas as pd

from validation.judge.audit import EFFORT, TIERS
from validation.judge.results import Results
from validation.judge.verdicts import CASE, FILE, SEVERITY
from validation.report.blocks import NOTHING, Block, Cell, Section, Table, folded_if_long, table

NOWHERE = "nowhere"


def audit_section(results: Results) -> Section:
    """What each engine simulates beside the model, and in which tier and quantity it first leaves the reference."""
    audit = results.audit
    rows = [
        [
            Cell(" · ".join(map(str, names[:-1]))),
            Cell(str(names[-1])),
            *(_worst(of_engine, tier) for tier in TIERS[:2]),
            Cell(first_divergence(of_engine)),
        ]
        for names, of_engine in audit.groupby([*CASE, "engine"], sort=False)
    ]
    folds = [
        Section(title=f"Audit of {robot}", anchor=f"audit-{k}", folded=True, blocks=[_quantities(of_robot)])
        for k, (robot, of_robot) in enumerate(audit.groupby("robot", sort=False), start=1)
    ]
    text = (
        "What each engine simulates, read back from the engine itself and compared with the model before anything is "
        "compared. Static: masses, joints, loads and constraints in one pose. Instantaneous: mass matrix, velocity "
        "terms, weights, dampers and constraints at three states of the motion. Errors are relative to the size of the "
        "quantity, those of efforts to their scales. An engine that fails the static tier simulates another robot: "
        f"nothing of it is compared. The {FILE} is no engine but the robot's files, read by MuJoCo's compiler past our "
        "own reading: where it says otherwise, the model is wrong, and nothing of the case agrees."
    )
    columns = ["case", "engine", *TIERS[:2], "first leaves the reference"]
    shown = folded_if_long("Audit by case", "audit-cases", Table(columns, rows))
    blocks: Sequence[Block] = [text, *shown, *folds] if rows else ["No engine was audited."]
    return Section(title="Audit", anchor="audit", blocks=blocks)


def first_divergence(audit: pd.DataFrame) -> str:
    """Where an engine and its routes first leave the reference.

    Args:
        audit: Rows of the table of the audit, of one engine in one case.
    """
    beyond = audit[(audit["verdict"] != "agree") & ~(audit["error"] <= audit["tolerance"])]
    is_effort = beyond["quantity"].str.startswith(EFFORT)
    of_engine = [f"{row.tier}: {row.quantity} of {row.element}" for row in beyond[~is_effort].head(1).itertuples()]
    of_routes = [
        f"{str(row.quantity).removeprefix(EFFORT)}: {row.tier}, {_off(row.error, row.verdict, row.element)}"
        for row in beyond[is_effort].itertuples()
    ]
    return "; ".join([*of_engine, *of_routes]) or NOWHERE


def _off(error: object, verdict: object, element: object) -> str:
    number = float(str(error))
    return str(verdict) if math.isnan(number) else f"effort of {element} off by {number:.1e} of its scale"


def _worst(rows: pd.DataFrame, tier: str) -> Cell:
    """The worst verdict of the engine in a tier, efforts aside, with the largest error."""
    of_tier = rows[(rows["tier"] == tier) & ~rows["quantity"].str.startswith(EFFORT)]
    if of_tier.empty:
        return Cell(NOTHING)
    verdict = min(of_tier["verdict"], key=SEVERITY.index)
    measured = of_tier[of_tier["error"].notna()]
    largest = measured.iloc[int(measured["error"].argmax())] if len(measured) else None
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
