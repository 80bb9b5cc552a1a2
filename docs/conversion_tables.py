"""Convert public files to every format and prove it: `python -m docs.conversion_tables REMOTE [PATTERN ...]`.

REMOTE is the beginning of the addresses of the repositories, as of `loopcheck study atlas --remote`. Writes
`docs/conversions/conversions.csv`: the files of `docs/conversions/models`, files of the atlas without meshes, and files
of the atlas that `mechanisms.toml` names, each to MJCF, URDF with a loop file, SDF and USD. All rows are of one run:
with patterns, the rows of other files are kept, and `run.json` names no commit.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import TimeoutError
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from pebble import ProcessPool

from docs.kept_tables import ROOT
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.formats.registry import format_of
from loopcheck.validation.convert.conversion import Row
from loopcheck.validation.convert.converting import FORMATS, convert, in_words
from loopcheck.validation.public_models.fetching import FetchError, fetched
from loopcheck.validation.public_models.git import GitError
from loopcheck.validation.public_models.manifest import Entry, entries

FOLDER = ROOT / "docs" / "conversions"
FILE = FOLDER / "conversions.csv"
SUFFIXES = (".xml", ".urdf", ".sdf", ".usda")
LIMIT = 300.0
"""Time limit of the conversions of a file [s]."""
VERDICTS = {0: "same", 1: "differs", 3: "same but for losses"}
"""Verdict by exit status."""


def chosen() -> list[Entry]:
    """Files of both tables."""
    named_there = {model for row in mechanisms() for model in row["models"]}
    every = [*entries(folder=FOLDER / "models"), *entries()]
    return [e for e in every if e.model.path[-4:] != ".xml" or not e.model.files or e.model.id in named_there]


def mechanisms() -> list[dict[str, Any]]:
    """Kinds of mechanisms, each with the names of its files."""
    return list(tomllib.loads((FOLDER / "mechanisms.toml").read_text(encoding="utf-8"))["mechanisms"])


def main() -> None:
    """Compute the files named on the command line, by default all that can be fetched."""
    remote, *patterns = sys.argv[1:]
    if not patterns:
        FILE.unlink(missing_ok=True)
    (FOLDER / "run.json").write_text(json.dumps(_record(whole=not patterns), indent=1) + "\n", encoding="utf-8")
    tasks = []
    with ProcessPool(max_workers=2) as pool:
        for entry in chosen():
            if patterns and not any(Path(entry.model.id).match(pattern) for pattern in patterns):
                continue
            try:
                path = fetched(entry, remote)
            except (FetchError, GitError) as error:
                print(f"{entry.model.id}: {error}", file=sys.stderr)  # noqa: T201
                continue
            tasks.append((entry, path, pool.schedule(rows_of, args=[entry, path], timeout=LIMIT)))
        for entry, path, task in tasks:
            try:
                found = task.result()
            except TimeoutError:
                found = [{**named(entry, path), "verdict": "not run", "note": f"over the limit of {LIMIT:g} s"}]
            print(entry.model.id, *dict.fromkeys(row["verdict"] for row in found), flush=True)  # noqa: T201
            _keep(found)


def _record(*, whole: bool) -> dict[str, Any]:
    """Commit and versions of a run; no commit for a part of the table, or with changed files."""
    git = ["git", "-C", str(ROOT)]
    changed = subprocess.check_output([*git, "status", "--porcelain", "--", ".", ":!docs/conversions"], text=True)
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    packages = ("mujoco", "numpy", "pin", "drake", "usd-core")
    return {
        "commit": commit if whole and not changed else None,
        "versions": {package: version(package) for package in packages},
    }


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
        return [{**about, "verdict": "not read", "note": short(str(error), path)}]
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
        return {**to, "verdict": "not converted", "note": short(str(error), path)}
    rows = done.result.rows
    worst, floats = (max(_errors(rows, of_floats=of_floats), default=float("nan")) for of_floats in (False, True))
    wrong = [
        f"{row.quantity}: {row.note or f'{row.error:.1e}, limit {row.limit:.0e}'}"
        for row in rows
        if row.verdict not in ("agree", "informational")
    ]
    return {
        **to,
        "largest_error": worst,
        "from_floats": floats,
        "effect_of_losses": done.result.effect.error,
        "verdict": VERDICTS[done.result.status],
        "note": short("; ".join([*wrong, *(f"lost: {in_words(loss)}" for loss in done.result.losses)]), path),
    }


def _errors(rows: tuple[Row, ...], *, of_floats: bool) -> Iterator[float]:
    for row in rows:
        is_judged = not row.quantity.endswith("loop gap") and row.error == row.error
        if is_judged and row.quantity.startswith("from floats") == of_floats:
            yield row.error


def short(text: str, *places: Path) -> str:
    """A text without the folders of some files, at most 160 characters."""
    for place in places:
        text = text.replace(f"{place.parent}/", "")
    return text[:160]


if __name__ == "__main__":
    main()
