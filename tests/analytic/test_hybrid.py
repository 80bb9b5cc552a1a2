"""Hybrid dynamics: efforts and accelerations of undriven dofs, with derivatives, against `noc` and 50 digits."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.batch import HybridBatch, forward_dynamics, hybrid_dynamics, inverse_dynamics, trace_forward
from loopcheck.analytic.batch.trace import trace
from loopcheck.analytic.dynamics.forward import accelerations_by_noc
from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import LoopClosureError, MechanismError, ShapeError, SingularityError
from loopcheck.robots.mechanism import Actuator, Coordinate, Mechanism
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.studies.gradients.reference import WEIGHTS, changed
from tests import closed_chains
from tests.closed_chains import states
from tests.conftest import MODELS, CaseMaker
from tests.cpu_time import extended_but
from tests.fifty_digits import Hybrid

ROUND_OFF = 1e-12
"""Error of derivatives relative to the largest of their block, and of values relative to the peak [-]."""
BLOCKS = ("q", "qd", "qdd")


def _agrees(mechanism: Mechanism, q: Array, qd: Array, drives: Array) -> HybridBatch:
    """Compare values with `noc` at all samples, and derivatives with 50 digits at the last."""
    traced = trace_forward(mechanism, q[0])
    batch = hybrid_dynamics(mechanism, q, qd, drives, traced=traced, evaluator="numpy", derivatives=BLOCKS)
    wanted = needed_efforts(State(mechanism=mechanism, q=q, qd=qd), batch.qdd)
    np.testing.assert_allclose(batch.effort, wanted.effort, rtol=0, atol=ROUND_OFF * np.abs(wanted.effort).max())
    assert np.abs(wanted.unactuated).max() <= ROUND_OFF * np.abs(wanted.effort).max()
    np.testing.assert_allclose(batch.qdd @ mechanism.rates_of(mechanism.drives).T, drives, rtol=1e-12, atol=1e-12)
    driven = [k for k, dof in enumerate(batch.independent) if dof not in batch.undriven]
    independent = list(batch.independent)
    reference = Hybrid(traced.shape, driven, q[-1]).slopes(qd[-1, independent], batch.qdd[-1, independent][driven])
    for name, block in zip(BLOCKS, reference, strict=True):
        na = mechanism.na
        for found, exact in ((batch.derivatives, block[:na]), (batch.undriven_derivatives, block[na:])):
            assert np.abs(found[name][-1] - exact).max(initial=0) <= ROUND_OFF * np.abs(exact).max(initial=0)
    return batch


def _drives(mechanism: Mechanism, motion: Motion) -> Array:
    return motion.qdd @ mechanism.rates_of(mechanism.drives).T


@pytest.mark.parametrize("name", ["spinning_rod", "floating_rotors"])
def test_undriven_motions_and_their_derivatives(name: str, model_case: CaseMaker) -> None:
    """A spinning rod and a pendulum; a floating base with springs, a ball joint, and rotors on tendons."""
    case = model_case(MODELS / f"{name}.xml", configuration="vertical", amplitude=0.1, duration=0.5)
    motion, mechanism = prescribe(case), case.mechanism
    batch = _agrees(mechanism, motion.q, motion.qd, _drives(mechanism, motion))
    assert batch.undriven
    np.testing.assert_allclose(batch.qdd, motion.qdd, rtol=0, atol=ROUND_OFF * np.abs(motion.qdd).max())


@pytest.mark.parametrize("seed", extended_but([16], [16, 22], "test_random_chains_without_some_motors"))
def test_random_chains_without_some_motors(seed: int, tmp_path: Path, model_case: CaseMaker) -> None:
    """Seeds with floating bases, a ball joint, and both springs and dampers."""
    rng, path, floating = np.random.default_rng(seed), tmp_path / "chain.xml", seed != 16
    shape = closed_chains.Shape(planar=False, loops=2 + floating, floating=floating)
    assert closed_chains.closed_chain(shape, rng, path)
    case = model_case(path)
    motion = states(case, rng)
    mechanism = replace(case.mechanism, actuators=case.mechanism.actuators[::2])
    assert _agrees(mechanism, motion.q, motion.qd, _drives(mechanism, motion)).undriven


def _with_motor(mechanism: Mechanism, joint: str) -> Mechanism:
    """The mechanism with another motor, of a larger effort scale."""
    names = [joint.name for joint in mechanism.joints]
    coordinate = Coordinate(name=joint, joints=(names.index(joint),), weights=np.ones(1))
    motor = Actuator(name=joint, coordinate=coordinate, gear=-2.5, effort_scale=3.0)
    return replace(mechanism, actuators=(*mechanism.actuators, motor))


@pytest.fixture(scope="module")
def redundant(model_case: CaseMaker) -> tuple[Mechanism, Motion]:
    """The spinning rod with a second motor on its slider: two motors share the load of one dof, two are undriven."""
    case = model_case(MODELS / "spinning_rod.xml", amplitude=0.1, duration=0.5)
    return _with_motor(case.mechanism, "slide"), prescribe(case)


def test_redundant_drives_with_undriven_dofs(redundant: tuple[Mechanism, Motion]) -> None:
    mechanism, motion = redundant
    batch = _agrees(mechanism, motion.q, motion.qd, _drives(mechanism, motion))
    assert len(batch.undriven) == 2
    assert np.abs(batch.effort).max(axis=0).min() > 0.01 * np.abs(batch.effort).max()


def test_accelerations_of_redundant_drives_that_do_not_fit_are_refused(redundant: tuple[Mechanism, Motion]) -> None:
    mechanism, motion = redundant
    drives = _drives(mechanism, motion)
    drives[5, 1] += 1e-4
    with pytest.raises(
        LoopClosureError, match="accelerations of redundant drives must be consistent, but at sample 5 "
    ):
        hybrid_dynamics(mechanism, motion.q, motion.qd, drives)


def test_equals_inverse_dynamics_where_all_dofs_are_driven(prr: Case, prr_motion: Motion) -> None:
    """With gears, and the drives in the reverse order of the dofs."""
    mechanism = replace(prr.mechanism, actuators=tuple(replace(x, gear=49.0) for x in prr.mechanism.actuators[::-1]))
    drive, q = Drive(*(x[:, ::-1] for x in prr_motion.law(prr_motion.t))), prr_motion.q
    names, traced = (*BLOCKS, "parameters"), trace(mechanism, q[0])
    inverse = inverse_dynamics(mechanism, drive, q, traced=traced, evaluator="numpy", derivatives=names)
    batch = hybrid_dynamics(mechanism, q, prr_motion.qd, drive.qdd, evaluator="numpy", derivatives=names)
    assert batch.undriven == ()
    order = [[mechanism.dof_slices[j].start for j in mechanism.actuated_joints].index(dof) for dof in batch.independent]
    np.testing.assert_allclose(batch.effort, inverse.effort, rtol=0, atol=ROUND_OFF * np.abs(inverse.effort).max())
    for name in names:
        wanted = inverse.derivatives[name]
        wanted = wanted if name == "parameters" else wanted[..., order]
        np.testing.assert_allclose(batch.derivatives[name], wanted, rtol=0, atol=ROUND_OFF * np.abs(wanted).max())


def test_equals_forward_dynamics_without_drives(redundant: tuple[Mechanism, Motion]) -> None:
    mechanism, motion = replace(redundant[0], actuators=()), redundant[1]
    nothing, names = np.zeros((len(motion.t), 0)), ["q", "qd", "parameters"]
    forward = forward_dynamics(mechanism, motion.q, motion.qd, nothing, derivatives=names)
    batch = hybrid_dynamics(mechanism, motion.q, motion.qd, nothing, derivatives=names)
    assert batch.undriven == batch.independent == forward.independent
    np.testing.assert_array_equal(batch.qdd, forward.qdd)
    for name in names:
        np.testing.assert_array_equal(batch.undriven_derivatives[name], forward.derivatives[name])


def test_parameters_equal_differences_of_noc(redundant: tuple[Mechanism, Motion]) -> None:
    """Differences of fourth order."""
    mechanism, motion = redundant
    rows = slice(10, 30, 10)
    q, qd, step = motion.q[rows], motion.qd[rows], 3e-5
    batch = hybrid_dynamics(mechanism, q, qd, _drives(mechanism, motion)[rows], derivatives=["parameters"])
    mask = np.isin(np.arange(mechanism.nv), batch.independent)

    def values(b: int, k: int, step: float) -> Array:
        """Efforts and accelerations of the undriven dofs with a changed parameter, shape (nt, na + m)."""
        bodies = [changed(body, k, step) if i == b else body for i, body in enumerate(mechanism.bodies)]
        other = replace(mechanism, bodies=tuple(bodies))
        effort = needed_efforts(State(mechanism=other, q=q, qd=qd), batch.qdd).effort
        return np.hstack([effort, accelerations_by_noc(other, q, qd, effort, mask)[:, batch.undriven]])

    found = np.concatenate([x["parameters"] for x in (batch.derivatives, batch.undriven_derivatives)], axis=1)
    for b, k in np.ndindex(len(mechanism.bodies), 10):
        wanted = np.sum([weight * values(b, k, steps * step) for steps, weight in WEIGHTS.items()], axis=0) / step
        errors = np.abs(found[..., b, k] - wanted).max(axis=0) / np.abs(found).max(axis=(0, 2, 3))
        assert errors.max() <= 1e-11


@pytest.mark.skipif(find_spec("llvmlite") is None, reason="llvmlite is not installed: pip install 'loopcheck[fast]'")
def test_llvm_and_numpy_give_the_same(redundant: tuple[Mechanism, Motion]) -> None:
    mechanism, motion = redundant
    drives = _drives(mechanism, motion)
    llvm, numpy = (
        hybrid_dynamics(mechanism, motion.q, motion.qd, drives, evaluator=evaluator, derivatives=BLOCKS)
        for evaluator in ("llvm", "numpy")
    )
    for name in BLOCKS:
        for found, wanted in zip(
            (llvm.derivatives[name], llvm.undriven_derivatives[name]),
            (numpy.derivatives[name], numpy.undriven_derivatives[name]),
            strict=True,
        ):
            np.testing.assert_allclose(found, wanted, rtol=0, atol=ROUND_OFF * np.abs(wanted).max())


WEAK = """
<mujoco><worldbody>
<body name="a"><joint name="a" type="slide" axis="1 0 0"/><inertial mass="1" diaginertia="1 1 1" pos="0 0 0"/></body>
<body name="b"><joint name="b" type="slide" axis="1 0 0"/><inertial mass="1" diaginertia="1 1 1" pos="0 0 0"/></body>
<body name="c"><joint name="c" type="slide" axis="1 0 0"/><inertial mass="1" diaginertia="1 1 1" pos="0 0 0"/></body>
</worldbody><tendon><fixed name="sum"><joint joint="a" coef="-1"/><joint joint="b" coef="1"/>
<joint joint="c" coef="-0.003"/></fixed></tendon><equality><tendon tendon1="sum"/></equality>
<actuator><motor name="first" joint="a"/><motor name="second" joint="b"/></actuator></mujoco>"""
"""Drives that move alike but for 0.3 % of the motion of a third body."""


def test_a_drive_that_nearly_follows_from_others_is_refused(tmp_path: Path, model_case: CaseMaker) -> None:
    (tmp_path / "weak.xml").write_text(WEAK, encoding="utf-8")
    zeros = np.zeros((2, 3))
    with pytest.raises(SingularityError, match=r"but '(first|second)' nearly follows at sample 0"):
        hybrid_dynamics(model_case(tmp_path / "weak.xml").mechanism, zeros, zeros, zeros[:, :2])


def test_what_is_not_supported_is_refused(prr: Case, prr_motion: Motion, model_case: CaseMaker) -> None:
    q, qd = prr_motion.q[:4], prr_motion.qd[:4]
    with pytest.raises(ShapeError, match=r"qdd: shape must be \(4, 3\), got \(4, 7\)"):
        hybrid_dynamics(prr.mechanism, q, qd, prr_motion.qdd[:4])
    with pytest.raises(ShapeError, match=r"qd: numbers must be finite, got nan at index \(0, 0\)"):
        hybrid_dynamics(prr.mechanism, q, np.nan * qd, prr_motion.qdd[:4, :3])
    with pytest.raises(ShapeError, match="q: must have at least 1 sample, got 0"):
        hybrid_dynamics(prr.mechanism, q[:0], qd[:0], prr_motion.qdd[:0, :3])
    case = model_case(MODELS / "tendon_hand.xml")
    motion = prescribe(case)
    with pytest.raises(MechanismError, match="do not support the drive of tendon"):
        hybrid_dynamics(case.mechanism, motion.q, motion.qd, np.zeros((len(motion.q), len(case.mechanism.drives))))
