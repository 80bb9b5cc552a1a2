"""Age of stored figures: whether the code behind them has changed since they were computed."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from loopcheck.validation.execution.code_state import code_digest
from loopcheck.validation.execution.files import RECORD
from loopcheck.validation.execution.folders import ROOT
from loopcheck.validation.studies.evidence.study import ATLAS, BEHIND_ROWS, CATALOGUE

LIMIT = timedelta(days=30)
"""Longest time that figures of an earlier code may stay."""


class Age(NamedTuple):
    """State of stored figures."""

    text: str
    is_stale: bool
    """Whether the code has changed since."""
    is_too_old: bool
    """Whether they are stale for longer than `LIMIT`."""


def age_of(name: str, record: Mapping[str, Any], code: str, now: datetime) -> Age:
    """Age of a collection of the documents.

    Args:
        name: Name of the collection.
        code: Digest of the present code.
    """
    begin = datetime.fromisoformat(record["start"])
    origin = f"{name}: computed {begin:%Y-%m-%d} from {record.get('commit', 'an unknown commit')}"
    if record.get("code") == code:
        return Age(f"{origin}; the code behind it is the same", False, False)
    return Age(f"{origin}; the code behind it has changed: loopcheck study evidence {name}", True, now - begin > LIMIT)


def ages() -> list[Age]:
    """Ages of the collections in the documents of this checkout."""
    code, now = code_digest(BEHIND_ROWS), datetime.now(UTC)
    records = {name: Path(ROOT, "docs", name, RECORD) for name in (CATALOGUE, ATLAS)}
    return [age_of(name, json.loads(path.read_text("utf-8")), code, now) for name, path in records.items()]
