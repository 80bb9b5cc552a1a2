"""Rotations in logs without velocities: quaternions by differences, and rods that spin about themselves."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.logs.closing.closed_log import closed_log
from loopcheck.analytic.logs.closing.turns import differenced, spins_about_itself, without_spin
from loopcheck.analytic.logs.residual import residual_efforts
from loopcheck.analytic.logs.signals.filters import interpolating_filter, smoothing_filter
from loopcheck.robots.arrays import Array
from loopcheck.robots.log import Instantaneous, Log
from loopcheck.robots.mechanism import Mechanism
from tests.conftest import MODELS, CaseMaker
from tests.logs import exact_log, of_drives


def turning(t: Array) -> Array:
    """Quaternions (w, x, y, z) of a body that turns by changing angles about changing axes."""
    rotations = Rotation.from_euler("ZX", np.stack([np.sin(3 * t), 0.5 * t + t**2], axis=1))
    return np.roll(rotations.as_quat(), 1, axis=1)


@pytest.mark.parametrize("late", [0.0, 0.4])
@pytest.mark.parametrize("smooths", [False, True])
def test_quaternions_are_differenced_along_their_geodesics(late: float, smooths: bool, model_case: CaseMaker) -> None:
    """Angular velocities and accelerations in body axes, against fine differences of rotation matrices."""
    mechanism = model_case(MODELS / "spinning_rod.xml").mechanism
    dt = 0.01
    t: Array = dt * np.arange(60.0)
    (entries,), (dofs,) = mechanism.stacked.turns.entries, mechanism.stacked.turns.dofs
    q = np.zeros((60, mechanism.nq))
    q[:, entries] = turning(t)
    kernels = (smoothing_filter if smooths else interpolating_filter)(dt, 4, late, uses_velocities=False)
    bases = np.arange(10.0, 50.0)
    x, v, a = differenced(mechanism, q, kernels, bases)
    at = dt * (bases + kernels.late)

    def rates(times: Array) -> Array:
        h = 1e-5
        now, before, after = (Rotation.from_quat(np.roll(turning(times + s), -1, axis=1)) for s in (0, -h, h))
        return np.asarray((now.inv() * after).as_rotvec() - (now.inv() * before).as_rotvec()) / (2 * h)

    same = np.abs((x[:, entries] * turning(at)).sum(axis=1))
    np.testing.assert_allclose(same, 1, atol=1e-7)
    np.testing.assert_allclose(v[:, dofs], rates(at), atol=2e-4 if smooths else 1e-6)
    np.testing.assert_allclose(a[:, dofs], (rates(at + 1e-3) - rates(at - 1e-3)) / 2e-3, atol=0.05 if smooths else 1e-3)


def damped(mechanism: Mechanism, damping: float) -> Mechanism:
    """The mechanism with a damped joint of its rod."""
    joints = [replace(joint, damping=damping) if joint.kind == "ball" else joint for joint in mechanism.joints]
    return replace(mechanism, joints=tuple(joints))


ROD = """<mujoco><compiler angle="radian"/><worldbody>
<body name="crank"><joint name="crank" axis="0 1 0"/><geom type="capsule" size=".01" fromto="0 0 0 0 0 .1" mass=".3"/>
<body name="rod" pos="0 0 .1"><joint name="ball" type="ball"/>
<geom {} pos=".15 0 .02" mass=".4"/></body></body>
<body name="slide" pos=".3 0 .14"><joint name="slide" type="slide" axis="1 0 .2"/><geom size=".02" mass=".5"/></body>
</worldbody><equality><connect body1="rod" body2="slide" anchor=".3 0 .04"/></equality>
<actuator><motor name="crank" joint="crank"/></actuator></mujoco>"""
ALONG = 'zaxis=".3 0 .04"'


@pytest.mark.parametrize(
    ("rod", "damping", "spins"),
    [
        (f'type="cylinder" size=".01 .14" {ALONG}', 0.0, True),
        (f'type="box" size=".01 .01 .14" {ALONG}', 0.0, True),
        (f'type="box" size=".01 .03 .14" {ALONG}', 0.0, False),
        ('type="cylinder" size=".01 .14" zaxis="1 0 .4"', 0.0, False),
        (f'type="cylinder" size=".01 .14" {ALONG}', 0.1, False),
    ],
    ids=["round", "square", "flat", "tilted", "damped"],
)
def test_a_symmetric_rod_needs_no_column(
    rod: str, damping: float, spins: bool, tmp_path: Path, model_case: CaseMaker
) -> None:
    """A log of the drive alone requires the efforts of the log of all joints, up to the spin of a rod at rest."""
    path = tmp_path / "rod.xml"
    path.write_text(ROD.format(rod))
    case = model_case(path)
    case = replace(case, mechanism=damped(case.mechanism, damping))
    mechanism = case.mechanism
    assert spins_about_itself(mechanism, case.guess) == spins
    if not spins:
        return
    log = exact_log(case, np.linspace(0, 0.3, 61))
    alone = of_drives(log, case, velocities=True)
    residual = residual_efforts(closed_log(mechanism, alone, case.guess), Instantaneous())
    assert residual.largest < 1e-6 * residual.scale
    without = positions_of(log)
    residual = residual_efforts(closed_log(mechanism, without, case.guess), Instantaneous())
    assert residual.largest < 1e-4 * residual.scale
    assert log.qd is not None
    moving = State(mechanism=mechanism, q=log.q[:5], qd=log.qd[:5])
    state = moving.with_velocities(without_spin(moving))
    axis = np.array([0.3, 0.0, 0.04]) / np.hypot(0.3, 0.04)
    b = [body.name for body in mechanism.bodies].index("rod")
    assert np.abs((state.twists.w[:, b] * (state.poses.R[:, b] @ axis)).sum(axis=1)).max() < 1e-9


def positions_of(log: Log) -> Log:
    """The log without velocities."""
    return replace(log, qd=None)
