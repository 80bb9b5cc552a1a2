"""Properties of Simbody: angles of its frames, its tolerance of open loops, substitute rotors, suppressed output."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck.analytic.motion.prescribe import prescribe
from tests.conftest import MODELS
from tests.engines.mechanisms import Own, want_right


@pytest.fixture(autouse=True)
def osim() -> Any:
    return pytest.importorskip("opensim")


@pytest.mark.parametrize("second", [-np.pi / 2, -0.4, 0.0, np.pi / 2 - 1e-9, np.pi / 2])
def test_angles_of_a_frame_are_right_where_they_are_singular(second: float) -> None:
    from loopcheck.engines.simbody._opensim import angles

    R = Rotation.from_euler("XYZ", [0.3, second, -1.1]).as_matrix()
    np.testing.assert_allclose(Rotation.from_euler("XYZ", angles(R)).as_matrix(), R, atol=4e-16)


@pytest.mark.extended("tests/engines/test_oracle.py::test_a_route_agrees")
def test_a_driven_tendon_needs_no_inertia_of_its_own(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rotor that makes it a coordinate is taken off its effort, whatever its inertia."""
    from loopcheck.engines.simbody import _model

    case = own("hand", (MODELS / "tendon_hand.xml").read_text(encoding="utf-8"))
    motion = prescribe(case)
    for inertia in (0.01, 10.0):
        monkeypatch.setattr(_model, "STAND_IN", inertia)
        want_right("simbody/forward", case, motion)
