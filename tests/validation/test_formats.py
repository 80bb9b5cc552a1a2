"""Every command takes a URDF with a loop file, an SDF and a USD, or states in a line why not."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck.robots.logs.log_files import write_log
from loopcheck.validation.common.targets import case_of
from tests.cpu_time import extended_but
from tests.logs import exact_log
from tests.sdf_models import write_sdf
from tests.urdf_models import DIALECTS, write_urdf
from tests.usd_models import write_usd
from tests.validation.conftest import Command

COMMANDS = {
    "gate": ("gate", "MODEL"),
    "list": ("list", "MODEL"),
    "check": ("check", "MODEL", "--source", "mujoco/kkt", "--jobs", "1", "--out", "OUT"),
    "judge": ("judge", "MODEL", "LOG", "--jobs", "1", "--out", "OUT"),
    "serial": ("serial", "MODEL", "--make", "--samples", "4", "--jobs", "1", "--out", "OUT"),
    "sweep": ("study", "sweep", "MODEL", "--cases", "2", "--source", "mujoco/kkt", "--jobs", "1", "--out", "OUT"),
}
FORMATS = ("URDF", "SDF", "USD")
RUNS = [
    *((command, name) for command in ("gate", "list") for name in FORMATS),
    *extended_but(
        [],
        [("check", "SDF"), ("judge", "USD"), ("serial", "USD"), ("sweep", "URDF")],
        "test_commands_take_every_format",
    ),
]
"""Commands with a format; slow commands have fewer formats, as all commands read a model by the same function."""


def model_of(name: str, folder: Path) -> Path:
    """The four-bar of `planar_four_bar` in a format."""
    if name == "USD":
        pytest.importorskip("pxr")
        return write_usd(folder)
    return write_urdf(folder, *DIALECTS["Gepetto"]) if name == "URDF" else write_sdf(folder)


@pytest.fixture(params=FORMATS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return model_of(request.param, tmp_path)


def status_of(command: str, model: Path, loopcheck: Command) -> tuple[int, str]:
    """Exit status and output of a command on a model."""
    places = {"MODEL": model, "LOG": model.parent / "log.csv", "OUT": model.parent / "out"}
    if command == "judge":
        write_log(exact_log(case_of(model), np.linspace(0, 0.3, 61)), places["LOG"])
    status, *texts = loopcheck(*(places.get(argument, argument) for argument in COMMANDS[command]))
    return status, " ".join(texts)


@pytest.mark.usefixtures("tables_only")
@pytest.mark.parametrize(("command", "name"), RUNS)
def test_commands_take_every_format(command: str, name: str, loopcheck: Command, tmp_path: Path) -> None:
    status, output = status_of(command, model_of(name, tmp_path), loopcheck)
    assert status == 0, output


@pytest.mark.extended("test_commands_take_every_format")
@pytest.mark.usefixtures("tables_only")
def test_a_sweep_states_why_a_redundant_loop_has_no_motion(loopcheck: Command, tmp_path: Path) -> None:
    """A revolute loop of an SDF holds two points of its axis, which other lengths open."""
    status, output = status_of("sweep", model_of("SDF", tmp_path), loopcheck)
    assert status == 3
    assert "2 cases have no feasible motion" in output
    assert "the loops cannot be closed" in output


@pytest.mark.extended("test_commands_take_every_format")
def test_a_new_folder_of_every_format_is_a_target(model: Path, loopcheck: Command, tmp_path: Path) -> None:
    status, _, err = loopcheck("new", "leg", model, "--out", tmp_path / "robots")
    assert status == 0, err
    assert [actuator.name for actuator in case_of(tmp_path / "robots" / "leg").mechanism.actuators]
    assert loopcheck("gate", tmp_path / "robots" / "leg")[0] == 0


def test_settings_of_other_formats_are_refused(model: Path, loopcheck: Command) -> None:
    before = model.read_bytes()
    status, _, err = loopcheck("tune", model, "--accuracy", "5%")
    assert status == 2
    assert (
        f"settings of a simulation must be written into an MJCF, got a{'n' if model.suffix == '.sdf' else ''} " in err
    )
    assert f"Run: loopcheck convert {model.name} {model.stem}.xml" in err
    assert model.read_bytes() == before
