"""Findings on each model of the atlas, from its reading to its row in the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.robot import Case
from loopcheck.validation.common.verdicts import shown_errors
from loopcheck.validation.execution.folders import user_folder
from loopcheck.validation.execution.workers import WorkerFailure
from loopcheck.validation.public_models.fetching import FOLDER
from loopcheck.validation.public_models.manifest import Entry
from loopcheck.validation.studies.atlas.reading import ReadModel
from loopcheck.validation.studies.atlas.tuning import Cost

AS_IS = "mujoco/as_is"
COPY = "copy"
VERDICTS = ("disagree", "agree", "not run", "not comparable", COPY)


@dataclass(slots=True, kw_only=True)
class Page:
    """Findings on a model so far."""

    entry: Entry
    path: Path | None = None
    """Path of its MJCF in the cache; None if it could not be fetched."""
    reading: ReadModel | None = None
    """Its description; the case is stored only during its computation."""
    case: Case | None = None
    start: str = ""
    """Initial pose of the motion."""
    verdict: str = ""
    copies: str = ""
    """Name of the model with the same mechanism."""
    notes: list[str] = field(default_factory=list)
    counts: Mapping[str, Any] = field(default_factory=dict)
    """Properties of the closed mechanism, by name."""
    error: float = nan
    """Largest error of the unmodified file [-]."""
    cost: Cost = field(default_factory=Cost)

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.entry.model.id

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that the model is read from."""
        if self.path is None:
            return ()
        root = self.path.parents[self.entry.model.path.count("/")]
        return tuple(dict.fromkeys((self.path, *(root / path for path in self.entry.model.every_file))))

    def stop(self, verdict: str, reason: str = "") -> None:
        """Go no further with it."""
        self.verdict, self.case = verdict, None
        self.notes += [reason] if reason else []

    def take(self, reading: ReadModel | HarnessError | WorkerFailure) -> None:
        """Store the reading of the model, or the reason for its absence."""
        if isinstance(reading, WorkerFailure):
            self.stop("not run", reading.reason)
        elif isinstance(reading, HarnessError):
            self.stop("not comparable", str(reading))
        else:
            self.reading, self.case = replace(reading, case=None), reading.case
            if reading.case is None:
                self.stop("not comparable", reading.reason)
            else:
                self.start = reading.case.mode

    def judge(self, summary: pd.DataFrame, record: Mapping[str, Any]) -> None:
        """Store the findings of a check.

        Args:
            summary: The table of verdicts.
            record: The record of the check.
        """
        rows = summary[summary["robot"] == self.name]
        kinds = set(rows["verdict"])
        self.verdict = next((verdict for verdict in VERDICTS if verdict in kinds), "not comparable")
        self.error = float(shown_errors(rows[(rows["source"] == AS_IS) & (rows["scale"] > 0)]).max())
        self.counts = record["robots"][self.name]["mechanism"]
        if self.verdict != "agree":
            reasons = rows.loc[rows["verdict"] == self.verdict, "note"].dropna().unique()
            self.notes += [str(reason) for reason in reasons[:1]]

    def row(self) -> Mapping[str, Any]:
        """Its row in the table of models."""
        repository, model, reading = self.entry.repository, self.entry.model, self.reading
        known = {} if reading is None else {"bodies": reading.bodies, "actuators": reading.actuators}
        loops = None if reading is None else reading.loops
        return {
            "id": model.id,
            "repository": repository.repository,
            "commit": repository.commit,
            **{name: getattr(model, name) for name in ("path", "licence", "mesh_licence")},
            "sha256": self.entry.sha256,
            "patches": ", ".join(map(str, model.patches)),
            "patched_sha256": model.patched_sha256,
            "class": "" if reading is None else reading.kind,
            "loops": nan if loops is None else float(loops),
            "dof": float(self.counts.get("dof", nan)),
            **{name: float(known.get(name, nan)) for name in ("actuators", "bodies")},
            "start": self.start or model.start,
            "verdict": self.verdict,
            "as_is_error": self.error,
            "tuned_cost": self.cost.ratio,
            "tuned_accuracy": self.cost.accuracy,
            "copies_of": self.copies,
            "note": without_cache("; ".join(self.notes)),
        }


def let_one_stand_for_copies(pages: Sequence[Page]) -> None:
    """Store in each copy the name of the original.

    The original is, in this order: from a repository that has not copied it, with a known licence, first in the
    manifest.

    Args:
        pages: Pages of all models, in the order of the manifest.
    """
    twins: dict[str, list[Page]] = {}
    for page in pages:
        if page.reading is not None:
            twins.setdefault(page.reading.fingerprint, []).append(page)
    for alike in twins.values():
        stands = min(alike, key=lambda page: (bool(page.entry.repository.copied_from), not page.entry.model.licence))
        for page in alike:
            if page is not stands:
                page.copies = stands.name
                page.notes.clear()  # they are said of the one that stands for it
                page.stop(COPY)


def without_cache(note: str) -> str:
    """A note with the place of a file in its repository, or in the cache, instead of its path on this machine."""
    folder = user_folder(FOLDER)
    return note.replace(f"{folder}/", "").replace(f"{folder.parent}/", "")
