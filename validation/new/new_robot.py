"""Adding a robot to a catalogue: its unchanged MJCF, a robot.toml, and a README with gaps to fill in."""

import json
import os
import re
import tempfile
from pathlib import Path

import jinja2

from loopcheck.analytic.motion.configurations import with_configurations
from loopcheck.analytic.motion.laws import AUTOMATIC
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import MechanismError, OutputError
from loopcheck.robots.formats.model_file import files_of
from loopcheck.robots.formats.probe import want_readable
from loopcheck.robots.robot import DEFAULT, MotionSpec, Robot, configurations, make_case, modes
from loopcheck.validation.common.model_copies import places_of_copies, write_copies
from loopcheck.validation.execution.forkserver import quick_context

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
SOURCE = "fill in: source of every number, for example a paper, a drawing or a repository"


def add_robot(name: str, path: Path, *, catalogue: Path, actuated: tuple[str, ...] = ()) -> Path:
    """Add a robot to a catalogue, and return its folder. A refused model leaves no files.

    Args:
        name: Name of the robot and of its folder.
        path: The MJCF; it is copied with its included parts, and with its meshes only if inertias come from them.
        catalogue: Folder of the robots.
        actuated: Joints that get a motor each, instead of the file's actuators.

    Raises:
        MechanismError: If the name is taken or invalid, or the model cannot be read or moved in one of its modes.
        OutputError: If the catalogue cannot be written.
    """
    folder = catalogue / name
    if not NAME.fullmatch(name):
        raise MechanismError(f"name must consist of letters, digits and underscores, got '{name}'")
    if folder.exists():
        raise MechanismError(f"name must be new, got '{name}': {folder} exists already")
    if "site-packages" in catalogue.parts or (catalogue.exists() and not os.access(catalogue, os.W_OK)):
        raise OutputError(f"{catalogue}: the installed catalogue must not change; choose another folder with --out DIR")
    want_readable(path, actuated, context=quick_context())
    robot = Robot(
        name=name,
        folder=path.parent,
        title=f"{name}, fill in",
        mjcf=path.name,
        motion=MotionSpec(law=AUTOMATIC),
        source=SOURCE,
        actuated=actuated,
    )
    _want_movable(robot)
    try:
        catalogue.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=catalogue, prefix=".new-") as unfinished:
            draft = Path(unfinished) / name
            _fill(draft, robot)
            draft.rename(folder)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from error
    return folder


def _want_movable(robot: Robot) -> None:
    """Raise if there is no motion for a mode: a robot that cannot move would stop a run of all robots."""
    robot = with_configurations(robot)
    mechanism = robot.mechanism()
    for mode in modes(mechanism):
        configuration = next(iter(configurations(robot, mechanism)))
        prescribe(make_case(robot, variant=DEFAULT, mode=mode, configuration=configuration))


def _fill(draft: Path, robot: Robot) -> None:
    """Write the folder of a robot, and see that the copy can be read."""
    path = robot.folder / robot.mjcf
    files = [file for file in files_of(path) if file.is_file()]
    parts = [file for file in files if file.suffix in (".xml", ".yaml") or file == path]
    copied = robot.model_copy(update={"folder": draft})
    write_copies(places_of_copies(parts, path.parent, draft), {})
    try:
        mechanism = copied.mechanism()
    except MechanismError:  # inertias come from the meshes, or a part is not called .xml
        rest = [file for file in files if file not in parts]
        write_copies(places_of_copies(rest, path.parent, draft), {})
        mechanism = copied.mechanism()
    _write_toml(copied)
    template = (Path(__file__).parents[1] / "report" / "templates" / "robot.md").read_text(encoding="utf-8")
    readme = jinja2.Template(template, undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    text = readme.render(robot=copied, mechanism=mechanism, modes=modes(mechanism))
    (draft / "README.md").write_text(text, encoding="utf-8")


def _write_toml(robot: Robot) -> None:
    values = {"title": robot.title, "mjcf": robot.mjcf, "source": robot.source, "motion": robot.motion.law}
    lines = [f"{key} = {_quoted(value)}" for key, value in values.items()]
    if robot.actuated:
        lines.append(f"actuated = [{', '.join(map(_quoted, robot.actuated))}]")
    lines.append("assumptions = [] # fill in: choices for numbers that the source does not state, a sentence each")
    (robot.folder / "robot.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _quoted(value: str) -> str:
    """A basic string of TOML: a string of JSON, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
