"""Faults of MuJoCo's routes, a step of care left out or another number taken: the harness must notice them."""

from collections.abc import Mapping
from unittest.mock import patch

import mujoco

from loopcheck.engines.misreadings import misread
from loopcheck.engines.mujoco._stepping import Stepping
from loopcheck.engines.mujoco.model import equality_rows
from loopcheck.engines.mujoco.routes import forward
from loopcheck.engines.mujoco.routes.as_is import MujocoAsIs
from loopcheck.engines.mujoco.routes.forward import MujocoForward, Settings
from loopcheck.robots.efforts import EffortHistory, Fault
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

AS_IN_THE_FILE = Settings(compliances=(1.0, 2.0), solimp=(0.95, 0.95, 0.001, 0.5, 1.0))
"""Loops and drives as compliant as the file has them, at MuJoCo's default impedance."""


class _WithoutVelocityTerm(MujocoForward):
    """Reference accelerations of the constraints without J̇v, as MuJoCo had them before 3.7."""

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        with (
            patch.object(mujoco, "mj_forward", forward_without_velocity_term),
            patch.object(forward, "stepping", Stepping),
        ):
            return super().compute_efforts(case, motion)


def forward_without_velocity_term(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """The stages of `mj_forward`, with a_ref = -B v - K·imp·r set anew before the constraints are solved."""
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_fwdActuation(model, data)
    mujoco.mj_fwdAcceleration(model, data)
    rows = equality_rows(data)
    K, B, impedance, _ = data.efc_KBIP.reshape(-1, 4)[rows].T
    data.efc_aref[rows] = -B * data.efc_vel[rows] - K * impedance * data.efc_pos[rows]
    mujoco.mj_fwdConstraint(model, data)


FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {
        "loose loops": lambda peak: MujocoForward(AS_IN_THE_FILE),
        "velocity term dropped": lambda peak: _WithoutVelocityTerm(),
    },
    "as_is": misread(MujocoAsIs()),
}
"""By route and kind of fault."""
