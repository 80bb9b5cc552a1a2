"""Robots that move out of a plane are drawn; without a renderer the projection stays and no data is lost."""

import base64
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import EngineError, OutputError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.comparison.results import Results, frames_table, read, write
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import Workers, worker_pool
from loopcheck.validation.report import schematic
from loopcheck.validation.report.geometry import is_planar, paths, point_rows
from loopcheck.validation.studies.check import movies as drawing
from loopcheck.validation.studies.check.movies import movies
from loopcheck.validation.studies.check.study import run
from tests.conftest import MODELS, CaseMaker
from tests.validation.conftest import exit_status, in_this_process, write_report

CHOSEN: dict[str, Any] = {"source_names": ("mujoco/kkt",), "dt": 0.1, "workers": Workers(jobs=1)}
DRAWN = "spinning_rod, mode home, in motion; rendered by MuJoCo."


@pytest.fixture(scope="module")
def spatial(model_case: CaseMaker) -> Case:
    return model_case(MODELS / "spinning_rod.xml", configuration="vertical", amplitude=0.1)


@pytest.fixture(scope="module")
def results(spatial: Case) -> Results:
    """Of a robot that moves out of every plane."""
    with in_this_process():
        results = run([spatial], **CHOSEN)
    if why := results.run["not_drawn"]:
        pytest.skip(f"no renderer on this machine: {why}")
    return results


def page(results: Results, folder: Path) -> str:
    write_report(results, folder)
    return (folder / "report.html").read_text(encoding="utf-8")


def _picture(image: str) -> np.ndarray:
    """Colours of a picture in base64."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(image))), float)


@pytest.mark.slow
def test_the_movie_follows_the_motion(results: Results, spatial: Case) -> None:
    frames = results.frames
    assert set(zip(frames["robot"], frames["mode"], strict=True)) == {("spinning_rod", "home")}
    assert frames["t"].tolist() == results.motion["t"].unique().tolist()
    first, last = (_picture(frames["image"].iloc[k]) for k in (0, 1))
    assert np.abs(first - last).max() > 100
    assert frames["image"].map(len).sum() < 533_000


@pytest.mark.slow
def test_the_report_is_rebuilt_from_the_folder(results: Results, tmp_path: Path) -> None:
    write(results, tmp_path)
    first = page(results, tmp_path)
    assert DRAWN in first
    assert "Animation (in report.html): spinning_rod" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert page(read(tmp_path), tmp_path) == first
    (tmp_path / "frames.csv").unlink()  # as in a folder of an older version
    assert DRAWN not in page(read(tmp_path), tmp_path)


def test_pictures_of_an_earlier_run_do_not_stay(results: Results, tmp_path: Path) -> None:
    write(results, tmp_path)
    write(replace(results, frames=frames_table([])), tmp_path)
    assert not (tmp_path / "frames.csv").exists()
    (tmp_path / "frames.csv").write_bytes(b"no pictures")
    with pytest.raises(OutputError, match=r"frames\.csv: must be a table"):
        read(tmp_path)


def test_without_a_renderer_the_reason_is_told(spatial: Case, prr: Case, prr_motion: Motion) -> None:
    def refuses(*_: Any) -> None:
        raise EngineError("no <graphics> here")

    motions = {spatial.key: prescribe(spatial), prr.key: prr_motion}
    with in_this_process() as patch, worker_pool(Workers(jobs=1)) as pool:
        patch.setattr(drawing, "render", refuses)
        found = movies([spatial, prr], motions, pool)
    assert not found.frames
    assert found.missing == {"spinning_rod, home": "no <graphics> here"}


@pytest.mark.slow
def test_a_renderer_that_dies_takes_nothing_along(
    spatial: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopcheck.validation.studies.check.movies.Task", lambda function, args: Task(os._exit, (3,)))
    results = run([spatial], **CHOSEN)
    assert results.frames.empty
    assert exit_status(results) == 0
    assert results.run["not_run"] == []
    assert set(results.summary["verdict"]) == {"agree", "reference"}
    write(results, tmp_path)
    assert not (tmp_path / "frames.csv").exists()
    said = (
        "spinning_rod, mode home, in motion; a projection, because rendering failed: its process died: exit status 3."
    )
    assert said in page(read(tmp_path), tmp_path)


def test_a_scene_is_planar_where_nothing_is_drawn(prr: Case, spatial: Case) -> None:
    for case, planar in ((prr, True), (spatial, False)):
        motion = prescribe(case)
        scene = schematic.scene(pd.DataFrame(list(point_rows(case.mechanism, motion, case.robot.trace))))
        assert scene is not None
        assert scene.planar is planar
        assert is_planar(np.concatenate(list(paths(case.mechanism, motion.q, case.robot.trace).values()))) is planar
