"""Robots with spatial tendons in the engines: MuJoCo has the lengths without joints, all others refuse them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.engines.mujoco.loops import forward_with_turning_drives, turns_drives
from loopcheck.engines.mujoco.model import build, constraint_jacobian
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.validation.check.audit.audit import audit, expected_terms
from loopcheck.validation.common.verdicts import FILE
from loopcheck.validation.gate.gate import gate
from tests.analytic.test_paths import ANKLE, FINGERS
from tests.conftest import Prescribed
from tests.engines.mechanisms import Own

mujoco = pytest.importorskip("mujoco")

MODELS = {"rods": ANKLE, "driven": FINGERS["a motor over sites"], "coupled": FINGERS["a length by another"]}
ROTOR = FINGERS["rotor and damper of a motor"]
SPRING = FINGERS["a taut spring"]


def test_rods_turn_as_mujoco_has_them(prescribed: Prescribed) -> None:
    """Nearly rigid rods must accelerate with J q̈ = −J̇ q̇; MuJoCo's have 0, as a known issue says, in the route too."""
    case, motion = prescribed(ANKLE.replace("<tendon name", '<tendon solimp=".9999 .9999 .001" name'))
    model = build(case.mechanism)
    data, k = mujoco.MjData(model), len(motion.t) // 3
    assert not turns_drives(model)
    computations: tuple[Callable[[Any, Any], None], ...] = (forward_with_turning_drives, mujoco.mj_forward)
    for compute in computations:
        data.qpos[:], data.qvel[:] = motion.q[k], 10 * motion.qd[k]
        compute(model, data)
        rows = constraint_jacobian(model, data)[:2]
        wanted = 10**2 * rows @ motion.qdd[k]  # the lengths of the motion are constant
        assert np.abs(wanted).max() > 0.01
        assert np.abs(rows @ data.qacc - wanted).max() > 0.9 * np.abs(wanted).max()


@pytest.mark.extended("tests/engines/test_paths.py::test_rods_turn_as_mujoco_has_them")
@pytest.mark.parametrize(("name", "is_right"), [("driven", True), ("rods", False), ("coupled", False)])
def test_simulations_agree_unless_an_equality_turns(name: str, is_right: bool, prescribed: Prescribed) -> None:
    """Prescribed lengths have the term of turning tendons; equalities of the file lack it, as MuJoCo does."""
    case, motion = prescribed(MODELS[name])
    wanted = Noc().compute_efforts(case, motion).effort
    history = engines.load("mujoco/forward").compute_efforts(case, motion)
    error = np.abs(history.effort - wanted).max() / np.abs(wanted).max()
    assert error <= 1e-6 if is_right else error > 1e-4
    assert ("mujoco-tendon-turning" in history.note) != is_right


@pytest.mark.parametrize("text", [*MODELS.values(), ROTOR, SPRING], ids=[*MODELS, "rotor", "spring"])
@pytest.mark.parametrize("engine", [FILE, "mujoco"])
def test_the_audit_passes(engine: str, text: str, prescribed: Prescribed) -> None:
    """Rotors, dampers and moments of lengths are compared on the joints of the file."""
    case, motion = prescribed(text)
    rows = audit(case, expected_terms(case, motion), engine)
    of_solver = "closure acceleration in its solver"
    wrong = [row for row in rows if row["verdict"] != "agree" and row["quantity"] != of_solver]
    assert [(row["quantity"], row["note"]) for row in wrong] == []
    assert {"gear", "armature", "damping"} <= {row["quantity"] for row in rows}


def test_an_unmodified_simulation_logs_the_lengths(prescribed: Prescribed) -> None:
    case, motion = prescribed(FINGERS["a motor over sites"])
    history = engines.load("mujoco/as_is").compute_efforts(case, motion)
    assert history.as_is is not None
    log = history.as_is.log
    model = mujoco.MjModel.from_xml_path(str(case.mechanism.model.path))
    data = mujoco.MjData(model)
    assert log.joints == ("j1", "j2", "t")
    assert log.qd is not None
    for k in (0, len(log.t) // 2):
        data.qpos[:], data.qvel[:] = log.q[k, :2], log.qd[k, :2]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(log.q[k, 2], data.ten_length[0], rtol=0, atol=1e-14)
        np.testing.assert_allclose(log.qd[k, 2], data.ten_velocity[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["rods", "driven"])
@pytest.mark.parametrize("engine", [name for name in engines.engine_names() if name != "mujoco"])
def test_other_engines_refuse_them(engine: str, name: str, own: Own) -> None:
    if not engines.installed(engine):
        pytest.skip(f"{engine} is not installed")
    case = own("paths", MODELS[name])
    with pytest.raises(NotRepresentableError, match=r"of a spatial tendon|spatial tendon 't'"):
        engines.audit(engine, case.mechanism, case.mechanism.rest_position)


@pytest.mark.parametrize("name", MODELS)
def test_the_checks_of_a_file_take_them(name: str, tmp_path: Path) -> None:
    """Rods are loops; ropes that pull are none."""
    file = tmp_path / "paths.xml"
    limited = MODELS[name].replace("<general", '<motor ctrllimited="true" ctrlrange="-1 1"')  # which open soft closures
    file.write_text(limited, encoding="utf-8")
    result = gate(str(file))
    assert [finding.code for finding in result.findings if finding.code in ("LC305", "LC101", "LC102", "LC103")] == []
    assert result.loops == {"rods": 2, "driven": 0, "coupled": None}[name]
