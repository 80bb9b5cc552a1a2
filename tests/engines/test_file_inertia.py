"""Inertias of model files by the parsers of engines: equal on sound files, and a fault of the first reader is found."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.robots.errors import EngineError
from loopcheck.robots.formats.mjcf import describe
from loopcheck.robots.second_reading.differences import Comparison, compare_inertia, second_reading
from tests.conftest import MODELS, want_engine
from tests.robots.test_second_reading import FILES, of, seed

TURNED = MODELS / "welded_four_bar.xml"
READ = [("drake", "r.urdf"), ("drake", "r.sdf"), ("drake", "r.xml"), ("pinocchio", "r.urdf")]


def third(engine: str, name: str, folder: Path) -> Comparison:
    path = folder / name
    text = FILES[name].replace('<transmission name="t">', '<transmission name="t"><type>T</type>')
    text = re.sub('<joint name="loop".*?</joint>', "", text)  # Drake refuses a loop of joints
    path.write_text(TURNED.read_text(encoding="utf-8") if name == "r.xml" else text, encoding="utf-8")
    return compare_inertia(describe(path).mechanism, engines.file_inertia(engine, path))


@pytest.mark.parametrize(("engine", "name"), READ)
def test_the_parser_of_an_engine_finds_a_tensor_that_is_not_turned(
    engine: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    want_engine(engine, request.config)
    sound = third(engine, name, tmp_path)
    assert sound.differences == ()
    assert sound.compared > 30
    body = "foot" if name == "r.xml" else "upper"
    seed(monkeypatch, "_body", of(body, inertia=lambda tensor: np.diag(np.linalg.eigvalsh(tensor))))
    (found,) = third(engine, name, tmp_path).differences
    assert (found.element, found.quantity[:8]) == (f"body '{body}'", "inertia ")


@pytest.mark.parametrize(("engine", "name"), READ)
def test_the_mass_of_a_fixed_link_counts(
    engine: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    want_engine(engine, request.config)
    body = "foot" if name == "r.xml" else "tool"
    seed(monkeypatch, "_body", lambda right: replace(right, mass=right.mass * 1.01) if right.name == body else right)
    found = third(engine, name, tmp_path).differences
    assert "mass" in {difference.quantity for difference in found}


def test_settings_that_a_parser_does_not_read_are_refused(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    want_engine("drake", request.config)
    path = tmp_path / "total.xml"
    text = TURNED.read_text(encoding="utf-8").replace("<worldbody>", '<compiler settotalmass="9"/><worldbody>')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EngineError, match=r"settings of inertias"):
        engines.file_inertia("drake", path)


def test_inertia_of_geometry_is_not_compared(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Shapes that Drake does not read would be a false alarm."""
    want_engine("drake", request.config)
    path = tmp_path / "shapes.xml"
    text = TURNED.read_text(encoding="utf-8")
    first = text.index("<inertial")
    path.write_text(f'{text[:first]}<geom size=".1"/>{text[text.index("/>", first) + 2 :]}', encoding="utf-8")
    links = [replace(link, mass=7.0) if link.name == "crank" else link for link in engines.file_inertia("drake", path)]
    comparison = compare_inertia(describe(path).mechanism, links)
    assert comparison.differences == ()
    assert comparison.compared == 3 * 13


def test_a_part_with_a_link_that_a_parser_lacks_is_not_compared(tmp_path: Path) -> None:
    """Names may differ in a parser; the mass of the others would be a false alarm."""
    path = tmp_path / "r.urdf"
    path.write_text(FILES["r.urdf"], encoding="utf-8")
    mechanism = describe(path).mechanism
    links = second_reading(path).links
    assert compare_inertia(mechanism, links).compared == 3 * 13
    comparison = compare_inertia(mechanism, [link for link in links if link.name != "tool"])
    assert (comparison.differences, comparison.compared) == ((), 2 * 13)


def test_an_engine_without_a_parser_reads_nothing() -> None:
    assert engines.file_inertia("mujoco", TURNED) == ()
