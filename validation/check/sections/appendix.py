"""Last sections of the report: known differences, sources with their settings and tolerances, and provenance."""

from collections.abc import Mapping, Sequence
from typing import Any

from loopcheck.validation.check.closing import unsupported_in_words
from loopcheck.validation.check.views import section_if, source_names
from loopcheck.validation.common.results import Results
from loopcheck.validation.report.blocks import Block, Cell, Section, Table, digits, facts, folded_if_long, plain, table

UNBOUNDED = 1e100
"""A size above this stands for no upper bound."""


_LIMITS = {
    "source": "source",
    "relative_error": "relative error [-]",
    "closure_drift": "closure drift [m or rad]",
    "tracking_error": "tracking error [m or rad]",
    "power_imbalance": "power imbalance [-]",
    "noise": "noise [-]",
    "margin": "margin [-]",
    "noise_from": "origin of the noise",
}


def sources(results: Results) -> Section:
    """Method, settings and tolerances of each source."""
    import pandas as pd

    descriptions, settings, tolerances = (results.run.get(key) or {} for key in ("sources", "settings", "tolerances"))
    names = list(dict.fromkeys([*source_names(results), *descriptions, *settings]))
    exercised = [[Cell(name), Cell(plain(descriptions.get(name)))] for name in names]
    options = [(name, key, value) for name in names for key, value in (settings.get(name) or {}).items()]
    limits = pd.DataFrame([{"source": name, **limit} for name, limit in (tolerances.get("routes") or {}).items()])
    limits = limits[sorted(limits.columns, key=[*_LIMITS, *limits.columns].index)].rename(columns=_LIMITS)
    return Section(
        title="Sources, settings and tolerances",
        anchor="sources",
        blocks=[
            Table(["source", "method"], exercised) if names else "No source.",
            *([f"Not supported: {absent}."] if (absent := unsupported_in_words(results)) else []),
            *section_if(
                options,
                "Settings",
                "settings",
                table(pd.DataFrame(options, columns=["source", "setting", "value"])),
                folded=True,
            ),
            *section_if(len(limits), "Tolerances", "tolerances", table(limits), folded=True),
        ],
    )


def explained(results: Results) -> Section:
    """Known differences of the engines on the robots of the run."""
    issues = results.run.get("known_issues") or []
    columns = ["engine", "difference", "size", "cause", "treatment", "reproduce"]
    text = (
        "The table lists differences between these engines and the equations of motion whose cause is known. A test "
        "reproduces and measures each difference. If a difference disappears, its test fails."
    )
    blocks: Sequence[Block] = (
        [text, *folded_if_long("Entries", "issues", Table(columns, list(map(_issue, issues))))]
        if issues
        else ["No known differences for these engines and robots."]
    )
    return Section(title="Known differences", anchor="explained", blocks=blocks)


def _issue(issue: Mapping[str, Any]) -> Sequence[Cell]:
    low, high = issue["size"]
    lower = "at least " if high > UNBOUNDED else ""
    size = lower + digits(low) + (f" to {digits(high)}" if low < high <= UNBOUNDED else "")
    shown = f", seen in {', '.join(issue['sources'])}" if issue["sources"] else ""
    return [
        Cell(f"{issue['engine']}\n{issue['versions']}"),
        Cell(f"{issue['title']}{shown}. Needs: {issue['feature']}."),
        Cell(f"{size} [{issue['unit']}]: {issue['quantity']}"),
        Cell(issue["cause"]),
        Cell(issue["remedy"]),
        Cell(issue["reproduce"] + (f"; upstream: {issue['link']}" if issue["link"] else "")),
    ]


def provenance(results: Results) -> Section:
    """Data to reproduce the numbers."""
    import pandas as pd

    run = results.run
    tolerances = run.get("tolerances") or {}
    files = [{"for": name, **about} for name, about in (run.get("models") or {}).items()]
    if tolerances.get("sha256"):
        files.append({"for": "tolerances", "file": tolerances.get("file"), "sha256": tolerances["sha256"]})
    command = " ".join(map(str, run.get("command") or ("loopcheck", "check")))
    return Section(
        title="How to reproduce this",
        anchor="reproduce",
        blocks=[
            [
                "Install the versions below.",
                f"Run: {command}",
                "Compare the SHA-256 of models and tolerances in the new run.json with the values below.",
                "To rebuild this report from the tables in DIR (17 digits), run: loopcheck report DIR",
            ],
            *([table(pd.DataFrame(files))] if files else []),
            facts({"loopcheck": run.get("loopcheck"), **(run.get("versions") or {}), "seeds": run.get("seeds")}),
        ],
    )
