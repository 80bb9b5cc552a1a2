"""Stored results depend on the content of every file of a model, of a motion and of a log, whatever the study is."""

import ast
import pickle
import shutil
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import pytest

from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.errors import HarnessError, MechanismError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile, files_of
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.check.efforts.evaluate import prescribe_or_error
from loopcheck.validation.common import targets
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.execution.journal import Task, digest_of, journal_in, keys
from loopcheck.validation.execution.progress import NoDisplay
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool, Workers, worker_pool
from loopcheck.validation.frame.study import Study
from loopcheck.validation.judge.logs import LogOptions
from loopcheck.validation.judge.study import judge_of_files
from loopcheck.validation.serial.study import Serial
from loopcheck.validation.studies.atlas.tuning import tuned_cost
from loopcheck.validation.studies.sweep.cases import Variation, nominal
from loopcheck.validation.studies.sweep.study import Sweep
from loopcheck.validation.tune.engine import AskedTuning
from loopcheck.validation.tune.runs.purposes import given_purposes
from loopcheck.validation.tune.runs.tuning_runs import TuningRuns
from tests.validation.conftest import in_this_process

ROOT = Path(__file__).parents[2]
FOUR_BAR = CATALOGUE / "four_bar"
MODEL_TYPES = (Case, Mechanism, ModelFile, Path)
"""Types of arguments that make the content of files part of a key."""
WITHOUT_FILES = {
    "_answer": "its results are never stored",
    "_imported": "no results",
    "outlines": "of an engine and a motion",
    "settings_of": "of an engine",
    "run_batch": "a robot of the catalogue",
    "history": "a robot of the catalogue",
    "measure": "a benchmark of the catalogue",
    "compute_cases": "`Task.files` has the files of the target",
}
"""Functions of tasks with arguments that name no file of a user, with the reason."""


@pytest.fixture(autouse=True)
def without_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started to read models first."""
    monkeypatch.setattr(targets, "want_readable", lambda *_, **__: None)


@pytest.mark.parametrize("robot", ["3prr", "6x6r", "andrews", "four_bar"])
def test_the_key_of_a_mechanism_is_the_same_in_every_process(robot: str) -> None:
    mechanism = representative_case(load(robot)).mechanism
    assert digest_of(pickle.loads(pickle.dumps(mechanism))) == digest_of(mechanism)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)])
def test_the_key_of_an_empty_array_is_the_same_in_every_process(shape: tuple[int, ...]) -> None:
    empty = np.zeros(shape)
    assert digest_of(pickle.loads(pickle.dumps(empty))) == digest_of(empty)
    assert digest_of(np.zeros((0, 5))) != digest_of(empty)


def test_a_case_is_hashed_once_in_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Though each task of a search has a tuple of its own around it; what can change is hashed again."""
    hashed: list[Any] = []

    def counted(argument: Any) -> str:
        hashed.append(argument)
        return digest_of(argument)

    case, other = (case_of(CATALOGUE / f"{name}/{name}.xml") for name in ("four_bar", "slider_crank"))
    settings = {"dt": 1e-3}
    with journal_in(tmp_path):
        monkeypatch.setattr("loopcheck.validation.execution.journal.digest_of", counted)
        first, second = (keys([Task(prescribe_or_error, ((case,), settings))])[0] for _ in range(2))
        assert first == second
        assert [argument is case for argument in hashed].count(True) == 1
        settings["dt"] = 2e-3
        assert keys([Task(prescribe_or_error, ((case,), settings))])[0] != first
        assert keys([Task(prescribe_or_error, ((other,), settings))])[0] != first
    with journal_in(tmp_path):
        keys([Task(prescribe_or_error, ((case,), settings))])
    assert [argument is case for argument in hashed].count(True) == 2


class Collecting(NamedTuple):
    """Stands in for worker processes: collects tasks without computing them."""

    tasks: list[Task]

    def outcomes(self, tasks: Sequence[Task], _: float) -> Iterator[tuple[int, Any]]:
        for k, task in enumerate(tasks):
            self.tasks.append(task)
            yield k, WorkerFailure("collected only")


def keys_of(study: Study, folder: Path) -> set[str]:
    """Keys of the first tasks of a study; the file is read anew, as by a new command."""
    nominal.cache_clear()
    executor = Collecting([])
    with suppress(HarnessError):
        study.compute(WorkerPool(executor=executor, progress=NoDisplay(), time_limit=1.0), folder)
    return set(keys(executor.tasks))


