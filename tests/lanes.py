"""Tests with the lowest declared releases, and with releases between: `python -m tests.lanes [LANE...]`.

A lane is an environment outside of the checkout. `lowest` has the lowest declared release of every package that
loopcheck requires, `lowest-EXTRA` those of an extra too, and `mujoco-X` that release of MuJoCo among the newest ones of
all others. Each lane asserts the installed releases, runs commands as installed, away from the checkout, and then its
tests. `docs/lanes.md` shows the results; lanes that did not run keep their rows. Exit status 1 if a lane fails.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from junitparser import JUnitXml
from packaging.requirements import Requirement

from loopcheck import engines
from loopcheck.validation.execution import uv
from tests.sdf_models import write_sdf
from tests.urdf_models import DIALECTS, write_urdf

HOUSE = Path(__file__).parents[1]
TABLE = HOUSE / "docs" / "lanes.md"
BETWEEN = ("3.13.0",)
"""Releases of MuJoCo between the lowest and the newest; other engines have no more than two declared ones."""
UNTRIED = ("mujoco-warp", "newton", "physx")
"""Extras without a lane: too large, as for the group dev."""
OF_EXTRAS = {
    "parquet": ("tests/robots/test_log_files.py", "tests/robots/test_log_tables.py"),
    "usd": ("tests/robots/test_usd.py", "tests/validation/test_formats.py"),
    "ros": ("tests/robots/test_log_files.py", "tests/robots/test_log_tables.py"),
    "interactive": ("tests/validation/test_light_installation.py", "tests/validation/test_report.py"),
    "fast": ("tests/analytic/test_batch.py", "tests/analytic/test_compiled.py"),
    "pinocchio": ("tests/engines/test_pinocchio.py", "tests/robots/test_urdf.py"),
    "dask": ("tests/validation/test_cluster.py",),
}
"""Tests of the extras that are no engines, or that more than the tests of an engine need."""
TOOLS = ("pytest-xdist", "psutil", "hypothesis", "mpmath", "jsonschema", "pyte", "playwright", "pytest-regressions")
"""Packages of the group test that require no higher release of ours."""
COMMANDS = (
    "--help",
    "gate four_bar.xml",
    "check four_bar.xml --source mujoco/kkt --jobs 1",
    "gate model.urdf",
    "gate model.sdf",
    "convert logged.xml written.urdf",
    "convert logged.xml written.sdf",
    "judge logged.xml clean.csv --configuration vertical --out judged",
)
INSTALLED = """
import json
from importlib import metadata
found = {d.metadata["Name"]: [d.version, d.requires or []] for d in metadata.distributions()}
print(json.dumps(found))
"""
HEAD = """# Lanes

Tests with the lowest declared release of every package, and with releases between; written by `python -m tests.lanes`
with Python {python}. Unmarked tests, and all tests of an extra. *raised*: lowest releases that another package of the
lane does not allow.

