"""Data between two Pythons: equal on the other side, and without names of private modules of either."""

import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.execution.remote_calls import dumps

ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2],
    np.array(3.0),
    np.empty((0, 4)),
    np.array([True, False]),
    np.array(["ab", "c"]),
    np.array([1 + 2j]),
    np.array([1.0, 2.0], dtype=">f8"),
]


def _modules(content: bytes) -> set[str]:
    """Modules that a pickle names."""
    texts = [argument for _, argument, _ in pickletools.genops(content) if isinstance(argument, str)]
    return {text for text in texts if text.split(".")[0] in ("numpy", "pathlib")}


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_an_array_is_the_same_on_the_other_side(array: np.ndarray) -> None:
    result = pickle.loads(dumps(array))
    assert (result.dtype, result.shape) == (array.dtype.newbyteorder("="), array.shape)
    np.testing.assert_array_equal(result, array)
    assert result.flags.f_contiguous or not array.flags.f_contiguous
    assert result.flags.writeable


@pytest.mark.parametrize("scalar", [np.float64(0.1), np.int64(3), np.bool_(True), np.str_("a")])
def test_a_number_is_the_same_on_the_other_side(scalar: Any) -> None:
    result = pickle.loads(dumps(scalar))
    assert (type(result), result) == (type(scalar), scalar)


def test_a_case_and_its_motion_name_what_all_versions_have(prr: Case, prr_motion: Motion) -> None:
    """A pickle of a later protocol names `numpy._core.numeric`, absent in numpy 1.26."""
    content = dumps((prr, prr_motion, [Path("a/b")], np.float64(1.0)))
    assert _modules(content) == {"numpy", "numpy._core.multiarray", "pathlib"}
    assert "numpy._core.numeric" in _modules(pickle.dumps((prr, prr_motion), protocol=5))
    case, motion, (path,), _ = pickle.loads(content)
    assert (case.key, case.mechanism.model.path, path) == (prr.key, prr.mechanism.model.path, Path("a/b"))
    assert motion.q.tobytes() == prr_motion.q.tobytes()


def test_a_path_of_python_313_is_read() -> None:
    """Whose class is in a module of its own there; protocol 0 names it in plain text."""
    assert pickle.loads(b"cpathlib._local\nPosixPath\n(Va\ntR.") == Path("a")


def test_an_error_of_ours_keeps_its_attributes() -> None:
    error = pickle.loads(dumps(NotFoundError("engine", "ode", ["mujoco"])))
    assert (str(error), error.known) == ("unknown engine: 'ode'. Known: mujoco", ("mujoco",))