def functions_of_tasks() -> Iterator[tuple[str, Any]]:
    """Name and function of every task in the sources, with its module."""
    for path in sorted((ROOT / "validation").rglob("*.py")):
        module = None
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Task":
                module = module or import_module(f"loopcheck.{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}")
                yield ast.unparse(node.args[0]), module


def has_model(kind: Any, seen: set[Any] | None = None) -> bool:
    """Whether values of a type contain a model: itself, a field, or an argument of a generic type."""
    seen = set() if seen is None else seen
    if kind in MODEL_TYPES:
        return True
    if not isinstance(kind, Hashable) or kind in seen:
        return False
    seen.add(kind)
    fields = get_type_hints(kind) if is_dataclass(kind) or hasattr(kind, "_fields") else {}
    return any(has_model(part, seen) for part in (*get_args(kind), *fields.values()))


def takes_model(function: Any) -> bool:
    return any(has_model(kind) for name, kind in get_type_hints(function).items() if name != "return")


def test_no_task_of_any_study_can_forget_the_files_of_its_model() -> None:
    """Pages draw tables, and `check` gets the comparison with a twin from its command: a case, and paths."""
    names, forgetful = set(), []
    for name, module in functions_of_tasks():
        if ".sections." in module.__name__ or name in ("function", "study.compare_twin"):
            continue
        *owner, last = name.split(".")
        names.add(last)
        if last not in WITHOUT_FILES:
            function = getattr(getattr(module, owner[0]) if owner else module, last)
            forgetful += [] if takes_model(function) else [name]
    assert not forgetful
    assert {"judge_settings", "budget", "simulate_levels", "tuned_cost", "evaluate"} <= names


def with_servo(folder: Path, gain: float) -> Path:
    """A four-bar linkage with a servo as motor; the analytic models do not contain its gain."""
    text = (FOUR_BAR / "four_bar.xml").read_text(encoding="utf-8")
    path = folder / "four_bar.xml"
    start = text.index("<actuator>")
    servo = f'<actuator><position name="crank" joint="crank" kp="{gain:g}"/>'
    path.write_text(text[:start] + servo + text[text.index("</actuator>") :], encoding="utf-8")
    return path


STUDIES: Mapping[str, Callable[[Path], Study]] = {
    "judge": lambda path: judge_of_files(case_of(path), [FOUR_BAR / "logs/clean.csv"], asked=LogOptions()),
    "sweep": lambda path: Sweep(variation=Variation(target=str(path), motions=("own",)), cases=3),
    "serial": lambda path: Serial(closed=case_of(path), serial=case_of(path)),
}


@pytest.mark.parametrize("name", STUDIES)
def test_a_servo_gain_that_only_an_engine_reads_is_part_of_every_key(name: str, tmp_path: Path) -> None:
    before = keys_of(STUDIES[name](with_servo(tmp_path, 200)), tmp_path)
    after = keys_of(STUDIES[name](with_servo(tmp_path, 1e-6)), tmp_path)
    assert before
    assert not before & after


def test_tuned_costs_of_the_atlas_depend_on_the_model(tmp_path: Path) -> None:
    (before,), (same,), (after,) = (
        keys([Task(tuned_cost, (case_of(with_servo(tmp_path, gain)), 1.0))]) for gain in (200, 200, 1e-6)
    )
    assert before == same != after


INCLUDED = '<mujoco><include file="part.xml"/></mujoco>'
WITH_FILES = {
    "an include": (
        "part.xml",
        '<mujoco><include file="part.xml"/>{}</mujoco>',
        "<mujoco><option timestep='{}'/></mujoco>",
    ),
    "an include of an include": (
        "part.xml",
        '<mujoco><include file="first.xml"/>{}</mujoco>',
        "<mujoco><option timestep='{}'/></mujoco>",
    ),
    "a mesh": (
        "meshes/m.stl",
        '<mujoco><compiler meshdir="meshes"/><asset><mesh file="m.stl"/></asset>{}</mujoco>',
        "{}",
    ),
    "a mesh without its folders": (
        "meshes/m.stl",
        '<mujoco><compiler meshdir="meshes" strippath="true"/><asset><mesh file="a/b/m.stl"/></asset>{}</mujoco>',
        "{}",
    ),
    "a height field in the folder of meshes": (
        "meshes/h.png",
        '<mujoco><compiler meshdir="meshes"/><asset><hfield name="h" file="h.png" size="1 1 1 1"/></asset>{}</mujoco>',
        "{}",
    ),
    "a side of a cube texture": (
        "up.png",
        '<mujoco><asset><texture name="t" type="cube" fileup="up.png"/></asset>{}</mujoco>',
        "{}",
    ),
}
BODY = '<worldbody><body><joint name="j"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>'


