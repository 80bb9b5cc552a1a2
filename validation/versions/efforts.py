"""Efforts of the unmodified simulation in several releases, by loopcheck's own adapter; informational.

The packages of the running loopcheck are copied into a separate folder with its metadata, and run from there: beside
an installed loopcheck are the engines of its own environment, which must not be imported.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from packaging.requirements import Requirement

import loopcheck
from loopcheck.robots.errors import HarnessError
from loopcheck.validation.common.results import read
from loopcheck.validation.execution import uv
from loopcheck.validation.execution.environment_making import packages_with
from loopcheck.validation.execution.folders import COMPUTING, ROOT
from loopcheck.validation.versions.releases import Releases, here

PROGRAM = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
from loopcheck.robots.processes import end_with_parent
end_with_parent(sys.stdin.read)
from loopcheck.robots import releases
releases.too_old = lambda *extras: ""  # the old release is what is compared
runpy.run_module("loopcheck", run_name="__main__", alter_sys=True)
"""
"""Runs loopcheck; ends with its parent process, when its end of the pipe is closed."""
KEY = ["variant", "mode", "configuration", "actuator", "t"]


def effort_changes(releases: Releases, model: Path) -> Iterator[str]:
    """A sentence for each release: the change of the efforts of `ENGINE/as_is` from the release before.

    Args:
        releases: The releases, the oldest first.
        model: The model file; its first mode runs.
    """
    before: pd.DataFrame | None = None
    with TemporaryDirectory() as folder, _packages(Path(folder)) as place:
        for version in releases.versions:
            efforts = _efforts(releases, version, place, model, Path(folder, version))
            if isinstance(efforts, str):
                yield f"{version}: efforts not computed: {efforts}"
                continue
            if before is not None:
                both = before.merge(efforts, on=KEY, suffixes=("_before", ""))
                both["change"] = (both["effort"] - both["effort_before"]).abs()
                grouped = both.groupby("actuator", sort=False)
                change = (grouped["change"].max() / grouped["effort_before"].agg(lambda tau: tau.abs().max())).fillna(
                    0.0
                )
                where = f" at '{change.idxmax()}'" if change.max() > 0 else ""
                yield f"{version}: efforts change by {change.max():.1e} of the peak{where}"
            before = efforts


def _efforts(releases: Releases, version: str, place: Path, model: Path, out: Path) -> pd.DataFrame | str:
    """The efforts, or the reason for their absence."""
    source = f"{releases.engine}/as_is"
    interpreter: tuple[str, ...] = (sys.executable,)
    try:
        if version != here(releases.engine):
            packages = packages_with(releases.engine, version, _needs())
            options = ("--quiet", "--isolated", "--no-project", "--python", releases.python)
            interpreter = (uv.program(), "run", *options, *(f"--with={package}" for package in packages), "python")
    except HarnessError as error:
        return str(error)
    arguments = ("check", str(model), "--source", source, "--jobs", "1", "--out", str(out))
    theirs, ours = os.pipe()  # ours is closed when this process ends, however it does
    try:
        command = (*interpreter, "-c", PROGRAM, str(place), *arguments)
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, check=False)
    finally:
        os.close(theirs)
        os.close(ours)
    if done.returncode not in (0, 1, 3):
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1].removeprefix("loopcheck: ")
    results = read(out)
    rows = results.efforts[results.efforts["source"] == source]
    return rows[[*KEY, "effort"]] if len(rows) else f"{source}: {'; '.join(results.run['not_run']) or 'no effort'}"


def _needs() -> Iterator[str]:
    """Requirements of loopcheck without extras."""
    for text in importlib.metadata.requires("loopcheck") or ():
        marker = Requirement(text).marker
        if marker is None or marker.evaluate({"extra": ""}):
            yield text


@contextmanager
def _packages(folder: Path) -> Iterator[Path]:
    """A folder with the packages and metadata of the running loopcheck only."""
    place = folder / "loopcheck_alone"
    for package in (*COMPUTING, "validation"):
        shutil.copytree(ROOT / package, place / "loopcheck" / package)  # compiled files too, which saves a second
    for module in ("__init__.py", "__main__.py"):
        shutil.copy(Path(loopcheck.__file__).with_name(module), place / "loopcheck")
    about = importlib.metadata.distribution("loopcheck")
    metadata = place / f"loopcheck-{about.version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(about.read_text("METADATA") or about.read_text("PKG-INFO") or "", encoding="utf-8")
    yield place
