"""Efforts that acted in a step of `mj_step`, against the impulse of the step."""

import copy
import doctest
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from loopcheck import ActedEffort, acted_effort
from loopcheck.engines.mujoco import acted_effort as module
from loopcheck.engines.mujoco.acted_effort import integration_state
from loopcheck.engines.mujoco.model import inertia_matrix, transmission
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import EngineError, ShapeError
from loopcheck.robots.formats.model_file import captured_warnings

mujoco = pytest.importorskip("mujoco")

INTEGRATORS = [
    name
    for name in ("Euler", "implicit", "implicitfast", "discrete", "RK4")
    if hasattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}")
]
SERVO = '<position joint="x" kp="2000" kv="60" {limit}/>'
DRIVES = {
    "motor": '<motor joint="x" gear="2"/>',
    "velocity": '<velocity joint="x" kv="60"/>',
    "servo": SERVO.format(limit=""),
    "servo at its limit": SERVO.format(limit='forcerange="-10 10"'),
    "filtered servo": '<position joint="x" kp="2000" timeconst=".01" gear="3"/>',
    "integrator": '<intvelocity joint="x" kp="200" actrange="-1 1"/>',
    "two drives": '<motor joint="x"/><position joint="x" kp="800" kv="20" gear="-2"/>',
}
LOOP = """<mujoco><option timestep=".002"/><default><joint axis="0 1 0"/><geom type="capsule" size=".02"/></default>
<worldbody><geom type="plane" size="2 2 .1" pos="0 0 -.05"/>
 <body><joint name="a" frictionloss=".02" armature=".01" actuatorfrcrange="-3 3"/><geom fromto="0 0 0 0 0 .2"/>
  <body name="coupler" pos="0 0 .2"><joint name="b"/><geom fromto="0 0 0 .4 0 .1"/></body></body>
 <body name="rocker" pos=".4 0 0"><joint name="c" damping=".3"/><geom fromto="0 0 0 0 0 .3"/></body>
 <body pos="0 .3 0"><freejoint/><geom type="sphere" size=".06" mass=".3"/></body>
</worldbody><equality><connect body1="coupler" body2="rocker" anchor=".4 0 .1"/></equality>
<tendon><fixed name="both"><joint joint="a" coef="1"/><joint joint="c" coef="-.5"/></fixed></tendon>
<actuator><motor joint="b" gear="3"/><position joint="a" kp="40" kv="3"/>
<velocity tendon="both" kv="2"/><position joint="c" kp="100" timeconst=".02"/></actuator></mujoco>"""

several_outputs = pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_outnum"), reason="MuJoCo before 3.12")
CHAIN = """<mujoco><option timestep=".002" integrator="{integrator}" tolerance="0"/>
<default><geom type="capsule" size=".03" contype="0" conaffinity="0"/></default>
<worldbody><site name="w"/><body><joint name="b" type="ball"/><geom fromto="0 0 0 .3 0 .1"/>
<body pos=".3 0 .1"><joint name="h" axis="0 1 0"/><geom fromto="0 0 0 .2 .1 0"/>
<body pos=".2 .1 0"><joint name="c" type="ball" armature=".01"/><geom fromto="0 0 0 .3 0 .1"/><site name="s"/>
</body></body></body></worldbody><actuator>
<motor joint="h"/><orientation joint="c" kp="5" kv=".3"/><position joint="h" kp="20" kv=".2"/>
<orientation joint="b" kp="10" kv=".4" forcerange="0 .5"/><orientation site="s" refsite="w" kp="3" kv=".2"/>
</actuator></mujoco>"""
"""Actuators of three outputs beside others, two of them on the same joint."""
SPHERE = """<mujoco><option timestep=".002" integrator="{integrator}" tolerance="0"/>
<worldbody><body><joint name="b" type="ball"/><inertial pos="0 0 0" mass="1" diaginertia=".2 .2 .2"/></body></worldbody>
<actuator><orientation joint="b" kp="30" kv="3"/><velocity joint="b" kv="2" gear="1 2 3"/></actuator></mujoco>"""