@pytest.mark.parametrize("kind", WITH_FILES)
def test_every_file_of_a_model_is_part_of_its_keys(kind: str, tmp_path: Path) -> None:
    name, model, content = WITH_FILES[kind]
    part, path = tmp_path / name, tmp_path / "model.xml"
    part.parent.mkdir(exist_ok=True)
    (tmp_path / "first.xml").write_text(INCLUDED, encoding="utf-8")
    path.write_text(model.format(BODY), encoding="utf-8")
    digests = []
    for number in ("0.001", "0.002", "0.001"):
        part.write_text(content.format(number), encoding="utf-8")
        (digest,) = keys([Task(read_mechanism, (ModelFile(path=path),))])
        digests.append(digest)
    assert digests[0] == digests[2] != digests[1]
    assert part in files_of(path)


def test_a_missing_file_that_appears_changes_the_key(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(f'<mujoco><asset><texture type="2d" file="t.png"/></asset>{BODY}</mujoco>', encoding="utf-8")
    (before,) = keys([Task(read_mechanism, (ModelFile(path=path),))])
    (tmp_path / "t.png").write_bytes(b"picture")
    assert keys([Task(read_mechanism, (ModelFile(path=path),))]) != [before]


def motion_file(path: Path, speed: float) -> Path:
    t = np.linspace(0, 1, 101)
    columns = np.stack(
        [t, 0.1 * np.sin(speed * t), 0.1 * speed * np.cos(speed * t), -0.1 * speed**2 * np.sin(speed * t)]
    )
    np.savetxt(path, columns.T, delimiter=",", header="t,crank.q,crank.qd,crank.qdd", comments="", fmt="%.17g")
    return path


def test_the_content_of_a_recorded_motion_is_part_of_a_case(tmp_path: Path) -> None:
    (before,), (same,), (after,) = (
        keys(
            [Task(tuned_cost, (case_of(FOUR_BAR / "four_bar.xml", motion=motion_file(tmp_path / "m.csv", speed)), 1.0))]
        )
        for speed in (3.0, 3.0, 3.1)
    )
    assert before == same != after


@pytest.mark.parametrize("suffix", [".csv", ".toml"])
def test_a_log_and_its_description_are_part_of_the_key(suffix: str, tmp_path: Path) -> None:
    for file in (FOUR_BAR / "logs").glob("clean.*"):
        shutil.copy(file, tmp_path)
    edited = (tmp_path / "clean").with_suffix(suffix)
    study = judge_of_files(case_of(FOUR_BAR / "four_bar.xml"), [tmp_path / "clean.csv"], asked=LogOptions())
    before = keys_of(study, tmp_path)
    edited.write_text(edited.read_text(encoding="utf-8") + "\n" if edited.exists() else "", encoding="utf-8")
    assert not before & keys_of(study, tmp_path)
    edited.unlink()
    assert (before == keys_of(study, tmp_path)) == (suffix == ".toml")  # without description, as at the beginning


def test_a_file_that_changes_during_a_command_is_refused(tmp_path: Path) -> None:
    """Its results would be kept under the content of the first reading."""
    case = case_of(with_servo(tmp_path, 200), motion=motion_file(tmp_path / "m.csv", 3.0))
    with_servo(tmp_path, 100)
    with pytest.raises(MechanismError, match=r"four_bar\.xml: must not change during a command"):
        read_mechanism(replace(case.mechanism.model, actuated=("crank",)))
    motion_file(tmp_path / "m.csv", 3.1)
    assert "m.csv: must not change during a command" in str(prescribe_or_error(case, None))


@pytest.mark.extended("test_a_servo_gain_that_only_an_engine_reads_is_part_of_every_key")
def test_an_edited_servo_is_tuned_again_in_the_same_folder(tmp_path: Path) -> None:
    """With kp = 200 the servo rings until the end, with 1e-6 it settles."""
    errors = []
    for gain in (200, 1e-6, 200):
        case = case_of(with_servo(tmp_path, gain))
        with in_this_process(), journal_in(tmp_path / "out") as journal, worker_pool(Workers(1), journal) as pool:
            given = AskedTuning(engine="mujoco", pool=pool).given(case.mechanism)
            runs = TuningRuns(case=case, engine="mujoco", given=given, pool=pool, include_start=False)
            (run,) = runs.on("as it is", given_purposes(case, "mujoco", pool)[0][:1], {})
            errors.append((run.bound(start=False), pool.log.known))
    assert [error for error, _ in errors] == [np.inf, pytest.approx(0, abs=0.01), np.inf]
    assert [known for _, known in errors[:2]] == [0, 0]
    assert errors[2][1] > 0
