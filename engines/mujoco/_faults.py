"""Faults of `mujoco/forward`, one step of care left out each: the harness must notice them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

import mujoco

from engines.mujoco import forward
from engines.mujoco._model import equality_rows
from robots.efforts import Fault


@contextmanager
def _loose_loops(peak: float) -> Iterator[None]:
    """Loops and drives as compliant as the file has them, at MuJoCo's default impedance."""
    with patch.multiple(forward, COMPLIANCES=(1.0, 2.0), IMPEDANCE=0.95):
        yield


@contextmanager
def _velocity_term_dropped(peak: float) -> Iterator[None]:
    """Reference accelerations of the constraints without J̇v, as MuJoCo had them before 3.7."""
    with patch.object(mujoco, "mj_forward", _forward_without_velocity_term):
        yield


def _forward_without_velocity_term(model: mujoco.MjModel, data: mujoco.MjData) -> None:
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
    "forward": {"loose loops": _loose_loops, "velocity term dropped": _velocity_term_dropped}
}
"""By route and kind of fault."""
