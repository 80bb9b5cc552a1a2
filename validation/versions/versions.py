"""Comparison of model files in releases of an engine, from targets to a result."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from loopcheck import engines
from loopcheck.robots.errors import HarnessError, MechanismError
from loopcheck.robots.formats.urdf import is_urdf
from loopcheck.validation.execution.progress import Display
from loopcheck.validation.gate.gate import model_path
from loopcheck.validation.versions.changelog import changelog, fitting_line
from loopcheck.validation.versions.comparison import Dump
from loopcheck.validation.versions.pins import Pin, read_pins, write_pin
from loopcheck.validation.versions.releases import Releases, here, releases, wanted
from loopcheck.validation.versions.result import CHANGED, ModelResult, Row, VersionsResult, rows
from loopcheck.validation.versions.runs import Model, Runs

MODEL_SUFFIXES = (".xml", ".mjcf", ".urdf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to compare."""

    targets: Sequence[str] = ()
    """TARGETs, or folders of model files; empty for the files of the pin."""
    requirements: Sequence[str] = ()
    """ENGINE or ENGINE==VERSION."""
    only: bool = False
    """Run the named releases alone."""
    pin: Path | None = None
    against: Path | None = None
    jobs: int | None = None
    time_limit: float = 1800.0


def versions(request: Request, progress: Display) -> tuple[VersionsResult, Releases]:
    """Compare model files in releases of an engine, and write a pin on request.

    Args:
        request: What to compare.
        progress: Shows finished releases.

    Raises:
        HarnessError: If a target, release or pin is bad, or the releases cannot be listed.
    """
    pins = read_pins(request.against) if request.against else {}
    engine, named = wanted(request.requirements or sorted({pin.engine for pin in pins.values()}))
    paths = _paths_of(request, pins)
    models = [Model.from_file(path, engine) for path in paths]
    stored = {model.path: _pin_of(model, pins, request.against, engine) for model in models} if request.against else {}
    one = (request.pin or request.against) and not named and here(engine)
    chosen = releases(engine, (here(engine),) if one else named, only=request.only or bool(one))
    if len(chosen.versions) + bool(pins) < 2 and not request.pin:
        raise HarnessError(f"at least two releases must be compared, got {engine} {', '.join(chosen.versions)}")
    runs = Runs(releases=chosen, jobs=request.jobs, time_limit=request.time_limit)
    states = {path: pin.dump["states"] for path, pin in stored.items()}
    dumps = runs.dumps(models, states, progress)
    if request.pin:
        newest = chosen.versions[-1]
        write_pin(request.pin, engine, newest, [(model, dumps[newest, model.path]) for model in models])
    found = [_model_result(paths[model.path], model, chosen, dumps, stored.get(model.path)) for model in models]
    return VersionsResult(engine=engine, models=tuple(_explained(found, models, chosen))), chosen


def _paths_of(request: Request, pins: Mapping[Path, Pin]) -> Mapping[Path, str]:
    """Model files of the targets, or of the pin without a target, with their names for the output.

    Raises:
        HarnessError: If a target is bad, or neither is given.
    """
    found: dict[Path, str] = {}
    if not request.targets and request.against:
        return {path: os.path.relpath(path) for path in pins}
    if not request.targets:
        raise HarnessError("a TARGET or --against must be given. Robots: loopcheck list")
    for target in request.targets:
        path = Path(target)
        if path.is_dir() and not (path / "robot.toml").exists():
            files = [one for one in sorted(path.iterdir()) if _is_model(one)]
            if not files:
                raise MechanismError(f"{path}: the folder must contain robot.toml or model files, got none")
            found |= {file.resolve(): str(file) for file in files}
        else:
            found[model_path(target).resolve()] = target
    return found


def _is_model(path: Path) -> bool:
    if not path.is_file() or path.suffix.lower() not in MODEL_SUFFIXES:
        return False
    return is_urdf(path) or b"<mujoco" in path.read_bytes().replace(b"<mujocoinclude", b"")


def _pin_of(model: Model, pins: Mapping[Path, Pin], file: Path | None, engine: str) -> Pin:
    if model.path not in pins:
        known = ", ".join(path.name for path in pins)
        raise MechanismError(f"{model.path}: must be a model of {file}, got one that is not pinned there ({known})")
    pin = pins[model.path]
    if pin.engine != engine:
        raise HarnessError(f"{file}: the pin is of {pin.engine}, got releases of {engine}")
    return pin


def _model_result(
    target: str, model: Model, chosen: Releases, dumps: Mapping[tuple[str, Path], Dump], pin: Pin | None
) -> ModelResult:
    stored = (f"{pin.release} (pin)", pin.dump) if pin else None
    found = tuple(rows([(version, dumps[version, model.path]) for version in chosen.versions], stored))
    notes = []
    if pin and pin.digest != model.digest:
        notes.append(
            "The model file has changed since it was pinned: a change may come from it. Pin it again with --pin"
        )
    if chosen.offline:
        notes.append("The package index cannot be reached: only downloaded releases were listed")
    return ModelResult(target=target, path=model.path, digest=model.digest, rows=found, notes=tuple(notes))


def _explained(found: Sequence[ModelResult], models: Sequence[Model], chosen: Releases) -> list[ModelResult]:
    """The results with lines of the changelog."""
    changed = [row for result in found for row in result.rows if row.verdict == CHANGED]
    newest = max((name.split()[0] for row in changed for name in (row.before, row.release)), key=Version, default="")
    text = changelog(chosen, newest) if newest else ""
    return [
        replace(result, rows=tuple(_with_line(row, text, model.path) for row in result.rows))
        for result, model in zip(found, models, strict=True)
    ]


def _with_line(row: Row, text: str, model: Path) -> Row:
    if row.verdict != CHANGED or not text:
        return row
    between = (row.before.split()[0], row.release)
    return replace(row, changelog=fitting_line(text, between, row.comparison.terms, model))


def engine_word(text: str) -> bool:
    """Whether a word of the command line names an engine or a release rather than a target."""
    names = {*engines.engine_names(), *map(engines.distribution, engines.engine_names())}
    return "==" in text or (text in names and not Path(text).exists())
