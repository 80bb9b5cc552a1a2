"""Properties of Simbody: angles of its frames, its tolerance of open loops, substitute rotors, suppressed output."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.conftest import MODELS
from tests.engines.mechanisms import OWN, Own, reference, want_right
from tests.errors import relative_error


@pytest.fixture(autouse=True)
def osim() -> Any:
    return pytest.importorskip("opensim")


@pytest.mark.parametrize("second", [-np.pi / 2, -0.4, 0.0, np.pi / 2 - 1e-9, np.pi / 2])
def test_angles_of_a_frame_are_right_where_they_are_singular(second: float) -> None:
    from loopcheck.engines.simbody._opensim import angles

    R = Rotation.from_euler("XYZ", [0.3, second, -1.1]).as_matrix()
    np.testing.assert_allclose(Rotation.from_euler("XYZ", angles(R)).as_matrix(), R, atol=4e-16)


@pytest.mark.parametrize("name", ["spatial", "five_bar", "to_world"])
def test_the_constraint_matrix_is_the_derivative_of_simbodys_own_errors(own: Own, name: str) -> None:
    from loopcheck.engines.simbody._equations import equations
    from loopcheck.engines.simbody._model import Model

    case = own(name)
    h, q = 1e-6, prescribe(case).q[30]

    def errors(model: Model, q: Any) -> Any:
        model.put(q, np.zeros(case.mechanism.nv))
        model.model.realizePosition(model.state)
        return np.array(model.state.getQErr().to_numpy())[: model.loop_rows]

    terms = equations(case.mechanism)
    model = terms.simbody
    slopes = np.array([(errors(model, q + h * dq) - errors(model, q - h * dq)) / (2 * h) for dq in np.eye(len(q))]).T
    np.testing.assert_allclose(terms.jacobian(q), slopes, atol=1e-9)


@pytest.mark.extended("test_a_spring_rests_at_its_own_reference_beside_that_of_its_joint")
def test_a_driven_tendon_needs_no_inertia_of_its_own(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rotor that makes it a coordinate is taken off its effort, whatever its inertia."""
    from loopcheck.engines.simbody import _model

    case = own("hand", (MODELS / "tendon_hand.xml").read_text(encoding="utf-8"))
    motion = prescribe(case)
    for inertia in (0.01, 10.0):
        monkeypatch.setattr(_model, "STAND_IN", inertia)
        want_right("simbody/forward", case, motion)


def test_a_spring_rests_at_its_own_reference_beside_that_of_its_joint(own: Own) -> None:
    """Every joint has a reference that is not zero; OpenSim counts its coordinates from there."""
    text = OWN["five_bar"].replace('pos="-0.03 0 0.01" stiffness="2"', 'pos="-0.03 0 0.01" ref="0.5" stiffness="2"')
    assert text != OWN["five_bar"]
    case = own("sprung", text)
    motion = prescribe(case)
    want_right("simbody/kkt", case, motion.assemble(motion.t[10:40:10]))


@pytest.mark.extended("test_a_spring_rests_at_its_own_reference_beside_that_of_its_joint")
def test_what_nothing_drives_moves_by_itself(own: Own) -> None:
    """A rod that spins between a ball and a point, and a pendulum."""
    text = (MODELS / "spinning_rod.xml").read_text(encoding="utf-8")
    case = own("rod", text.replace('type="ball" stiffness="0.4" damping="0.03"', 'type="ball"'))
    motion = prescribe(case)
    for route in ("kkt", "forward"):
        want_right(f"simbody/{route}", case, motion)


def test_angles_near_their_singularity_are_refused(own: Own) -> None:
    text = (MODELS / "ball_and_universal.xml").read_text(encoding="utf-8")
    case = own("ball", text)
    motion = prescribe(case)
    ball = next(j for j, joint in enumerate(case.mechanism.joints) if joint.kind == "ball")
    turned, places = np.array(motion.q), case.mechanism.q_slices[ball]
    turned[7, places] = [np.cos(np.pi / 4), 0, np.sin(np.pi / 4), 0]
    with pytest.raises(
        NotRepresentableError, match=r"simbody: not supported: ball joint '.*' turns by 90\.0° about its second axis"
    ):
        engines.load("simbody/forward").compute_efforts(
            case, Motion(t=motion.t, q=turned, qd=motion.qd, qdd=motion.qdd, law=motion.law, assemble=motion.assemble)
        )


def test_finer_knots_come_closer(prr: Case, prr_motion: Motion) -> None:
    ladder = engines.load("simbody/forward").compute_efforts(prr, prr_motion).ladder
    errors = [relative_error(rung.effort, reference(prr, prr_motion)) for rung in ladder]
    assert all(fine < coarse / 4 for coarse, fine in pairwise(errors))
    assert errors[-1] < 1e-9


def test_what_opensim_raises_becomes_an_engine_error() -> None:
    from loopcheck.engines.simbody._opensim import guarded, opensim

    with pytest.raises(EngineError, match="simbody: "), guarded("simbody"):
        opensim.Model().getJointSet().get("none")


def test_simbody_prints_nothing_and_writes_no_log(
    prr: Case, prr_motion: Motion, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for route in ("kkt", "forward"):
        engines.load(f"simbody/{route}").compute_efforts(prr, prr_motion.assemble(prr_motion.t[:5]))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
