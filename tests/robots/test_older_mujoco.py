"""Models as an older MuJoCo compiles them: unknown elements are read as absent."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck.robots import mjcf
from loopcheck.robots.catalogue import names
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.model_file import ModelFile
from loopcheck.robots.mujoco_compat import ABSENT, CompatibleModel
from loopcheck.robots.robot import load

PLAIN = [name for name in names() if name != "n_four_bar_40"]
"""Robots without elements that an older MuJoCo lacks."""


class Older:
    """A compiled model without the fields that some version lacks."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        if name in ABSENT:
            raise AttributeError(name)
        return getattr(self._model, name)


def _model(name: str) -> ModelFile:
    robot = load(name)
    return ModelFile(path=robot.folder / robot.mjcf)


@pytest.mark.parametrize("name", PLAIN)
def test_a_robot_is_read_alike_without_the_newer_fields(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mjcf.read_mechanism(_model(name))
    compile_now = mjcf._compile
    monkeypatch.setattr(mjcf, "_compile", lambda *given: (Older(compile_now(*given)[0]), ()))
    assert _in_words(mjcf.read_mechanism(_model(name))) == _in_words(whole)


@pytest.mark.parametrize("name", PLAIN)
def test_what_stands_in_for_a_field_is_what_the_installed_mujoco_has_there(name: str) -> None:
    model = mjcf.compile_model(_model(name))
    for field, stand_in in ABSENT.items():
        if hasattr(model, field):
            there = getattr(model, field)
            column = stand_in(model).reshape(-1, *[1] * (there.ndim - 1))
            np.testing.assert_array_equal(there, np.broadcast_to(column, there.shape), field)


def test_a_field_that_is_there_is_read_and_an_unknown_one_is_not(tmp_path: Path) -> None:
    model = mjcf.compile_model(_model("3prr"))
    assert CompatibleModel(model).nv == model.nv
    with pytest.raises(AttributeError):
        _ = CompatibleModel(model).no_such_field


def _in_words(mechanism: Mechanism) -> str:
    with np.printoptions(floatmode="unique", threshold=100_000):
        return repr(mechanism)
