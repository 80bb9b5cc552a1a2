"""Every known issue is measured again: an issue that no longer reproduces fails here."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Source
from loopcheck.robots.mechanism import Closing
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load
from loopcheck.validation.check.audit.audit import audit, expected_terms
from loopcheck.validation.check.efforts.compare import relative_error
from loopcheck.validation.common.known_issues import Issue, known_issues
from tests.conftest import CaseMaker, want_engine
from tests.engines.mechanisms import OPEN_FOUR_BAR, SPATIAL
from tests.faults.adapters import mujoco_without_velocity_term, set_to

TUMBLING = """
<mujoco><option gravity="0 0 0"/><worldbody><body>
  <joint type="ball"/><inertial pos="0 0 0" mass="1" diaginertia="1 2 2.5"/>
</body></worldbody></mujoco>"""

LINK = """<robot name="link">
<link name="link">
<inertial>
<origin xyz="{center} 0 0"/>
<mass value="1"/>
<inertia ixx="0.001" iyy="0.002" izz="{izz!r}" ixy="0" ixz="0" iyz="0"/>
</inertial>
</link>
</robot>"""


ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "docs" / "reports"
"""Texts for the authors of engines, each with a script that reproduces the finding."""

BALL = """
import sys
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.multibody.tree import RevoluteJoint, SpatialInertia, UnitInertia
from pydrake.systems.analysis import Simulator

plant = MultibodyPlant(time_step=1e-3)
plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
rod = plant.AddRigidBody("rod", SpatialInertia(1.0, [0.5, 0, 0], UnitInertia(0.1, 0.4, 0.4)))
plant.AddJoint(RevoluteJoint("hinge", plant.world_frame(), rod.body_frame(), [0, 1, 0]))
post = plant.world_body()
if sys.argv[1] == "welded":
    post = plant.AddRigidBody("post", SpatialInertia(1.0, [0, 0, 0], UnitInertia(1, 1, 1)))
    plant.WeldFrames(plant.world_frame(), post.body_frame())
