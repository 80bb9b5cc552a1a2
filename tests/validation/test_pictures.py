"""Pictures of a page: by default a few, all of them on request, and a drawing of the robot that moves."""

import html
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.views import worst_of_configurations
from loopcheck.validation.cli import main
from loopcheck.validation.common.verdicts import CaseVerdict
from loopcheck.validation.execution.invocation import called
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.report import charts, schematic
from loopcheck.validation.report.blocks import OnRequest, Section
from loopcheck.validation.report.geometry import point_rows
from loopcheck.validation.report.pages import selected
from tests.conftest import MODELS, CaseMaker
from tests.validation.conftest import in_this_process

CHECK = ("check", str(MODELS / "four_bar.xml"), "--source", "mujoco/kkt", "--source", "mujoco/as_is", "--dt", "0.1")
ANSWER = [r"error of each actuator in mujoco/as_is: motor \[N m\]", "largest error of each source: analytic/noc .*"]
GIVEN, TURNED = (rf"four_bar, {name} \(gravity .*\), mode home" for name in ("given", "turned"))
BOTH, SIMULATED = "analytic/noc, mujoco/kkt, mujoco/as_is", "analytic/noc, mujoco/as_is"
ROBOT = [
    "four_bar, mode home: first and last pose, in the plane of X and Y",
    "four_bar, mode home: position, velocity and acceleration of crank over time",
    "four_bar, mode home-random: position, velocity and acceleration of crank over time",
]
EFFORTS = ": effort of motor over time from "
ERRORS = " over time, relative to the effort scale"
LINE = re.compile("More figures: (.*?)</p>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("four bar")


@pytest.fixture(scope="module")
def pages(folder: Path) -> Mapping[str, str]:
    """The page after each of several commands in the same folder, by their last words."""
    written = {}
    with in_this_process() as patch:
        for command in ("check", "check --all-figures", "report --all-figures", "report"):
            first, *more = command.split()
            arguments = [*CHECK, "--out", str(folder), "--jobs", "1"] if first == "check" else ["report", str(folder)]
            patch.setattr(sys, "argv", ["loopcheck", *arguments, *more])
            with pytest.raises(SystemExit) as end:
                main()
            assert end.value.code == 0
            written[command] = (folder / "report.html").read_text(encoding="utf-8")
            # a table of pictures, as an earlier version has written it
            (folder / "frames.csv").write_text("robot,mode,t,image\nfour_bar,home,0.0,UklGRg==\n", encoding="utf-8")
    return written


def pictures(page: str) -> list[str]:
    """Alternative texts of the figures, in their order."""
    return [html.unescape(alt) for alt in re.findall(r'<img [^>]*alt="([^"]*)"', page)]


def moving(page: str) -> list[str]:
    """Labels of the drawings that move."""
    return re.findall(r'<svg [^>]*aria-label="([^"]*)"', page)


def want_pictures(page: str, expected: Sequence[str]) -> None:
    found = pictures(page)
    assert len(found) == len(expected)
    for text, pattern in zip(found, expected, strict=True):
        assert re.fullmatch(pattern, text), text


@pytest.mark.parametrize("command", ["check", "report"])
def test_a_page_has_few_pictures(pages: Mapping[str, str], folder: Path, command: str) -> None:
    """Answer, sources, the robot in motion, and the efforts of the worst case of each configuration."""
    page = pages[command]
    want_pictures(page, [*ANSWER, GIVEN + EFFORTS + BOTH, TURNED + EFFORTS + BOTH])
    assert moving(page) == ["four_bar, mode home, in motion, in the plane of X and Y"]
    assert page.count('class="chart"') == 2
    lines = {html.unescape(line) for line in LINE.findall(page)}
    assert {tuple(shlex.split(line)) for line in lines} == {(*called(), "report", str(folder), "--all-figures")}


@pytest.mark.parametrize("command", ["check --all-figures", "report --all-figures"])
def test_all_pictures_are_drawn_on_request(pages: Mapping[str, str], command: str) -> None:
    page = pages[command]
    efforts = [
        case + text
        for case in (GIVEN, TURNED)
        for text in (
            EFFORTS + BOTH,
            ": error of mujoco/kkt, mujoco/as_is" + ERRORS,
            ", random motion" + EFFORTS + SIMULATED,
            ", random motion: error of mujoco/as_is" + ERRORS,
        )
    ]
    want_pictures(page, [*ANSWER, *ROBOT, *efforts])
    assert len(moving(page)) == 1
    assert page.count('class="chart"') == 8
    assert not LINE.findall(page)


def test_a_report_is_the_page_of_the_check(pages: Mapping[str, str]) -> None:
    assert pages["report --all-figures"] == pages["check --all-figures"]


def test_every_case_keeps_its_table(pages: Mapping[str, str]) -> None:
    for page in pages.values():
        assert page.count("<summary>Errors of each actuator") == 4
        opened = re.findall(r"<details open>\s*<summary>((?:given|turned)[^<]*)", page)
        assert [title.split(", ")[-1].strip() for title in opened] == ["mode home", "mode home"]  # no random motion


def finding(verdict: str, error: float = np.nan, tolerance: float = np.nan) -> CaseVerdict:
    return CaseVerdict(verdict, error, tolerance, "")


def worst(**cases: Sequence[CaseVerdict]) -> set[str]:
    """Modes of the worst cases of a robot in one configuration."""
    findings = {
        ("bar", "default", mode, "vertical"): {f"engine/{k}": each for k, each in enumerate(of_mode)}
        for mode, of_mode in cases.items()
    }
    return {case[2] for case in worst_of_configurations(findings)}


def test_the_gravest_verdict_is_the_worst() -> None:
    agree, lost = finding("agree", 0.9, 1.0), finding("not run")
    assert worst(a=[agree], b=[lost, finding("agree", 0.1, 1.0)]) == {"b"}
    assert worst(a=[lost], b=[finding("disagree", 1.1, 1.0)]) == {"b"}
    assert worst(a=[finding("informational", 9.0)], b=[agree]) == {"b"}


def test_among_equal_verdicts_the_largest_error_over_its_limit_is_the_worst() -> None:
    assert worst(a=[finding("agree", 0.5, 1.0)], b=[finding("agree", 2e-9, 3e-9)]) == {"b"}
    both = [finding("agree", 0.2, 1.0), finding("agree", 0.7, 1.0), finding("agree")]
    assert worst(a=[finding("agree", 0.5, 1.0)], b=both) == {"b"}
    assert worst(a=[finding("informational", 0.2)], b=[finding("informational", 0.3)]) == {"b"}


def test_a_source_that_lacks_an_element_is_not_the_worst() -> None:
    lacking = finding("not supported")
    assert worst(a=[lacking, finding("agree", 0.2, 1.0)], b=[finding("agree", 0.5, 1.0)]) == {"b"}
    assert worst(a=[lacking, finding("informational", 0.2)], b=[lacking, finding("agree", 0.1, 1.0)]) == {"b"}
    assert worst(a=[lacking]) == {"a"}


def test_each_robot_has_a_worst_case_in_each_configuration() -> None:
    cases = {
        (robot, variant, "up", configuration): {"engine/a": finding("agree", error, 1.0)}
        for robot in ("one", "two")
        for configuration in ("vertical", "horizontal")
        for variant, error in (("default", 0.1), ("heavy", 0.2))
    }
    assert worst_of_configurations(cases) == {case for case in cases if case[1] == "heavy"}


def test_a_section_names_the_command_that_draws_its_figures() -> None:
    now, later = Task(list, (["now"],)), Task(list, (["later"],))
    inner = Section(title="in", anchor="in", blocks=["text", OnRequest(later)])
    outer = Section(title="out", anchor="out", blocks=[now, inner])
    plain = Section(title="plain", anchor="plain", blocks=[now])
    asked, other = selected([outer, plain], "loopcheck report x")
    assert asked.blocks[:2] == ["More figures: loopcheck report x", now]
    assert asked.blocks[2] == replace(inner, blocks=["text"])
    assert other == plain
    everything, other = selected([outer, plain], "")
    assert everything.blocks == [now, replace(inner, blocks=["text", later])]
    assert other == plain


@pytest.fixture(scope="module")
def drawn(prr: Case, prr_motion: Motion) -> tuple[ElementTree.Element, Mapping[str, Any], pd.DataFrame]:
    """The moving 3-PRR: its drawing, the places of its shapes, and the points that it is made from."""
    points = pd.DataFrame(list(point_rows(prr.mechanism, prr_motion, prr.robot.trace)))
    points = points[points["t"].isin(points["t"].unique()[::10])]  # else the first poses are equal to the pixel
    scene = schematic.scene(points)
    assert scene is not None
    found = charts.movie(scene, 'a "moving" <robot>')
    assert found is not None
    return ElementTree.fromstring(found[0]), found[1], points


def test_the_drawing_shows_the_first_pose(drawn: Any) -> None:
    svg, movie, _ = drawn
    assert svg.get("aria-label") == 'a "moving" <robot>'
    shapes = [shape for shape in svg if shape.get("class") == "moving"]
    assert [shape.get("points") for shape in shapes] == [poses[0] for poses in movie["moving"]]
    (dot,) = [shape for shape in svg if shape.get("class") == "traced"]
    assert [dot.get("cx"), dot.get("cy")] == movie["traced"][0]
    slides = [shape for shape in shapes if shape.get("stroke-dasharray")]
    assert [len(shape.get("points", "").split()) for shape in slides] == [2, 2, 2]  # one in each leg
    (platform,) = [shape for shape in shapes if shape.get("fill-opacity")]
    assert len(platform.get("points", "").split()) == 3


def test_the_drawing_moves_as_the_points_do(drawn: Any) -> None:
    """The larger side has 300 pixels, places count from the left and from above."""
    _, movie, points = drawn
    x, y = (points[axis].to_numpy() for axis in ("x", "y"))
    scale = 300 / max(np.ptp(x), np.ptp(y))
    of_trace = (points["body"] == "trace").to_numpy()
    expected = scale * np.transpose([x[of_trace] - x.min(), y.max() - y[of_trace]])
    np.testing.assert_allclose(np.array(movie["traced"], dtype=float), expected, atol=0.051)
    places = " ".join(pose for poses in movie["moving"] for pose in poses).replace(",", " ").split()
    assert max(map(float, places)) == 300


def test_a_spatial_robot_is_seen_obliquely(model_case: CaseMaker, prr: Case) -> None:
    """Heights stay upright and shortened by the cosine of the elevation of 25°."""
    case = model_case(MODELS / "spinning_rod.xml", configuration="vertical", amplitude=0.1)
    for each, words in ((case, "seen obliquely from above"), (prr, "in the plane of X and Y")):
        points = pd.DataFrame(list(point_rows(each.mechanism, prescribe(each), each.robot.trace)))
        scene = schematic.scene(points)
        assert scene is not None
        assert scene.view == words
        if each is case:
            raised = schematic.scene(points.assign(z=points["z"] + 1.0))
            assert raised is not None
            for body, places in scene.bodies.items():
                shift = raised.bodies[body] - places
                np.testing.assert_allclose(shift, np.broadcast_to([0, np.cos(np.radians(25))], shift.shape), atol=1e-12)
