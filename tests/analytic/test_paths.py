"""Spatial tendons with straight parts: the reference against MuJoCo's own M, bias and `ten_J`, and formulas by hand."""

import numpy as np
import pytest

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.state import State
from loopcheck.engines.mujoco.model import LEFT_OUT
from loopcheck.engines.mujoco.routes.kkt import KKT
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import PathClosure
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.conftest import Prescribed

mujoco = pytest.importorskip("mujoco")


def path(*parts: str | int) -> str:
    """Sites by name, pulleys by their divisor."""
    return "".join(
        f'<site site="{part}"/>' if isinstance(part, str) else f'<pulley divisor="{part}"/>' for part in parts
    )


def finger(tendons: str, rest: str) -> str:
    """Two links in space that ropes pull over sites."""
    return f"""<mujoco><compiler angle="radian"/><worldbody>
  <body name="l1"><joint name="j1" axis="0 1 .2"/>
    <inertial pos=".05 .01 .02" mass=".3" diaginertia="4e-4 5e-4 6e-4"/>
    <site name="s1" pos=".05 0 .03"/><site name="s3" pos=".09 0 .025"/>
    <body name="l2" pos=".12 0 0"><joint name="j2" axis=".1 1 0"/>
      <inertial pos=".06 0 .01" mass=".2" diaginertia="2e-4 3e-4 2e-4"/>
      <site name="s2" pos=".04 .01 .02"/><site name="tip" pos=".1 0 .01"/></body></body>
  <site name="a" pos="-.06 0 .04"/><site name="b" pos=".02 0 .2"/><site name="c" pos=".3 .02 .15"/>
</worldbody><tendon>{tendons}</tendon>{rest}</mujoco>"""


def spatial(name: str, *parts: str | int, more: str = "") -> str:
    return f'<spatial name="{name}" {more}>{path(*parts)}</spatial>'


def motors(**of: str) -> str:
    """Motors on joints and tendons, by the attributes of each."""
    every = "".join(f'<general name="{name}" {stated}/>' for name, stated in of.items())
    return f"<actuator>{every}</actuator>"


def held(stated: str) -> str:
    return f"<equality><tendon {stated}/></equality>"


