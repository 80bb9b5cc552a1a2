"""Pins: the terms of model files in a release, stored to be compared with other releases, also years later."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from loopcheck.robots.errors import MechanismError
from loopcheck.validation.execution.baseline import BaselineError, read_baseline, write_baseline
from loopcheck.validation.versions.comparison import Dump
from loopcheck.validation.versions.dump import unpacked
from loopcheck.validation.versions.runs import Model

COMMAND, OPTION = "versions", "--pin"
COLUMNS = {
    **dict.fromkeys(("file", "sha256", "engine", "release"), (str,)),
    **dict.fromkeys(("largest", "dump"), (dict,)),
}
"""Types of a row; `largest` is the largest value of each term, for readers of the file."""


class Pin(NamedTuple):
    """A model file in the release of a pin."""

    path: Path
    digest: str
    engine: str
    release: str
    dump: Dump


def write_pin(path: Path, engine: str, release: str, found: Sequence[tuple[Model, Dump]]) -> None:
    """Write the terms of model files in a release, with files relative to the folder of the pin.

    Raises:
        MechanismError: If the release did not run on a file.
        BaselineError: If the file cannot be written.
    """
    rows: list[dict[str, Any]] = []
    for model, dump in found:
        if reason := dump.get("refusal") or dump.get("failure"):
            raise MechanismError(f"{model.path}: {engine} {release} must read the file to pin it, got: {reason}")
        file = Path(os.path.relpath(model.path, path.absolute().parent)).as_posix()
        largest = {name: _largest(term["values"]) for name, term in dump["terms"].items() if name != "rows"}
        rows.append({"file": file, "sha256": model.digest, "engine": engine, "release": release})
        rows[-1] |= {"largest": largest, "dump": {**dump, "settled": ""}}
    write_baseline(path, COMMAND, rows)


def read_pins(path: Path) -> Mapping[Path, Pin]:
    """The pins in a file, by model file.

    Raises:
        BaselineError: If the file is missing, or contains no pins.
    """
    stored = read_baseline(path, COMMAND, COLUMNS, option=OPTION)["rows"]
    pins = [
        Pin(
            path.absolute().parent.joinpath(row["file"]).resolve(),
            row["sha256"],
            row["engine"],
            row["release"],
            row["dump"],
        )
        for row in stored
    ]
    for pin in pins:
        try:
            states = [[unpacked(each) for each in state] for state in pin.dump["states"]]
            whole = {"sizes", "terms", "fields", "settled"} <= pin.dump.keys() and all(states)
            for term in pin.dump["terms"].values():
                whole = whole and len([*map(unpacked, term["values"])]) == len(states) and bool(term["names"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BaselineError(f"{path}: the stored terms of {pin.path.name} are damaged: {error!r:.60}") from error
        if not whole or not states:
            raise BaselineError(f"{path}: the stored terms of {pin.path.name} are incomplete")
    return {pin.path: pin for pin in pins}


def _largest(values: Sequence[str]) -> float | None:
    largest = max((float(np.abs(unpacked(text)).max(initial=0.0)) for text in values), default=0.0)
    return largest if np.isfinite(largest) else None
