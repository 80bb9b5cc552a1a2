"""`loopcheck new`: a model becomes a robot of the catalogue, or is refused without leaving files."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.robot import load
from loopcheck.validation.check.study import run
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.execution.workers import Workers
from tests.conftest import MODELS
from tests.validation.conftest import Command, exit_status

FOUR_BAR = (MODELS / "four_bar.xml").read_text(encoding="utf-8")


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue without robots."""
    (tmp_path / "robots").mkdir()
    monkeypatch.setattr("loopcheck.robots.catalogue.CATALOGUE", tmp_path / "robots")
    return tmp_path / "robots"


@pytest.mark.extended("test_a_refused_model_leaves_nothing")
def test_a_new_robot_is_listed_run_and_tested(
    loopcheck: Command, catalogue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loopcheck("new", "mine", MODELS / "four_bar.xml", "--actuated", "rocker", "--out", catalogue)[0] == 0
    assert {path.name for path in (catalogue / "mine").iterdir()} == {"four_bar.xml", "robot.toml", "README.md"}
    assert (catalogue / "mine" / "four_bar.xml").read_text(encoding="utf-8") == FOUR_BAR
    readme = (catalogue / "mine" / "README.md").read_text(encoding="utf-8")
    assert "`rocker` [N m] on joint `rocker`" in readme
    assert "## Licence" in readme
    assert "rocker [N m]" in loopcheck("list")[1]
    cases = cases_of(("mine",), configurations=("vertical",))
    assert exit_status(run(cases, source_names=("mujoco/kkt",), dt=0.1, workers=Workers(jobs=1))) == 0
    collect = (
        "import sys, pathlib, pytest; from loopcheck.robots import catalogue; "
        "catalogue.CATALOGUE = pathlib.Path(sys.argv[1]); "
        "late = 'ignore::pytest.PytestAssertRewriteWarning'; "  # the gate has a plugin
        "sys.exit(pytest.main(['--collect-only', '-q', '-W', late, 'tests/test_suite.py']))"
    )
    house = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", collect, str(catalogue)]
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)  # those of this run
    found = subprocess.run(command, cwd=house, capture_output=True, text=True, check=True).stdout
    assert "test_agrees_with_the_reference[mine-default-home-vertical-mujoco/forward]" in found


@pytest.mark.extended("test_a_refused_model_leaves_nothing")
def test_parts_are_copied_and_meshes_only_where_they_matter(
    loopcheck: Command, tmp_path: Path, catalogue: Path
) -> None:
    """The same robot in two ways: its rocker's inertia given, or taken from a mesh."""
    source = tmp_path / "source"
    (source / "parts").mkdir(parents=True)
    (source / "meshes").mkdir()
    asset = '<mujoco><asset><mesh name="rod" file="rod.obj"/></asset></mujoco>'
    (source / "parts" / "assets.xml").write_text(asset, encoding="utf-8")
    (source / "meshes" / "rod.obj").write_text(
        "v 0 0 0\nv 3 0 0\nv 0 2 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n", encoding="utf-8"
    )
    head = '<compiler meshdir="../meshes"/><include file="parts/assets.xml"/>'
    given = FOUR_BAR.replace("<worldbody>", f"{head}<worldbody>").replace(
        '<site name="tip"', '<geom type="mesh" mesh="rod"/>\n<site name="tip"'
    )
    before, rocker = given.split('<joint name="rocker"')
    line = next(line for line in rocker.splitlines() if "<inertial" in line)
    taken = before + '<joint name="rocker"' + rocker.replace(line, "")
    (source / "given.xml").write_text(given.replace("../meshes", "meshes"), encoding="utf-8")
    (source / "taken.xml").write_text(taken.replace("../meshes", "meshes"), encoding="utf-8")
    for name in ("given", "taken"):
        status, _, err = loopcheck("new", name, source / f"{name}.xml", "--out", catalogue)
        assert status == 0, err
        copied = {str(path.relative_to(catalogue / name)) for path in (catalogue / name).rglob("*.*")}
        meshes = {"meshes/rod.obj"} if name == "taken" else set()
        assert copied == {f"{name}.xml", "parts/assets.xml", "robot.toml", "README.md"} | meshes
        original = read_mechanism(ModelFile(path=source / f"{name}.xml"))
        for body, other in zip(original.bodies, load(name).mechanism().bodies, strict=True):
            assert body.mass == other.mass
            np.testing.assert_array_equal(body.inertia, other.inertia)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("3prr", ("", ""), "name must be new, got '3prr'"),
        ("../mine", ("", ""), "name must consist of letters, digits and underscores, got '../mine'"),
        ("mine", ("", ""), "model.xml: the model file must exist"),
        ("mine", ("<worldbody>", "<worldbdy>"), "model.xml: MuJoCo's compiler rejected the file"),
        ("mine", ('<motor name="motor" joint="crank" gear="-3"/>', ""), "model.xml: no actuators"),
        ("mine", ('pos="0.1 0.3 0"', 'pos="9 9 9"'), "the loops cannot be closed"),
        ("mine", ("<worldbody>", '<include file="../part.xml"/><worldbody>'), "part.xml: must be in the folder of the"),
    ],
)
def test_a_refused_model_leaves_nothing(
    loopcheck: Command, tmp_path: Path, catalogue: Path, name: str, change: tuple[str, str], message: str
) -> None:
    (catalogue / "3prr").mkdir()
    (tmp_path / "source").mkdir()
    (tmp_path / "part.xml").write_text("<mujoco><option/></mujoco>", encoding="utf-8")
    if "must exist" not in message:
        (tmp_path / "source" / "model.xml").write_text(FOUR_BAR.replace(*change), encoding="utf-8")
    status, _, err = loopcheck("new", name, tmp_path / "source" / "model.xml", "--out", catalogue)
    assert (status, err.count("\n")) == (2, 1)
    assert message in err
    assert ".new-" not in err
    assert [path.name for path in catalogue.iterdir()] == ["3prr"]


@pytest.mark.extended("test_a_refused_model_leaves_nothing")
@pytest.mark.parametrize("model", [MODELS / "four_bar.xml", CATALOGUE / "four_bar/four_bar.xml"], ids=["bar", "paper"])
def test_a_file_and_its_folder_have_the_same_configurations(model: Path, loopcheck: Command, tmp_path: Path) -> None:
    """Horizontal and vertical say how gravity lies to the motion, whatever names the robot."""
    assert loopcheck("new", "mine", model, "--out", tmp_path)[0] == 0
    of_file, of_folder = (
        {case.configuration: case.mechanism.gravity for case in cases_of([target])}
        for target in (model, tmp_path / "mine")
    )
    assert len(of_file) == 2
    assert list(of_file) == list(of_folder)
    for name, gravity in of_file.items():
        np.testing.assert_allclose(of_folder[name], gravity, atol=1e-12)