plant.AddBallConstraint(rod, [1, 0, 0], post, [1, 0, 0])
plant.Finalize()
Simulator(plant).AdvanceTo(0.01)
"""


@pytest.fixture
def error(prr: Case, prr_motion: Motion) -> Callable[..., float]:
    """Effort error of a source, by default on the 3-PRR."""

    def measure(source: str | Source, case: Case = prr, motion: Motion = prr_motion) -> float:
        route = engines.load(source) if isinstance(source, str) else source
        history = route.compute_efforts(case, motion)
        reference, scale = Noc().compute_efforts(case, motion).effort, effort_scale(case.mechanism, motion).scale
        return relative_error(history.effort, reference, scale)

    return measure


@pytest.fixture
def measures(
    error: Callable[..., float], prr: Case, prr_motion: Motion, model_case: CaseMaker, tmp_path: Path
) -> Mapping[str, Callable[[], float]]:
    return {
        "mujoco-soft-loops": partial(error, "mujoco/as_is"),
        "mujoco-implicit-actuator-force": partial(_reading_off, prr, prr_motion),
        "mujoco-inverse-of-soft-loops": partial(error, "mujoco/inverse"),
        "mujoco-joint-polynomial": partial(_last_number, "mujoco-joint-polynomial"),
        "mujoco-tendon-turning": partial(_last_number, "mujoco-tendon-turning"),
        "mujoco-compliance-floor": partial(_compliance_floor, prr, prr_motion),
        "mujoco-velocity-term": partial(_error_without_velocity_term, error),
        "mujoco-connect-anchor": _anchor_off,
        "mujoco-loops-that-cannot-close": partial(_last_number, "mujoco-loops-that-cannot-close"),
        "mujoco-integrate-pos": _order_of_plain_mean,
        "pinocchio-default-proximal": partial(_part_not_finite, prr, prr_motion),
        "pinocchio-absolute-residual": partial(_residual_reported, prr, prr_motion),
        "pinocchio-stale-constraint-frames": partial(_jacobian_off, prr, prr_motion),
        **{
            key: partial(_last_number, key) for key in ("pinocchio-lcaba-second-call", "pinocchio-first-dof-derivative")
        },
        **{key: partial(_last_number, key) for key in ("mujoco-limit-of-the-beginning", "mujoco-noslip-parts-loops")},
        "mjx-velocity-term": partial(_velocity_term, prr, prr_motion),
        "mjx-implicit-force-limit": partial(_last_number, "mjx-implicit-force-limit"),
        "mjx-hard-loops-in-single-precision": partial(_hard_in_single_precision, error),
        **{
            key: partial(_last_number, key)
            for key in ("mujoco-warp-velocity-term", "mujoco-warp-rows", "mujoco-warp-disabled-actuators")
        },
        "pybullet-torque-not-reported": partial(_torque_reported, prr, prr_motion),
        "pybullet-default-damping": partial(_error_with_damping, error),
        "pybullet-residual-threshold": partial(_error_with_threshold, error),
        "pybullet-dantzig-in-one-multibody": partial(_error_of_dantzig, error, model_case, tmp_path),
        "pybullet-zero-gear-ratio": partial(_gear_ratio_left, prr),
        "pybullet-triangle-inequality": partial(_part_of_moment_lost, tmp_path),
        "pybullet-anchors": partial(_anchor_from_origin, tmp_path),
        "pybullet-reaction-in-motion": partial(_last_number, "pybullet-reaction-in-motion"),
        "dart-servo-force-is-the-command": partial(_force_of_servos, prr, prr_motion),
        "dart-short-rotations": _short_rotation,
        "drake-inverse-dynamics": partial(_inverse_dynamics_off, prr, prr_motion),
        "drake-start": partial(_start_left, prr, prr_motion),
        "drake-ball-to-world": _part_that_crashes,
        **{
            key: partial(_last_number, key)
            for key in (
                "mujoco-stiff-drive-opens-loops",
                "newton-qfrc-actuator",
                "newton-skipped-closure",
                "newton-springs-left-out",
                "genesis-filled-in-rotor",
                "genesis-loop-on-the-world",
                "physx-dropped-friction",
                "physx-tgs-velocity",
                "physx-incoming-joint-force",
            )
        },
        "simbody-point-of-an-open-loop": partial(_directions_of_an_open_loop, model_case, tmp_path),
        "exudyn-torque-of-a-hinge": partial(_last_number, "exudyn-torque-of-a-hinge"),
    }


COMPILED = ("mjx", "newton", "genesis", "mujoco_warp")
"""Engines that compile for seconds."""


@pytest.mark.parametrize(
    "issue",
    [
        pytest.param(
            issue,
            marks=[pytest.mark.extended("test_a_known_issue_reproduces")] if issue.engine in COMPILED else [],
            id=issue.key,
        )
        for issue in known_issues()
    ],
)
def test_a_known_issue_reproduces(
    issue: Issue, measures: Mapping[str, Callable[[], float]], request: pytest.FixtureRequest, record_property: Any
) -> None:
    want_engine(issue.engine, request.config)
    measured = measures[issue.key]()
    record_property("measured", measured)
    low, high = issue.size
    assert low <= measured <= high, f"{issue.title}: want {issue.quantity} in [{low:g}, {high:g}], got {measured:g}"


def test_a_report_is_an_entry_with_a_short_file() -> None:
    """Each text states the version of the entry and its figure; the page of findings links to it."""
    issues = {issue.key: issue for issue in known_issues()}
    texts = [path for path in REPORTS.glob("*.md") if path.stem != "README"]
    assert {path.stem for path in texts} == {path.stem for path in REPORTS.glob("*.py")}
    findings = (ROOT / "validation/studies/atlas/FINDINGS.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"docs/reports/(.*?)\.md", findings)) == sorted(path.stem for path in texts)
    for path in texts:
        text, issue = path.read_text(encoding="utf-8"), issues[path.stem]
        assert len(path.with_suffix(".py").read_text(encoding="utf-8").splitlines()) < 40
        assert re.search(rf"Seen in .*{re.escape(re.findall(r'[0-9.]+[0-9]', issue.versions)[0])}", text), path
        figures = [
            float(figure) for figure in re.findall(r"[0-9.]+[0-9]", text.split("Measured: ")[1].split("\n\n")[0])
        ]
        assert any(issue.size[0] <= figure * factor <= issue.size[1] for figure in figures for factor in (1, 0.01)), (
            path
        )


def test_every_measurement_belongs_to_an_entry(measures: Mapping[str, Callable[[], float]]) -> None:
    assert [issue.key for issue in known_issues()] == list(measures)


@pytest.mark.parametrize("issue", known_issues(), ids=lambda issue: issue.key)
def test_an_entry_covers_the_installed_version(issue: Issue) -> None:
    if engines.installed(issue.engine):
        release = engines.versions()[issue.engine]
        later = (part.version for part in SpecifierSet(issue.versions) if part.operator == ">=")
        is_earlier = any(Version(release) < Version(first) for first in later)  # with another release than development
        assert issue.applies(release) or issue.stand_in or is_earlier


def test_what_a_route_avoids_is_not_there_by_itself(error: Callable[..., float]) -> None:
    """The measurements see the issue, not the route: without it the same errors are small."""
    assert error("mujoco/forward") < 1e-7
    if engines.installed("pybullet"):
        assert error("pybullet/forward") < 1e-7


def _error_without_velocity_term(error: Callable[..., float]) -> float:
    return error(mujoco_without_velocity_term())


def _compliance_floor(prr: Case, motion: Motion) -> float:
    from loopcheck.engines.mujoco.routes import forward

    reference, scale, factor = Noc().compute_efforts(prr, motion).effort, effort_scale(prr.mechanism, motion).scale, 0.2
    soft = forward.MujocoForward(forward.Settings(compliances=(factor,), steps=(5e-3,)))
    return relative_error(soft.compute_efforts(prr, motion).effort, reference, scale) / factor


def _reading_off(prr: Case, motion: Motion) -> float:
    """Servos in place of the motors; soft, so that they lag and the motion remains smooth."""
    mujoco = pytest.importorskip("mujoco")
    from loopcheck.engines.mujoco import as_is
    from loopcheck.engines.mujoco.stepper import MujocoStepper
    from loopcheck.robots.formats.mjcf import compile_model

    def servos(spec: Any) -> None:
        for motor in spec.actuators:
            motor.set_to_position(kp=2000, kv=200)

    model = compile_model(prr.mechanism.model, servos)
    model.opt.gravity[:], model.opt.integrator = prr.mechanism.gravity, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    record = as_is.simulate(as_is.plan(prr.mechanism, motion), MujocoStepper(model), 50.0)
    late = record.controller.t > 0.2
    difference = (record.readings["reported"] - record.acted)[late]
    return float(np.sqrt(np.mean(difference**2)) / np.abs(record.acted[late]).max())


def _torque_reported(prr: Case, motion: Motion) -> float:
    as_is = engines.load("pybullet/as_is").compute_efforts(prr, motion).as_is
    assert as_is is not None
    return float(np.abs(as_is.log.readings["reported"]).max() / np.abs(as_is.log.effort).max())


def _anchor_off() -> float:
    mujoco = pytest.importorskip("mujoco")
    robot = load("3prr")
    text = (robot.folder / robot.mjcf).read_text(encoding="utf-8")
    sites = '<connect name="q8" site1="platform2" site2="link2_end"/>'
    bodies = '<connect name="q8" body1="platform" body2="link2" anchor="0.225 -0.12990381056766578 0"/>'
    assert sites in text
    model = mujoco.MjModel.from_xml_string(text.replace(sites, bodies))
    return float(np.linalg.norm(model.equality("q8").data[3:6] - model.site("link2_end").pos))


def _order_of_plain_mean() -> float:
    from loopcheck.engines.mujoco import _stepping

    with patch.object(_stepping, "_turning_dofs", lambda model: []):
        coarse, middle, fine = (_tumbled(dt) for dt in (0.02, 0.01, 0.005))
    return float(np.log2(np.abs(middle - coarse).max() / np.abs(fine - middle).max()))


def _tumbled(dt: float) -> Array:
    """Attitude of a tumbling body after a second, by the integrator that is not MuJoCo's."""
    from loopcheck.engines.mujoco._stepping import Stepping

    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(TUMBLING)
    model.opt.timestep = dt
    data = mujoco.MjData(model)
    data.qvel[:] = (3, 0.2, 2)

    step = Stepping(model, data)
    for _ in range(round(1 / dt)):
        mujoco.mj_forward(model, data)
        step()
    return np.array(data.qpos)


