"""The same for machines: an index of all robots as JSON, and a file for each."""

from collections.abc import Mapping, Sequence
from typing import Any

from docs.site.badges import badge_text
from docs.site.entries import Entry
from docs.site.texts import known, source_address

UNITS = {"as_is_error": "-", "tuned_cost": "-", "tuned_accuracy": "-", "error": "-", "tolerance": "-"}
"""Units of the numbers in these files."""


def index(entries: Sequence[Entry], version: str) -> Mapping[str, Any]:
    """Content of the index.

    Args:
        entries: All robots.
        version: Version of loopcheck.
    """
    robots = [{**_short(entry), "json": f"{entry.name}.json", "badge": f"{entry.name}.badge.svg"} for entry in entries]
    return {"loopcheck": version, "units": UNITS, "robots": robots}


def record(entry: Entry) -> Mapping[str, Any]:
    """Content of the file of a robot: its model, every source in every case, and the differences of engines."""
    comparisons = [
        {
            **dict(zip(("variant", "mode", "configuration"), key[1:], strict=True)),
            "source": source,
            **known(finding._asdict()),
        }
        for key, of_case in entry.verdicts.items()
        for source, finding in of_case.items()
    ]
    return {
        **_short(entry),
        "units": UNITS,
        "versions": dict(entry.versions),
        "computed": entry.start,
        "comparisons": comparisons,
        "losses": {engine: list(several) for engine, several in entry.losses.items()},
    }


def _short(entry: Entry) -> Mapping[str, Any]:
    return {
        **known(entry.model),
        "title": entry.title,
        "collection": entry.collection,
        "address": source_address(entry) or None,
        "says": badge_text(entry),
    }
