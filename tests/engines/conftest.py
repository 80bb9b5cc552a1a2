"""Fixtures of the tests of the engines."""

from pathlib import Path

import pytest

from loopcheck.robots.robot import Case
from tests.conftest import CaseMaker
from tests.engines.mechanisms import OWN, Own


@pytest.fixture
def own(tmp_path: Path, model_case: CaseMaker) -> Own:
    def make(name: str, text: str = "") -> Case:
        path = tmp_path / f"{name}.xml"
        path.write_text(text or OWN[name], encoding="utf-8")
        return model_case(path, amplitude=0.15)

    return make