def _accelerations(prr: Case, motion: Motion, proximal: Any) -> Array:
    """Of the closed loop with held drives, at a sample of the motion."""
    from loopcheck.engines.pinocchio._simulation import Simulation, Solver

    k, mechanism = 37, prr.mechanism
    simulation = Simulation(mechanism, mechanism.drives, Solver())
    simulation.put(motion.q[k], motion.qd[k])
    simulation._proximal = proximal
    return simulation.acceleration(np.zeros(mechanism.nv), np.stack(motion.law(motion.t[[k]]), axis=1)[0])


def _part_not_finite(prr: Case, motion: Motion) -> float:
    pin = pytest.importorskip("pinocchio")
    return 1 - float(np.isfinite(_accelerations(prr, motion, pin.ProximalSettings())).mean())


def _residual_reported(prr: Case, motion: Motion) -> float:
    pin = pytest.importorskip("pinocchio")
    proximal = pin.ProximalSettings(1e-9, 0.0, 1e-6, 50)
    found = _accelerations(prr, motion, proximal)
    np.testing.assert_allclose(found, motion.qdd[37], atol=1e-12)
    return float(proximal.absolute_residual)


def _jacobian_off(prr: Case, motion: Motion) -> float:
    pin = pytest.importorskip("pinocchio")
    from loopcheck.engines.pinocchio._loops import closure_jacobian, gathered, loop_constraints
    from loopcheck.engines.pinocchio._tree import build

    tree = build(prr.mechanism)
    fresh = closure_jacobian(tree, gathered(loop_constraints(tree)), motion.q[37])
    loops = gathered(loop_constraints(tree))
    pin.computeJointJacobians(tree.model, tree.data, tree.positions(motion.q[37]))
    stale = pin.getConstraintsJacobian(tree.model, tree.data, loops.models, loops.datas)
    return float(np.abs(stale - fresh).max() / np.abs(fresh).max())


