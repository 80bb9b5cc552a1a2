"""Fixtures of the tests of the engines."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.kinematics.closures import closure_jacobian
from loopcheck.analytic.kinematics.tree import Poses, Twists
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.conftest import CaseMaker
from tests.engines.mechanisms import OWN, Moving, Own


@pytest.fixture
def own(tmp_path: Path, model_case: CaseMaker) -> Own:
    def make(name: str, text: str = "") -> Case:
        path = tmp_path / f"{name}.xml"
        path.write_text(text or OWN[name], encoding="utf-8")
        return model_case(path, amplitude=0.15)

    return make


@pytest.fixture(scope="session")
def moving(tmp_path_factory: pytest.TempPathFactory, model_case: CaseMaker) -> Moving:
    folder = tmp_path_factory.mktemp("moving")

    @cache
    def make(name: str) -> tuple[Case, Motion]:
        path = folder / f"{name}.xml"
        path.write_text(OWN[name], encoding="utf-8")
        case = model_case(path, amplitude=0.15)
        return case, prescribe(case)

    return make


@pytest.fixture
def without_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate of the closure Jacobian is zero wherever the reference and the motion use it."""

    def zero(mechanism: Mechanism, at: Poses, moving: Twists, q: Array, qd: Array) -> Array:
        return np.zeros_like(closure_jacobian(mechanism, at, moving.K, q))

    for module in [module for name, module in sys.modules.items() if name.startswith("loopcheck.analytic.")]:
        if hasattr(module, "closure_jacobian_rate"):
            monkeypatch.setattr(module, "closure_jacobian_rate", zero)