| lane | releases | raised | commands | passed | failed | skipped |
| --- | --- | --- | --- | --- | --- | --- |
"""


class LaneError(Exception):
    """An environment that is not what its lane says, or a command that fails in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """An environment, and its tests."""

    name: str
    extras: tuple[str, ...] = ()
    mujoco: str = ""
    """Release of MuJoCo among the newest of all others; by default all have the lowest."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """Declared requirements that the lane is about."""
        project = _project()
        of_extras = project["optional-dependencies"]
        return (*project["dependencies"], *(text for extra in self.extras for text in of_extras[extra]))

    @property
    def tests(self) -> tuple[str, ...]:
        """Arguments of pytest."""
        if not self.name.startswith("lowest-"):
            return ("-m", "not evidence", "tests", "--ignore", "tests/docs")
        (extra,) = self.extras
        of_engines = (name for name in engines.engine_names() if engines.extra(name) == extra)
        return OF_EXTRAS.get(extra) or tuple(f"tests/engines/test_{name}.py" for name in of_engines)


def lanes() -> tuple[Lane, ...]:
    """All lanes."""
    extras = [extra for extra in _project()["optional-dependencies"] if extra not in UNTRIED]
    return (
        Lane(name="lowest"),
        *(Lane(name=f"lowest-{extra}", extras=(extra,)) for extra in extras),
        *(Lane(name=f"mujoco-{release}", extras=("usd", "pinocchio"), mujoco=release) for release in BETWEEN),
    )


def _project() -> Mapping[str, Any]:
    project: Mapping[str, Any] = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def make(lane: Lane, place: Path) -> Path:
    """Make the environment of a lane from the declared requirements alone, and return its Python.

    `[tool.uv]` of pyproject.toml pins every package for every resolution, so uv runs outside of the checkout.
    """
    lowest = ("--resolution", "lowest-direct")
    pins, wheels = place / "pins.txt", ("--only-binary", ":all:")
    release = f"\nmujoco=={lane.mujoco}" if lane.mujoco else ""
    version = ("--python-version", uv.THIS)
    text = uv.uv(
        ("pip", "compile", "-", *wheels, *version, *(() if lane.mujoco else lowest)),
        place,
        "\n".join(lane.requirements) + release,
    )
    pins.write_text(text, encoding="utf-8")
    uv.uv(("venv", "--python", sys.executable, "env"), place)
    python = place / "env" / "bin" / "python"
    install = ("pip", "install", "--python", str(python), *wheels)
    uv.uv(("build", "--wheel", "--out-dir", str(place), str(HOUSE)), place)
    (wheel,) = place.glob("*.whl")
    uv.uv((*install, "-r", str(pins), str(wheel)), place)
    uv.uv((*install, "-c", str(pins), *TOOLS), place)
    return python


def raised(lane: Lane, python: Path) -> Mapping[str, str]:
    """Requirements above their lowest declared release, each with the package that raises it.

    Raises:
        LaneError: If a package has another release than the lane says, without a package that requires it.
    """
    found = json.loads(_run(python, "-c", INSTALLED).stdout)
    installed = {name.lower().replace("_", "-"): content for name, content in found.items()}
    higher = {}
    for requirement in map(Requirement, lane.requirements):
        if requirement.marker and not requirement.marker.evaluate():
            continue
        release = installed[requirement.name.lower()][0]
        least = next(part.version for part in requirement.specifier if part.operator == ">=")
        wanted = lane.mujoco if lane.mujoco and requirement.name == "mujoco" else least
        if Requirement(f"x=={wanted}").specifier.contains(release) or (lane.mujoco and requirement.name != "mujoco"):
            continue
        raisers = [
            name
            for name, (_, needs) in installed.items()
            if name != "loopcheck"
            for need in map(Requirement, needs)
            if need.name == requirement.name and not need.specifier.contains(wanted)
        ]
        if not raisers:
            raise LaneError(f"{requirement.name} must be of release {wanted}, got {release}")
        higher[f"{requirement.name} {release}"] = raisers[0]
    return higher


def commands(lane: Lane, python: Path, place: Path) -> Iterator[tuple[str, int, str]]:
    """Run commands as installed, away from the checkout: command, exit status and last line."""
    folder = place / "work"
    folder.mkdir()
    write_urdf(folder, *DIALECTS["constraint, spherical"])
    write_sdf(folder)
    robot = HOUSE / "robots" / "four_bar"
    for source, name in (
        (HOUSE / "tests" / "models" / "four_bar.xml", "four_bar.xml"),
        (robot / "four_bar.xml", "logged.xml"),
        (robot / "logs" / "clean.csv", "clean.csv"),
    ):
        (folder / name).write_bytes(source.read_bytes())
    usd = ("convert logged.xml written.usda", "gate written.usda") if "usd" in lane.extras else ()
    for command in (*COMMANDS, *usd):
        done = _run(python.with_name("loopcheck"), *command.split(), cwd=folder)
        yield command, done.returncode, (done.stderr or done.stdout).strip().split("\n")[-1]


def _run(program: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


def tested(lane: Lane, python: Path, place: Path) -> tuple[int, int, int]:
    """Numbers of passed, failed and skipped tests of the checkout in the environment of a lane."""
    uv.uv(("pip", "install", "--python", str(python), "--no-deps", "-e", str(HOUSE)), place)
    results = place / "results.xml"
    options = (
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        "--cpu-tolerance",
        "inf",
        "--junit-xml",
        str(results),
        "--tb",
        "line",
    )
    # an indirect package is the newest one, and may deprecate functions that a low release still calls
    arguments = (*options, "-W", "ignore::DeprecationWarning", *lane.tests)
    subprocess.run([python, "-m", "pytest", *arguments], cwd=HOUSE, check=False)
    if not results.is_file():
        raise LaneError("its tests did not run")
    suite = JUnitXml.fromfile(str(results))
    failed, skipped = suite.failures + suite.errors, suite.skipped
    return suite.tests - failed - skipped, failed, skipped


def row(lane: Lane) -> tuple[str, bool]:
    """Run a lane: its row of the table, and whether it passed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python = make(lane, place)
        higher = raised(lane, python)
        failures = [
            f"`{command}`: {status}, {line}" for command, status, line in commands(lane, python, place) if status
        ]
        print(*(f"{lane.name}: {failure}\n" for failure in failures), end="")  # noqa: T201
        passed, failed, skipped = tested(lane, python, place)
    releases = f"mujoco {lane.mujoco}" if lane.mujoco else ", ".join(_in_words(lane))
    raisers = ", ".join(f"{package} ({by})" for package, by in higher.items())
    cells = (lane.name, releases, raisers, "; ".join(failures) or "all", passed, failed, skipped)
    return f"| {' | '.join(map(str, cells))} |", not failures and not failed and passed > 0


def _in_words(lane: Lane) -> Iterator[str]:
    """Lowest releases of the packages of a lane; for an extra of its own packages."""
    of_extras = {text for extra in lane.extras for text in _project()["optional-dependencies"][extra]}
    for requirement in map(Requirement, of_extras or lane.requirements):
        yield f"{requirement.name} {next(part.version for part in requirement.specifier if part.operator == '>=')}"


def record(name: str, line: str) -> None:
    """Write a row of the table, in the order of the lanes."""
    known = [lane.name for lane in lanes()]
    text = TABLE.read_text(encoding="utf-8") if TABLE.is_file() else ""
    rows = {found[1]: found[0] for found in re.finditer(r"^\| ([\w.-]+) \|.*", text, re.MULTILINE)} | {name: line}
    ordered = (rows[lane] for lane in known if lane in rows)
    TABLE.write_text(HEAD.format(python=uv.THIS) + "\n".join(ordered) + "\n", encoding="utf-8")


def main(names: Sequence[str]) -> int:
    """Run lanes, and write their rows into the table."""
    known = {lane.name: lane for lane in lanes()}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"a lane must be one of {', '.join(known)}, got {', '.join(unknown)}")
    failed = []
    for name in names or known:
        try:
            line, has_passed = row(known[name])
        except (LaneError, uv.UvError) as error:
            line, has_passed = f"| {name} | | | {error} | 0 | 0 | 0 |", False
        record(name, line)
        if not has_passed:
            failed.append(name)
    print(f"lanes: {len(names or known) - len(failed)} passed, {len(failed)} failed: {', '.join(failed)}")  # noqa: T201
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
