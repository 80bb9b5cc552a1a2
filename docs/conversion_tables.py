"""Convert public files to every format and prove it: `python -m docs.conversion_tables REMOTE [PATTERN ...]`.

REMOTE is the beginning of the addresses of the repositories, as of `loopcheck study atlas --remote`. Writes
`docs/conversions/conversions.csv`: the files of `docs/conversions/models`, and files of the atlas without meshes, each
to MJCF, URDF with a loop file, SDF and USD. Rows of other files are kept.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import TimeoutError
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from pebble import ProcessPool

from docs.kept_tables import ROOT
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats import format_of
from loopcheck.robots.mjcf import read_mechanism
from loopcheck.robots.model_file import ModelFile
from loopcheck.validation.comparison.conversion import Row
from loopcheck.validation.converting import FORMATS, convert
from loopcheck.validation.studies.atlas.fetching import FetchError, fetched
from loopcheck.validation.studies.atlas.git import GitError
from loopcheck.validation.studies.atlas.manifest import Entry, entries

FOLDER = ROOT / "docs" / "conversions"
FILE = FOLDER / "conversions.csv"
SUFFIXES = (".xml", ".urdf", ".sdf", ".usda")
LIMIT = 60.0
"""Time limit of the conversions of a file [s]."""
VERDICTS = {0: "same", 1: "differs", 3: "same but for losses"}
"""Verdict by exit status."""


def main() -> None:
    """Compute the files named on the command line, by default all that can be fetched."""
    remote, *patterns = sys.argv[1:]
    every = [*entries(folder=FOLDER / "models"), *(entry for entry in entries() if not entry.model.files)]
    chosen = [entry for entry in every if not patterns or any(Path(entry.model.id).match(p) for p in patterns)]
    with ProcessPool(max_workers=1) as pool:
        for entry in chosen:
            try:
                path = fetched(entry, remote)
            except (FetchError, GitError) as error:
                print(f"{entry.model.id}: {error}", file=sys.stderr)  # noqa: T201
                continue
            try:
                found = pool.schedule(rows_of, args=[entry, path], timeout=LIMIT).result()
            except TimeoutError:
                found = [{**named(entry, path), "verdict": "not run", "note": f"over the limit of {LIMIT:g} s"}]
            _keep(found)


def _keep(rows: list[dict[str, Any]]) -> None:
    """Write the rows of a file in place of its former rows."""
    others = pd.read_csv(FILE) if FILE.is_file() else pd.DataFrame({"model": []})
    table = pd.concat([others[~others["model"].isin([row["model"] for row in rows])], pd.DataFrame(rows)])
    table.sort_values(["format", "model"], kind="stable").to_csv(
        FILE, index=False, float_format="%.3g", lineterminator="\n"
    )


def rows_of(entry: Entry, path: Path) -> list[dict[str, Any]]:
    """Rows of a file, one for each format, or one with the reason why it is not read."""
    about = named(entry, path)
    try:
        mechanism = read_mechanism(ModelFile(path=path))
    except HarnessError as error:
        return [{**about, "verdict": "not read", "note": _short(str(error), path)}]
    sizes = {"joints": len(mechanism.joints), "loops": len(mechanism.closures), "motors": len(mechanism.actuators)}
    with TemporaryDirectory() as folder:
        return [{**about, **sizes, **_converted(path, Path(folder) / f"out{suffix}")} for suffix in SUFFIXES]


def named(entry: Entry, path: Path) -> dict[str, Any]:
    """Address and format of a file, as columns."""
    form = format_of(path)
    return {
        "model": entry.model.id,
        "repository": entry.repository.repository,
        "commit": entry.repository.commit,
        "path": entry.model.path,
        "format": "MJCF" if form is None else form.name.split()[-1],
    }


def _converted(path: Path, out: Path) -> dict[str, Any]:
    to = {"to": FORMATS[out.suffix].name}
    try:
        done = convert(str(path), out, lossless=False, seed=0)
    except HarnessError as error:
        return {**to, "verdict": "not converted", "note": _short(str(error), path)}
    rows = done.result.rows
    worst, floats = (max(_errors(rows, of_floats=of_floats), default=float("nan")) for of_floats in (False, True))
    wrong = [f"{row.quantity}: {row.note}" for row in rows if row.verdict not in ("agree", "informational")]
    return {
        **to,
        "largest_error": worst,
        "from_floats": floats,
        "effect_of_losses": done.result.effect.error,
        "verdict": VERDICTS[done.result.status],
        "note": _short("; ".join([*wrong, *(f"lost: {loss}" for loss in done.result.losses)]), path),
    }


def _errors(rows: tuple[Row, ...], *, of_floats: bool) -> Iterator[float]:
    for row in rows:
        is_judged = not row.quantity.endswith("loop gap") and row.error == row.error
        if is_judged and row.quantity.startswith("from floats") == of_floats:
            yield row.error


def _short(text: str, path: Path) -> str:
    """A text without the folder of the file, at most 160 characters."""
    return text.replace(f"{path.parent}/", "")[:160]


if __name__ == "__main__":
    main()