J1, J2 = 'joint="j1"', 'joint="j2"'
T, U = spatial("t", "a", "s1", "s2"), spatial("u", "c", "tip")
BLOCK = spatial("t", "a", "s1", "s2", 2, "b", "s3", "s2", 4, "c", "tip")
FIXED = '<fixed name="f"><joint joint="j1" coef=".05"/><joint joint="j2" coef=".03"/></fixed>'
SPRING = 'stiffness="200" springlength="{}" damping="3" armature=".2"'
FINGERS = {
    "a motor over sites": finger(T, motors(m=J1, t='tendon="t" gear="3"')),
    "a block with pulleys": finger(BLOCK, motors(m=J1, t='tendon="t"')),
    "two ropes": finger(spatial("t", "b", "s1") + U, motors(u='tendon="u"', t='tendon="t" gear="-2"')),
    "rotor and damper of a motor": finger(T, motors(m=J1, t='tendon="t" gear="2" armature=".05" damping="1"')),
    "a taut spring": finger(spatial("t", "a", "s1", "s2", more=SPRING.format(".1 .19")), motors(m=J1, n=J2)),
    "a slack spring": finger(spatial("t", "a", "s1", "s2", more=SPRING.format(".1 .4")), motors(m=J1, n=J2)),
    "armature between two points": finger(spatial("t", "c", "tip", more='armature=".2"'), motors(m=J1, n=J2)),
    "a constant length": finger(T, held('tendon1="t"') + motors(m=J1)),
    "a length above that of the file": finger(T, held('tendon1="t" polycoef=".01 0 0 0 0"') + motors(m=J1)),
    "a spring at constant length": finger(
        spatial("t", "a", "s1", "s2", more='stiffness="50" springlength=".1"'), held('tendon1="t"') + motors(m=J1)
    ),
    "a length by another": finger(T + U, held('tendon1="t" tendon2="u" polycoef=".002 -.6 .4 0 0"') + motors(m=J1)),
    "a length by a fixed tendon": finger(
        T + FIXED, held('tendon1="t" tendon2="f" polycoef="0 1 .5 0 0"') + motors(m=J1)
    ),
}
ANKLE = """<mujoco><compiler angle="radian"/><worldbody><body name="shank" pos="0 0 1">
  <inertial pos="0 0 -.1" mass="1" diaginertia=".01 .01 .01"/>
  <body name="cl" pos="-.02 .05 -.05"><joint name="left" axis="0 1 0" armature=".005"/>
    <inertial pos="-.025 0 0" mass=".05" diaginertia="1e-5 1e-5 1e-5"/><site name="cl" pos="-.05 0 0"/></body>
  <body name="cr" pos="-.02 -.05 -.05"><joint name="right" axis="0 1 0" armature=".005"/>
    <inertial pos="-.025 0 0" mass=".05" diaginertia="1e-5 1e-5 1e-5"/><site name="cr" pos="-.05 0 0"/></body>
  <body name="cross" pos="0 0 -.3"><joint name="pitch" axis="0 1 0"/>
    <inertial pos="0 0 0" mass=".05" diaginertia="1e-5 1e-5 1e-5"/>
    <body name="foot"><joint name="roll" axis="1 0 0"/>
      <inertial pos=".03 0 -.05" mass=".8" diaginertia="2e-3 3e-3 4e-3"/>
      <site name="fl" pos="-.06 .05 0"/><site name="fr" pos="-.06 -.05 0"/></body></body></body></worldbody>
<tendon><spatial name="l"><site site="cl"/><site site="fl"/></spatial>
  <spatial name="r"><site site="cr"/><site site="fr"/></spatial></tendon>
<equality><tendon name="rod left" tendon1="l"/><tendon name="rod right" tendon1="r"/></equality>
<actuator><motor name="left" joint="left"/><motor name="right" joint="right"/></actuator></mujoco>"""
MODELS = {**FINGERS, "an ankle on rods": ANKLE}


def own_efforts(case: Case, motion: Motion) -> Array:
    """Efforts by MuJoCo's M, bias, forces of springs, moments and rows of equalities, least squares by numpy."""
    model = mujoco.MjModel.from_xml_path(str(case.mechanism.model.path))
    model.opt.gravity[:] = case.mechanism.gravity
    model.opt.disableflags |= LEFT_OUT | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data, nv, efforts = mujoco.MjData(model), model.nv, []
    for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
        data.qpos[:], data.qvel[:] = q[: model.nq], qd[:nv]
        mujoco.mj_forward(model, data)
        M, S = np.zeros((nv, nv)), np.zeros((len(data.moment_rownnz), nv))
        mujoco.mj_fullM(model, data, M)
        mujoco.mju_sparse2dense(S, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind)
        force = M @ qdd[:nv] + data.qfrc_bias - data.qfrc_passive
        balancing = np.concatenate([S, data.efc_J.reshape(-1, nv)[: data.ne]]).T
        solution = np.linalg.lstsq(balancing, force, rcond=1e-9)[0]
        assert np.abs(balancing @ solution - force).max() < 1e-12
        efforts.append(solution[: len(S)])
    return np.array(efforts)


@pytest.mark.parametrize("name", MODELS)
def test_efforts_are_those_of_mujocos_matrices(name: str, prescribed: Prescribed) -> None:
    case, motion = prescribed(MODELS[name])
    wanted = own_efforts(case, motion)
    for source in (Noc(), Lagrange(), KKT):
        effort = source.compute_efforts(case, motion).effort
        np.testing.assert_allclose(effort, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max(), err_msg=source.name)


