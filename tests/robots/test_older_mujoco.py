"""Models as an older MuJoCo compiles them: unknown elements are read as absent."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck.robots.catalogue import names
from loopcheck.robots.formats import mjcf, spec_elements
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.formats.mujoco_compat import ABSENT, CompatibleModel
from loopcheck.robots.mechanism import Mechanism
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


@pytest.mark.parametrize("finds_moments", [spec_elements.FINDS_MOMENTS, False])
def test_full_tensors_are_read_to_round_off(
    finds_moments: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before 3.14, MuJoCo itself finds principal moments to 6e-7 of the largest."""
    monkeypatch.setattr(spec_elements, "FINDS_MOMENTS", finds_moments)
    rng, tensors, bodies = np.random.default_rng(0), [], ""
    for k in range(40):
        R = Rotation.random(random_state=k).as_matrix()
        tensors.append(R @ np.diag(rng.uniform(0.5, 0.9, 3)) @ R.T)
        entries = " ".join(repr(float(tensors[-1][pair])) for pair in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
        bodies += (
            f'<body name="b{k}"><joint name="j{k}"/><inertial pos="1 2 3" mass="4" fullinertia="{entries}"/></body>'
        )
    path = tmp_path / "model.xml"
    path.write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>", encoding="utf-8")
    read = mjcf.read_mechanism(ModelFile(path=path)).bodies
    assert np.abs(np.array([body.inertia for body in read]) - tensors).max() < 1e-14
    assert {(body.mass, *body.center) for body in read} == {(4.0, 1.0, 2.0, 3.0)}


def test_springs_of_an_older_joint_are_single_numbers() -> None:
    """Before 3.7; later ones have the coefficients of a polynomial."""
    older, later = SimpleNamespace(damping=0.0, stiffness=0.0), SimpleNamespace(damping=[0.0] * 3, stiffness=[0.0] * 3)
    for joint in (older, later):
        spec_elements.set_passive(joint, 1.0, 2.0)
    assert (older.damping, older.stiffness) == (1.0, 2.0)
    assert (later.damping, later.stiffness) == ([1.0, 0.0, 0.0], [2.0, 0.0, 0.0])


def _in_words(mechanism: Mechanism) -> str:
    with np.printoptions(floatmode="unique", threshold=100_000):
        return repr(mechanism)
