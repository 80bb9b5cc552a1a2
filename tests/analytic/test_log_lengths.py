"""Lengths of spatial tendons in logs of the joints of a file."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from loopcheck.analytic.logs.closing.closed_log import closed_log
from loopcheck.analytic.logs.closing.lengths import with_lengths
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.log import Log
from loopcheck.robots.logs.log_files import read_log
from tests.analytic.test_paths import FINGERS
from tests.conftest import CaseMaker


def test_lengths_follow_from_the_joints(model_case: CaseMaker, tmp_path: Path) -> None:
    """The motion has lengths, rates and accelerations of its own; a file has the state of MuJoCo alone."""
    path = tmp_path / "finger.xml"
    path.write_text(FINGERS["a motor over sites"], encoding="utf-8")
    case = model_case(path, amplitude=0.004)
    motion = prescribe(case, dt=0.02)
    log = Log(
        name="log",
        t=motion.t,
        joints=("j1", "j2"),
        q=motion.q[:, :2],
        qd=motion.qd[:, :2],
        qdd=motion.qdd[:, :2],
        actuators=("m", "t"),
        effort=np.zeros((len(motion.t), 2)),
        errors={"q": np.full(2, 1e-6)},
    )
    full = with_lengths(case.mechanism, log)
    assert full.joints == ("j1", "j2", "t")
    assert full.kinds[-1] == "slide"
    for name in ("q", "qd", "qdd"):
        np.testing.assert_allclose(getattr(full, name), getattr(motion, name), rtol=0, atol=1e-11)
    drives = replace(log, joints=("j1",), kinds=("hinge",), q=log.q[:, :1], qd=None, qdd=None, errors={})
    assert with_lengths(case.mechanism, drives) is drives
    assert np.abs(closed_log(case.mechanism, log, case.guess).q - motion.q).max() < 1e-11

    table = np.column_stack([motion.t, motion.q[:, :2], motion.qd[:, :2], log.effort])
    names = "t,qpos.0,qpos.1,qvel.0,qvel.1,m.effort,t.effort"
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=names, comments="")
    assert read_log(tmp_path / "log.csv", case.mechanism).joints == ("j1", "j2")