def _velocity_term(case: Case, motion: Motion) -> float:
    found = engines.matrices("mjx", case.mechanism, motion.q[::5], motion.qd[::5])
    J = found.J @ motion.qdd[::5, :, None]
    assert found.solver_bias is not None
    return float(np.abs(found.solver_bias).max() / np.abs(J).max())


def _hard_in_single_precision(error: Callable[..., float]) -> float:
    from loopcheck.engines.mjx.routes.forward import OWN_SINGLE, MjxForward

    return error(MjxForward(replace(OWN_SINGLE, compliances=(1.0, 2.0))))


def _error_with_damping(error: Callable[..., float]) -> float:
    return error(set_to("pybullet/forward", damping=0.04))


def _error_with_threshold(error: Callable[..., float]) -> float:
    from loopcheck.engines.pybullet.routes.forward import PybulletForward, Settings

    return error(PybulletForward(Settings(residual=1e-7)))


def _error_of_dantzig(error: Callable[..., float], model_case: CaseMaker, folder: Path) -> float:
    from loopcheck.engines.pybullet.routes import forward

    path = folder / "spatial.xml"
    path.write_text(SPATIAL, encoding="utf-8")
    case, plan = model_case(path, amplitude=0.15), forward._plan
    with patch.object(forward, "_plan", lambda *about: replace(plan(*about), direct=True)):
        return error(forward.PybulletForward(forward.Settings(parts=(2,))), case, prescribe(case))


@contextmanager
def _bullet() -> Iterator[Any]:
    from loopcheck.engines.pybullet._world import pybullet, silenced

    with silenced():
        client = pybullet.connect(pybullet.DIRECT)
        try:
            yield pybullet
        finally:
            pybullet.disconnect(client)


def _body(bullet: Any, folder: Path, *, center: float = 0.0, izz: float = 0.003) -> int:
    path = folder / "link.urdf"
    path.write_text(LINK.format(center=center, izz=izz), encoding="utf-8")
    return int(bullet.loadURDF(str(path), flags=bullet.URDF_USE_INERTIA_FROM_FILE))


def _gear_ratio_left(prr: Case) -> float:
    from loopcheck.engines.pybullet._world import opened, pybullet

    with opened(prr.mechanism) as world:
        first, second = world.joints[:2]
        ends, none = (world.tree, first, world.tree, second), [0.0, 0.0, 0.0]
        gear = pybullet.createConstraint(*ends, pybullet.JOINT_GEAR, none, none, none, physicsClientId=world.client)
        for ratio in (-0.5, 0.0):
            pybullet.changeConstraint(gear, gearRatio=ratio, physicsClientId=world.client)
        return float(pybullet.getConstraintInfo(gear, physicsClientId=world.client)[11])


def _part_of_moment_lost(folder: Path) -> float:
    izz = float(np.nextafter(0.003, 1))
    with _bullet() as bullet:
        moments = bullet.getDynamicsInfo(_body(bullet, folder, izz=izz), -1)[2]
    return 1 - moments[2] / izz