@pytest.mark.parametrize("name", ["a block with pulleys", "a length above that of the file", "a length by another"])
def test_motions_keep_the_lengths(name: str, prescribed: Prescribed) -> None:
    """Lengths, their rates, and by differences in time their accelerations."""
    case, motion = prescribed(MODELS[name])
    model = mujoco.MjModel.from_xml_path(str(case.mechanism.model.path))
    data, nq, h = mujoco.MjData(model), model.nq, 1e-6
    mechanism = case.mechanism
    for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
        ahead = [(q + s * h * qd + h**2 / 2 * qdd, qd + s * h * qdd) for s in (-1, 1)]
        rates = []
        for positions, velocities in (*ahead, (q, qd)):
            data.qpos[:], data.qvel[:] = positions[:nq], velocities[:nq]
            mujoco.mj_forward(model, data)
            rates.append(np.array(data.ten_velocity))
        slides = [joint.name for joint in mechanism.joints[nq:]]
        numbers = [model.tendon(slide).id for slide in slides]
        np.testing.assert_allclose(q[nq:], data.ten_length[numbers], rtol=0, atol=1e-12)
        np.testing.assert_allclose(qd[nq:], data.ten_velocity[numbers], rtol=0, atol=1e-12)
        np.testing.assert_allclose(qdd[nq:], (rates[1] - rates[0])[numbers] / (2 * h), rtol=0, atol=1e-6)
        if name == "a length above that of the file":
            assert data.ten_length[0] - model.tendon_length0[0] == pytest.approx(0.01, abs=1e-12)
        if name == "a length by another":
            t, u = data.ten_length - model.tendon_length0
            assert t == pytest.approx(0.002 - 0.6 * u + 0.4 * u**2, abs=1e-12)


def test_rows_are_mujocos(prescribed: Prescribed) -> None:
    """Φ is `ten_J`, and its rate the difference of `ten_J` along the motion."""
    case, motion = prescribed(MODELS["a block with pulleys"])
    model = mujoco.MjModel.from_xml_path(str(case.mechanism.model.path))
    state, data, h = State(mechanism=case.mechanism, q=motion.q, qd=motion.qd), mujoco.MjData(model), 1e-6

    def ten_J(q: Array) -> Array:
        data.qpos[:], J = q, np.zeros((1, model.nv))
        mujoco.mj_fwdPosition(model, data)
        mujoco.mju_sparse2dense(J, data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind)
        return J[0]

    for k, (q, qd) in enumerate(zip(motion.q[:, :2], motion.qd[:, :2], strict=True)):
        np.testing.assert_allclose(state.Phi[k, 0], [*ten_J(q), -1], rtol=0, atol=1e-14)
        rate = (ten_J(q + h * qd) - ten_J(q - h * qd)) / (2 * h)
        np.testing.assert_allclose(state.Phi_dot[k, 0], [*rate, 0], rtol=0, atol=1e-9)


LIFT = """<mujoco><worldbody><site name="top" pos="0 0 2"/>
  <body name="load" pos="0 0 1"><joint name="z" type="slide" axis="0 0 1" damping="2"/>
    <inertial pos="0 0 0" mass="3" diaginertia="1 1 1"/><site name="hook" pos="0 0 .1"/></body></worldbody>
<tendon><spatial name="rope"><site site="top"/><site site="hook"/><pulley divisor="{}"/>
  <site site="top"/><site site="hook"/></spatial></tendon>
<actuator><motor name="winch" tendon="rope" gear="-5"/></actuator></mujoco>"""