def slide(integrator: str, drive: str, joint: str = "") -> Any:
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option integrator="{integrator}" timestep=".002" gravity="0 0 0"/><worldbody><body>'
        f'<joint name="x" type="slide" {joint}/><geom size=".1" mass="1.5"/></body></worldbody>'
        f"<actuator>{drive}</actuator></mujoco>"
    )


def loop(integrator: str) -> Any:
    model = mujoco.MjModel.from_xml_string(LOOP)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    return model


def steps(model: Any, count: int) -> Iterator[tuple[Any, Array, Array, ActedEffort]]:
    """Data and velocity before a step of random controls, its acceleration, and its efforts."""
    data, rng = mujoco.MjData(model), np.random.default_rng(2026)
    for _ in range(count):
        data.ctrl[:], data.qfrc_applied[:] = rng.normal(size=(2, model.nu))[0], rng.normal(scale=0.1, size=model.nv)
        before, velocity = copy.copy(data), np.array(data.qvel)
        state = integration_state(model, data)
        mujoco.mj_step(model, data)
        yield before, (data.qvel - velocity) / model.opt.timestep, velocity, acted_effort(model, state)


def want_balance(model: Any, data: Any, acceleration: Array, velocity: Array, acted: ActedEffort) -> None:
    """The momentum of a step is that of the actuators and of all other forces, with their change during the step.

    Args:
        data: Evaluated beginning of the step.
    """
    h, is_implicit = model.opt.timestep, model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICIT

    def smooth(velocity: Array) -> Array:
        data.qvel[:] = velocity
        mujoco.mj_forward(model, data)
        return data.qfrc_passive - data.qfrc_bias * is_implicit

    M, others = inertia_matrix(model, data), data.qfrc_smooth - data.qfrc_actuator + data.qfrc_constraint
    # damping is linear and inertial forces are quadratic in the velocity, so this difference is exact
    ahead = (smooth(velocity + h * acceleration) - smooth(velocity - h * acceleration)) / 2
    left = M @ acceleration - others - ahead - acted.joint_force
    assert abs(left).max() < 1e-9 * abs(M @ acceleration).max()


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("drive", DRIVES)
def test_the_joint_force_of_a_free_slide_is_its_change_of_momentum(integrator: str, drive: str) -> None:
    model = slide(integrator, DRIVES[drive])
    for before, acceleration, _, acted in steps(model, 50):
        momentum = 1.5 * acceleration - before.qfrc_applied
        np.testing.assert_allclose(acted.joint_force, momentum, rtol=1e-10, atol=1e-10)
        gears = model.actuator_gear[:, 0]
        np.testing.assert_allclose(gears @ acted.effort, momentum, rtol=1e-10, atol=1e-10)
        assert not acted.off_transmission.any() or abs(acted.off_transmission).max() < 1e-10