def _anchor_from_origin(folder: Path) -> float:
    """Distance of the link's origin from the point of the world that its anchor at (0, 0, 0) is drawn to."""
    with _bullet() as bullet:
        body = _body(bullet, folder, center=0.1)
        bullet.resetBasePositionAndOrientation(body, [0.3, 0, 0], [0, 0, 0, 1])
        zero = [0.0, 0.0, 0.0]
        hold = bullet.createConstraint(body, -1, -1, -1, bullet.JOINT_FIXED, zero, zero, zero)
        bullet.changeConstraint(hold, maxForce=1e9)
        for _ in range(1000):
            bullet.stepSimulation()
        center, attitude = bullet.getBasePositionAndOrientation(body)
        R = np.array(bullet.getMatrixFromQuaternion(attitude)).reshape(3, 3)
        offset = np.array(bullet.getDynamicsInfo(body, -1)[3])
    return float(np.linalg.norm(center - R @ offset))


def _directions_of_an_open_loop(model_case: CaseMaker, folder: Path) -> float:
    """Largest entry of the loop Jacobian across the rows that follow from the positions of both points."""
    path = folder / "oblique.xml"
    path.write_text(OPEN_FOUR_BAR, encoding="utf-8")
    case = model_case(path, amplitude=0.1)
    as_read = replace(case.mechanism, closing=Closing())  # whose audit keeps what the gap of the file hides
    case = replace(case, mechanism=as_read)
    motion = prescribe(case)
    rows = audit(case, expected_terms(case, motion), "simbody")
    return float(next(row["error"] for row in rows if row["quantity"] == "forbidden directions"))


def _force_of_servos(prr: Case, motion: Motion) -> float:
    dartpy = pytest.importorskip("dartpy")
    from loopcheck.engines.dart.simulation import DartRobot

    robot = DartRobot(prr.mechanism, 1.0)
    robot.put(motion.q[10], motion.qd[10])
    servos = [robot.tree.joints[drive.joints[0]][0] for drive in prr.mechanism.drives]
    for servo in servos:
        servo.setActuatorType(dartpy.dynamics.ActuatorType.SERVO)
        servo.setForceUpperLimit(0, 1e9)
        servo.setForceLowerLimit(0, -1e9)
        servo.setCommand(0, servo.getVelocity(0))
    robot.world.step(False)
    said, acted = (np.array([read(servo) for servo in servos]) for read in (_said, lambda s: s.getConstraintImpulse(0)))
    return float(np.abs(said).max() / np.abs(acted / robot.timestep).max())


def _said(servo: Any) -> float:
    return float(servo.getForce(0))


def _short_rotation() -> float:
    dartpy = pytest.importorskip("dartpy")
    joint, body = dartpy.dynamics.Skeleton("ball").createBallJointAndBodyNodePair(None)
    angle = 0.99e-3
    joint.setPositions([0.0, angle, 0.0])
    right = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    return float(np.abs(body.getWorldTransform().rotation() - right).max())


def _inverse_dynamics_off(prr: Case, motion: Motion) -> float:
    pytest.importorskip("pydrake")
    from loopcheck.engines.drake._plant import build, trees

    drake, k = build(prr.mechanism), 30
    T = drake.rates(motion.q[k])
    drake.put(motion.q[k], motion.qd[k])
    forces = trees.MultibodyForces(drake.plant)
    drake.plant.CalcForceElementsContribution(drake.context, forces)
    tree = T.T @ drake.plant.CalcInverseDynamics(drake.context, T @ motion.qdd[k], forces)
    wanted = Noc().compute_efforts(prr, motion).effort[k]
    driven = [prr.mechanism.dof_slices[drive.joints[0]].start for drive in prr.mechanism.drives]
    return float(np.abs(tree[driven] - wanted).max() / np.abs(wanted).max())


def _start_left(prr: Case, motion: Motion) -> float:
    pytest.importorskip("pydrake")
    from loopcheck.engines.drake.routes.forward import DrakeForward, Settings

    start, wanted = motion.assemble(motion.t[:5]), Noc().compute_efforts(prr, motion).effort[0]
    five, ten = (
        np.abs(DrakeForward(Settings(parts=(32,), lead=lead)).compute_efforts(prr, start).effort[0] - wanted).max()
        for lead in (5, 10)
    )
    return float(five / ten)


def _last_number(report: str) -> float:
    """Last output of a report's script, run in a process of its own as by its recipient."""
    command = [sys.executable, "-W", "ignore", str(REPORTS / f"{report}.py")]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()[-1])


def _part_that_crashes() -> float:
    pytest.importorskip("pydrake")
    crash = [
        subprocess.run([sys.executable, "-c", BALL, world], capture_output=True, check=False).returncode < 0
        for world in ("bare", "welded")
    ]
    return float(crash[0]) - float(crash[1])