@pytest.mark.parametrize("divisor", [1, 4])
def test_a_winch_lifts_over_a_pulley(divisor: int, prescribed: Prescribed) -> None:
    """By hand: l = (1 + 1/n)(.9 − z), so the motor of gear −5 pulls with m(z̈ + g) + d ż over 5 (1 + 1/n)."""
    case, motion = prescribed(LIFT.format(divisor))
    z, zd, zdd = (values[:, 0] for values in (motion.q, motion.qd, motion.qdd))
    ratio = 1 + 1 / divisor
    np.testing.assert_allclose(motion.q[:, 1], ratio * (0.9 - z), rtol=0, atol=1e-12)
    wanted = (3 * (zdd - case.mechanism.gravity[2]) + 2 * zd) / (5 * ratio)
    for source in (Noc(), Lagrange(), KKT):
        np.testing.assert_allclose(source.compute_efforts(case, motion).effort[:, 0], wanted, rtol=1e-12)
    assert case.mechanism.actuator_units == ("N",)


SWING = """<mujoco><compiler angle="radian"/><worldbody><site name="nail" pos=".3 0 .4"/>
  <body><joint name="j" axis="0 1 0"/><inertial pos=".5 0 0" mass="2" diaginertia=".2 .3 .2"/>
    <site name="eye" pos=".5 0 0"/></body></worldbody>
<tendon><spatial name="rope" armature=".7"><site site="nail"/><site site="eye"/></spatial></tendon>
<actuator><motor name="m" tendon="rope"/></actuator></mujoco>"""


def test_a_pendulum_is_pulled_by_a_rope(prescribed: Prescribed) -> None:
    """By hand: distance and moment arm of the law of cosines, the rotor on the rate of the length."""
    case, motion = prescribed(SWING)
    j, w, alpha = (values[:, 0] for values in (motion.q, motion.qd, motion.qdd))
    angle = j + np.arctan2(0.4, 0.3)  # between the arm and the line to the nail; the joint turns downwards
    length = np.sqrt(0.5**2 + 0.5**2 - 2 * 0.5 * 0.5 * np.cos(angle))
    arm = 0.25 * np.sin(angle) / length
    slope = 0.25 * np.cos(angle) / length - arm**2 / length
    growth = arm * alpha + slope * w**2
    g = case.mechanism.gravity
    weight = 2 * 0.5 * (g[0] * -np.sin(j) + g[2] * -np.cos(j))
    wanted = ((0.3 + 2 * 0.25) * alpha + 0.7 * growth * arm - weight) / arm
    np.testing.assert_allclose(motion.q[:, 1], length, rtol=0, atol=1e-12)
    np.testing.assert_allclose(Noc().compute_efforts(case, motion).effort[:, 0], wanted, rtol=1e-11)


def test_a_rod_keeps_the_branch_of_the_file(prescribed: Prescribed) -> None:
    """A rod of the same length closes on either side of the line through both pivots."""
    for side in (0.7, -0.7):
        text = f"""<mujoco><compiler angle="radian"/><worldbody>
          <body name="crank"><joint name="c" axis="0 1 0"/><inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/>
            <site name="c" pos="0 0 .2"/></body>
          <body name="rocker" pos="1 0 0" euler="0 {side} 0"><joint name="r" axis="0 1 0"/>
            <inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/><site name="r" pos="0 0 .2"/></body></worldbody>
          <tendon><spatial name="rod"><site site="c"/><site site="r"/></spatial></tendon>
          <equality><tendon tendon1="rod"/></equality><actuator><motor name="m" joint="c"/></actuator></mujoco>"""
        case, motion = prescribed(text)
        (rod,) = case.mechanism.closures
        assert isinstance(rod, PathClosure)
        assert rod.slide is None
        assert np.abs(State.at_rest(case.mechanism, motion.q).gap).max() < 1e-12
        assert (np.sign(side + motion.q[:, 1]) == np.sign(side)).all()


def test_the_motion_may_be_prescribed_by_length(prescribed: Prescribed) -> None:
    """The length follows its law, the pose follows from it."""
    case, motion = prescribed(MODELS["a motor over sites"])
    (_, length) = case.mechanism.drives
    law = motion.law(motion.t)
    np.testing.assert_allclose(case.mechanism.values_of((length,), motion.q)[:, 0], law.q[:, 1], rtol=0, atol=1e-12)
    assert np.ptp(law.q[:, 1]) > 1e-3