@pytest.mark.parametrize(
    "integrator",
    [
        pytest.param(name, marks=pytest.mark.evidence("400 steps, with contacts and clamped forces", seconds=1))
        for name in INTEGRATORS
        if name != "RK4"
    ],
)
def test_the_joint_force_balances_all_other_forces_of_a_loop(integrator: str) -> None:
    model = loop(integrator)
    contacts, clamped, differs = 0, 0, 0.0
    for data, acceleration, velocity, acted in steps(model, 400):
        mujoco.mj_forward(model, data)
        contacts, clamped = contacts + data.ncon, clamped + (abs(data.qfrc_actuator[0]) == 3)
        moment = transmission(model, data)
        want_balance(model, data, acceleration, velocity, acted)
        np.testing.assert_allclose(
            moment.T @ acted.effort + acted.off_transmission, acted.joint_force, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(moment @ acted.off_transmission, 0, atol=1e-9)
        differs = max(differs, abs(acted.effort - acted.reported).max())
    assert contacts
    assert clamped
    assert differs > 0.01


@several_outputs
@pytest.mark.parametrize("integrator", [name for name in INTEGRATORS if name != "RK4"])
def test_the_joint_force_of_actuators_with_several_outputs_balances_a_chain(integrator: str) -> None:
    model, differs, clamped = mujoco.MjModel.from_xml_string(CHAIN.format(integrator=integrator)), 0.0, 0
    for data, acceleration, velocity, acted in steps(model, 80):
        mujoco.mj_forward(model, data)
        moment = transmission(model, data)
        clamped += int(abs(np.linalg.norm(data.actuator_force[5:8]) - 0.5) < 1e-9)
        want_balance(model, data, acceleration, velocity, acted)
        np.testing.assert_allclose(moment.T @ acted.effort + acted.off_transmission, acted.joint_force, atol=1e-10)
        differs = max(differs, abs(acted.effort - acted.reported).max())
    assert clamped
    assert (differs > 0.01) == (integrator != "Euler")


@several_outputs
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_joint_force_of_actuators_with_several_outputs_turns_a_sphere(integrator: str) -> None:
    """Its inertia is the same in all directions, so that no other force acts, also within a step."""
    model = mujoco.MjModel.from_xml_string(SPHERE.format(integrator=integrator))
    for data, acceleration, _, acted in steps(model, 100):
        momentum = 0.2 * acceleration - data.qfrc_applied
        np.testing.assert_allclose(acted.joint_force, momentum, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("velocity", [0.0, 1e-3, 50.0])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_steps_of_small_accelerations_have_an_effort(integrator: str, velocity: float) -> None:
    """A drive nears its speed against an applied force that it cancels, until only round-off is left."""
    model = slide(integrator, '<velocity joint="x" kv="60" gear="3"/>')
    data = mujoco.MjData(model)
    data.ctrl[:], data.qvel[:], data.qfrc_applied[:] = 3 * velocity, velocity * 0.9, 7 * velocity
    unsolved = 5e-8 if integrator == "discrete" else 0.0  # its iteration ends at an acceleration of 1e-8: MuJoCo 4.0.0
    last = np.inf
    for _ in range(60):
        before, state = np.array(data.qvel), integration_state(model, data)
        mujoco.mj_step(model, data)
        last = abs((data.qvel - before) / model.opt.timestep).max()
        acted = acted_effort(model, state)
        momentum = 1.5 * (data.qvel - before) / model.opt.timestep - data.qfrc_applied
        np.testing.assert_allclose(acted.joint_force, momentum, rtol=1e-9, atol=1e-9 * velocity + unsolved)
    assert last < 1e-9 * max(velocity, 1e-9)


@pytest.mark.parametrize(("start", "speed", "kp"), [(0.0, 50.1, 1e-9), (0.7, 0.0, 6 * 1.5 / 0.002**2)])
def test_round_off_of_a_step_is_that_of_velocity_and_stages(start: float, speed: float, kp: float) -> None:
    """The change of a large velocity by a small force, and stages that cancel, have few digits.

    Runge-Kutta 4 of an oscillator at rest ends at rest if the frequency times the step is the root of 6.
    """
    model = slide("RK4", f'<position joint="x" kp="{kp!r}"/>')
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = start, speed
    state = integration_state(model, data)
    mujoco.mj_step(model, data)
    momentum = 1.5 * (data.qvel - speed) / model.opt.timestep
    stiffest, resolved = kp * abs(start), 1.5 * np.spacing(speed) / model.opt.timestep
    assert abs(momentum) < 1e-7 * max(stiffest, 1.0)
    np.testing.assert_allclose(
        acted_effort(model, state).joint_force, momentum, rtol=0, atol=resolved + 1e-13 * stiffest
    )


def test_controls_of_a_callback_act_at_the_times_of_the_stages() -> None:
    """An effort cos(300 t) on a slide at rest, with a step of 0.6 in its phase: Simpson's rule by hand."""
    model, h = slide("RK4", DRIVES["motor"]), 0.002
    data = mujoco.MjData(model)
    data.time = 0.001
    state = integration_state(model, data)
    try:
        mujoco.set_mjcb_control(lambda _, data: data.ctrl.fill(np.cos(300 * data.time)))
        acted = acted_effort(model, state)
    finally:
        mujoco.set_mjcb_control(None)
    first, middle, last = np.cos(300 * (0.001 + np.array([0, h / 2, h])))
    np.testing.assert_allclose((acted.effort, acted.reported), ([(first + 4 * middle + last) / 6], [last]), rtol=1e-12)


@pytest.mark.evidence("stages of a whole simulation", seconds=1)
def test_the_stages_of_runge_kutta_repeat_steps_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    model = loop("RK4")
    assert sum(1 for _ in steps(model, 200)) == 200
    euler = ((0.0, 1.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
    monkeypatch.setattr("loopcheck.engines.mujoco.acted_effort.STAGES", euler)
    with pytest.raises(EngineError, match="must end at the state of mj_step"):
        list(steps(model, 20))


def test_damping_between_trees_that_mujoco_drops_is_off_the_transmission() -> None:
    """The matrix of an implicit step has no element between two trees, so each gets a damping of its own."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option integrator="implicit" timestep=".01" gravity="0 0 0"/><worldbody>
        <body><joint name="x" type="slide"/><geom size=".1" mass="1"/></body>
        <body pos="0 1 0"><joint name="y" type="slide"/><geom size=".1" mass="2"/></body></worldbody>
        <tendon><fixed name="both"><joint joint="x" coef="1"/><joint joint="y" coef="-1"/></fixed></tendon>
        <actuator><velocity tendon="both" kv="30"/></actuator></mujoco>"""
    )
    along, kv, h = np.array([1.0, -1.0]), 30.0, 0.01
    for data, acceleration, velocity, acted in steps(model, 20):
        force = along * kv * (data.ctrl - along @ velocity) - h * kv * acceleration
        np.testing.assert_allclose(acted.joint_force, force, rtol=1e-12, atol=1e-12)
        effort = along @ force / 2
        np.testing.assert_allclose(acted.effort, effort, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(acted.off_transmission, force - along * effort, atol=1e-12)
        assert abs(acted.off_transmission).max() > 0.01 * abs(force).max()


def test_controls_and_applied_forces_replace_those_of_the_state() -> None:
    model = slide("implicitfast", DRIVES["velocity"])
    data = mujoco.MjData(model)
    plain = integration_state(model, data)
    data.ctrl[:], data.qfrc_applied[:] = 0.7, 2.0
    within = acted_effort(model, integration_state(model, data))
    given = acted_effort(model, plain, ctrl=[0.7], applied=[2.0])
    assert given.effort == within.effort != acted_effort(model, plain).effort
    assert model.opt.disableflags == 0


def test_scratch_data_leave_no_trace_in_later_steps() -> None:
    """As new data for each step: bit for bit, after other steps of the same scratch."""
    model = slide("RK4", DRIVES["velocity"])
    data, scratch, rng = mujoco.MjData(model), mujoco.MjData(model), np.random.default_rng(0)
    for _ in range(5):
        data.ctrl[:] = rng.normal(size=model.nu)
        state = integration_state(model, data)
        new, reused = acted_effort(model, state), acted_effort(model, state, scratch=scratch)
        for name in ("effort", "joint_force", "off_transmission", "reported"):
            np.testing.assert_array_equal(getattr(reused, name), getattr(new, name))
        mujoco.mj_step(model, data)


def test_bad_input_and_resets_are_refused() -> None:
    model = slide("Euler", DRIVES["motor"])
    data = mujoco.MjData(model)
    with pytest.raises(ShapeError, match=r"state_before .* shape \(\d+,\), got shape \(3,\)"):
        acted_effort(model, np.zeros(3))
    with pytest.raises(ShapeError, match=r"ctrl must be finite, with shape \(1,\), got NaN"):
        acted_effort(model, integration_state(model, data), ctrl=[np.nan])
    data.qvel[:] = 1e11
    with pytest.raises(EngineError, match="bad velocity of dof 0"), captured_warnings():
        acted_effort(model, integration_state(model, data))


def test_the_example_of_the_documentation_prints_its_output() -> None:
    assert doctest.testmod(module) == (0, 8)
