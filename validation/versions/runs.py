"""Dumps of model files in releases of an engine: a process each, and a cache by model, states, release and program."""

import ast
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loopcheck import engines
from loopcheck.robots.errors import HarnessError, MechanismError
from loopcheck.robots.formats.model_file import file_hash, files_of
from loopcheck.robots.formats.registry import format_of
from loopcheck.validation.execution.folders import user_folder
from loopcheck.validation.execution.progress import Display
from loopcheck.validation.versions.comparison import Dump
from loopcheck.validation.versions.releases import Releases

PROGRAM = Path(__file__).with_name("dump.py")
PART = "release_terms"
"""Part of an engine with the terms of its releases."""
STATES, SEED = 20, 0
"""Number of states, and the seed of their random numbers."""
SIGNAL, LONG = "the process ends with signal", "the process takes longer than"
KILLED = 128
"""Exit status of `uv run` for a process that a signal ends, less the number of the signal."""
UNSATISFIABLE = "No solution found"
"""Message of uv if the release requires another numpy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model file with the hash of all files that it reads."""

    path: Path
    digest: str

    @classmethod
    def from_file(cls, path: Path, engine: str) -> "Model":
        """The model of a file in a format that the engine reads.

        Raises:
            MechanismError: If the file is missing, no model, or in another format.
        """
        form, formats = format_of(path), formats_of(engine)
        name = form.name.split()[-1] if form else "MJCF"
        if name not in formats:
            to = f"{path.stem}.{'xml' if 'MJCF' in formats else 'urdf'}"
            raise MechanismError(
                f"{path}: {engines.lineage(engine)} must read the file itself, as {' or '.join(formats)}, got {name}. "
                f"Run: loopcheck convert {path.name} {to}"
            )
        files = {path.absolute(), *files_of(path)}
        hashes = sorted((os.path.relpath(file, path.absolute().parent), file_hash(file)) for file in files)
        return cls(path=path.absolute(), digest=_digest(hashes))


def formats_of(engine: str) -> tuple[str, ...]:
    """Formats that an engine's releases read; its package need not be installed.

    Raises:
        HarnessError: If the engine has no part that reads its releases.
    """
    if not engines.provides(engine, PART):
        able = [name for name in engines.engine_names() if engines.provides(name, PART)]
        raise HarnessError(f"releases of {engine} cannot be compared; ENGINE must be one of {', '.join(able)}")
    line = next(line for line in _part(engine).read_text(encoding="utf-8").splitlines() if line.startswith("FORMATS"))
    formats: tuple[str, ...] = ast.literal_eval(line.split("=")[1].strip())
    return formats


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Runs of an engine's releases."""

    releases: Releases
    jobs: int | None = None
    """Number of processes at a time."""
    time_limit: float = 1800.0
    """Longest time of a release [s]."""

    def dumps(
        self, models: Sequence[Model], states: Mapping[Path, Any], progress: Display
    ) -> dict[tuple[str, Path], Dump]:
        """The dump, or the reason for its absence, of each model in each release, all at the same states.

        Args:
            models: Model files.
            states: Stored states of models; other models get states of their own, the same in every call.
            progress: Shows finished releases.
        """
        known = {**states}
        for model in models:
            if model.path not in known and (stored := _read(self._place(model, "states"))) is not None:
                known[model.path] = stored["states"]
        for version in reversed(self.releases.versions):  # the newest release that reads a file makes its states
            lacking = [model for model in models if model.path not in known]
            for path, dump in self._in(version, lacking, known).items():
                if "states" in dump:
                    known[path] = dump["states"]
                    model = next(model for model in lacking if model.path == path)
                    _write(self._place(model, "states"), {"states": dump["states"]})
                    _write(self._place(model, version, dump["states"]), dump)
        found: dict[tuple[str, Path], Dump] = {}
        with ThreadPoolExecutor(self.jobs or os.cpu_count()) as executor:
            futures = {executor.submit(self._in, version, models, known): version for version in self.releases.versions}
            name = engines.lineage(self.releases.engine)
            try:
                for future in progress.track(
                    as_completed(futures), total=len(futures), description=f"releases of {name}"
                ):
                    found |= {(futures[future], path): dump for path, dump in future.result().items()}
            except BaseException:
                executor.shutdown(wait=False, cancel_futures=True)
                raise
        return found

    def _in(self, version: str, models: Iterable[Model], states: Mapping[Path, Any]) -> Mapping[Path, Dump]:
        """Dumps in a release, from the cache as far as possible."""
        found: dict[Path, Dump] = {}
        missing: dict[Path, Path] = {}
        for model in models:
            place = self._place(model, version, states.get(model.path))
            stored = _read(place)
            if stored is None:
                missing[model.path] = place
            else:
                found[model.path] = stored
        while missing:
            lines, reason = self._run(version, {path: states.get(path) for path in missing})
            for line in lines:
                path = Path(line["file"])
                found[path] = {name: value for name, value in line.items() if name != "file"}
                _write(missing.pop(path), found[path])
            if missing:
                is_crash = SIGNAL in reason or LONG in reason  # at a file: the others get a new process
                for path in list(missing)[: 1 if is_crash else None]:
                    found[path] = {"failure": reason}
                    del missing[path]
        return found

    def _run(self, version: str, files: Mapping[Path, Any]) -> tuple[list[Any], str]:
        """Dumps of the files before a failure, and its reason."""
        with TemporaryDirectory() as folder:
            request, out = Path(folder, "request.json"), Path(folder, "out.jsonl")
            content = {"part": str(_part(self.releases.engine)), "count": STATES, "seed": SEED, "out": str(out)}
            content["files"] = {str(path): states for path, states in files.items()}
            request.write_text(json.dumps(content), encoding="utf-8")
            reason = self._call(self.releases.command(version), request)
            if UNSATISFIABLE in reason:
                reason = self._call(self.releases.command(version, pinned=False), request)
            lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
            whole = [json.loads(line) for line in lines if line.endswith("}")]
            return whole, reason

    def _call(self, command: Sequence[str], request: Path) -> str:
        """Run the program, and return the reason for its failure; empty if it succeeds."""
        surroundings = {name: text for name, text in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
        try:
            done = subprocess.run(
                (*command, str(PROGRAM), str(request)),
                cwd=request.parent,  # away from projects, whose settings uv would take
                env=surroundings,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=self.time_limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{LONG} {self.time_limit:g} s. Allow more with --time-limit"
        if done.returncode == 0:
            return ""
        if done.returncode < 0 or done.returncode > KILLED:
            return f"{SIGNAL} {abs(done.returncode) % KILLED}"
        text = " ".join(done.stderr.split())
        if "Traceback" in text:
            return done.stderr.strip().splitlines()[-1]
        return text.removeprefix("error: ") or f"exit status {done.returncode}"

    def _place(self, model: Model, version: str, states: Any = None) -> Path:
        """Stored result of a model in a release, or its states; wheels of a release do not change."""
        programs = [file_hash(PROGRAM), file_hash(_part(self.releases.engine))]
        key = [self.releases.engine, version, model.digest, _digest(states), STATES, SEED, *programs]
        return user_folder("versions") / f"{_digest([*key, platform.platform(), self.releases.python])}.json"


def _part(engine: str) -> Path:
    return Path(engines.__file__).parent / engine / f"{PART}.py"


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _read(place: Path) -> Any:
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write(place: Path, content: Any) -> None:
    draft = place.with_suffix(f".{os.getpid()}-{id(content)}")
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.replace(place)  # an interrupted command leaves no half of a file
