"""Derivatives of the batch against 50-digit differences through the solved loops, and against `noc`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.batch import derivatives, forward_dynamics, inverse, inverse_dynamics, trace_forward
from loopcheck.analytic.batch.gradient import CONSTANTS, Gradient
from loopcheck.analytic.batch.trace import Shape, shape_of, trace
from loopcheck.analytic.dynamics.forward import accelerations_by_noc, dependent_velocities
from loopcheck.analytic.dynamics.lagrange import Lagrange, lengths
from loopcheck.analytic.dynamics.noc import Noc, needed_efforts, tree_model
from loopcheck.analytic.kinematics.closures import closure_jacobian_at
from loopcheck.analytic.kinematics.continuation import close, conditioning
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.catalogue import names
from loopcheck.robots.errors import LoopClosureError, MechanismError, NotFoundError, ShapeError, SingularityError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case, load, make_case, representative_case
from loopcheck.robots.size import size
from loopcheck.validation.studies.gradients.reference import changed
from tests import closed_chains
from tests.analytic.test_batch import PLAIN, UNDRIVEN
from tests.closed_chains import states
from tests.conftest import MODELS, CaseMaker
from tests.cpu_time import extended_but
from tests.derivative_errors import BLOCKS, errors
from tests.fifty_digits import slopes

ROUND_OFF = 1e-12
"""Error relative to the largest derivative of its block [-], where the conditioning exceeds 0.03."""
SAME = 1e-13
"""Error of efforts by the same equations in another order, relative to the peak [-]."""
STEP = 1e-6
"""Step of differences in double precision [any unit]."""
NEEDS_LLVM = pytest.mark.skipif(
    find_spec("llvmlite") is None, reason="llvmlite is not installed: pip install 'loopcheck[fast]'"
)


def _agrees(mechanism: Mechanism, q: Array, drive: Drive) -> None:
    """Compare the derivatives at two closed samples."""
    for found in errors(mechanism, q, drive, sorted({len(q) // 3, len(q) - 1})):
        assert found.of_blocks.max() <= found.bound


def test_equal_50_digit_differences_on_the_zoo(zoo_name: str, zoo_case: Case, zoo_motion: Motion) -> None:
    """Welds, ball and universal joints, coordinate closures, slides and trees."""
    if zoo_name in UNDRIVEN | PLAIN | {"six_legs"}:
        pytest.skip("not traced, or long")
    _agrees(zoo_case.mechanism, zoo_motion.q, zoo_motion.law(zoo_motion.t))


def test_equal_50_digit_differences_with_redundant_drives() -> None:
    case = make_case(load("2pur2rpu"), variant="default", mode="home", configuration="vertical")
    actuators = (replace(actuator, effort_scale=1.0 + k) for k, actuator in enumerate(case.mechanism.actuators))
    mechanism, motion = replace(case.mechanism, actuators=tuple(actuators)), prescribe(case)
    rows = slice(90, 93)
    _agrees(mechanism, motion.q[rows], Drive(*(x[rows] for x in motion.law(motion.t))))


def test_equal_50_digit_differences_with_springs_that_are_slack_for_a_while(model_case: CaseMaker) -> None:
    case = model_case(MODELS / "strutted_four_bar.xml", configuration="vertical", amplitude=0.3)
    motion = prescribe(case)
    length = lengths(case.mechanism, State.at_rest(case.mechanism, motion.q).poses)
    rests = np.quantile(length, [0.3, 0.7], axis=0).T
    inside = (length > rests[:, 0]) & (length < rests[:, 1])
    assert inside.any(axis=0).all()
    springs = zip(case.mechanism.point_springs, rests.tolist(), strict=True)
    mechanism = replace(
        case.mechanism, point_springs=tuple(replace(spring, rest=tuple(rest)) for spring, rest in springs)
    )
    rows = [int(length[:, 0].argmin()), int(length[:, 0].argmax()), int(inside[:, 0].argmax())]
    drive = Drive(*(x[rows] for x in motion.law(motion.t)))
    _agrees(mechanism, motion.q[rows], drive)
    exact = needed_efforts(State(mechanism=mechanism, q=motion.q[rows], qd=motion.qd[rows]), motion.qdd[rows]).effort
    batch = inverse_dynamics(
        mechanism, drive, motion.q[rows], traced=trace(mechanism, motion.q[rows[0]]), evaluator="numpy"
    )
    np.testing.assert_allclose(batch.effort, exact, rtol=0, atol=ROUND_OFF * np.abs(exact).max())


def test_equal_50_digit_differences_with_gears(prr: Case, prr_motion: Motion) -> None:
    """The reciprocal of 49 times 49 is not 1."""
    actuators = tuple(replace(actuator, gear=49.0) for actuator in prr.mechanism.actuators[::-1])
    rows = slice(0, 3)
    drive = Drive(*(x[rows, ::-1] for x in prr_motion.law(prr_motion.t)))
    _agrees(replace(prr.mechanism, actuators=actuators), prr_motion.q[rows], drive)


@pytest.mark.evidence("derivatives with quaternions to 50 digits", seconds=0.9)
@pytest.mark.parametrize("sign", [0, -1], ids=["away from rest", "at rest, the quaternion negated"])
@pytest.mark.parametrize(("kind", "seed"), [("ball", 16), ("free", 22)])
def test_equal_50_digit_differences_with_springs_of_turns_in_space(
    kind: str, seed: int, sign: int, tmp_path: Path, model_case: CaseMaker
) -> None:
    """Also the efforts, by both analytic sources; at rest, the angle over its sine is 0/0."""
    rng, path, floating = np.random.default_rng(seed), tmp_path / "chain.xml", kind == "free"
    assert closed_chains.closed_chain(
        closed_chains.Shape(planar=False, loops=2 + floating, floating=floating), rng, path
    )
    case = model_case(path)
    (k,) = (k for k, joint in enumerate(case.mechanism.joints) if joint.kind == kind)
    rest = case.guess[case.mechanism.q_slices[k]] * [*[1] * 3 * floating, *[sign] * 4]
    rest = rest if sign else rng.normal(size=rest.shape)
    joint = replace(case.mechanism.joints[k], stiffness=90.0, spring_reference=rest, damping=3.0, armature=0.2)
    joints = (*case.mechanism.joints[:k], joint, *case.mechanism.joints[k + 1 :])
    case = replace(case, mechanism=replace(case.mechanism, joints=joints))
    motion, rates = states(case, rng), case.mechanism.rates_of(case.mechanism.drives).T
    drive = Drive(case.mechanism.values_of(case.mechanism.drives, motion.q), motion.qd @ rates, motion.qdd @ rates)
    traced = trace(case.mechanism, motion.q[0])
    batch = inverse_dynamics(case.mechanism, drive, motion.q, traced=traced, evaluator="numpy")
    assert batch.plain == 0
    for source in (Noc(), Lagrange()):
        wanted = source.compute_efforts(case, motion).effort  # with motors on joints that loops lock
        np.testing.assert_allclose(batch.effort, wanted, rtol=0, atol=SAME * np.abs(wanted).max())
    _agrees(case.mechanism, motion.q[-1:], Drive(*(x[-1:] for x in drive)))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.evidence("derivatives of two large robots", seconds=1.5))
        if name in ("6x6r", "6spu")
        else name
        for name in names()
    ],
)
def test_equal_50_digit_differences_on_every_robot(name: str) -> None:
    case = representative_case(load(name))
    motion = prescribe(case)
    if name in PLAIN:
        pytest.skip("not traced")
    _agrees(case.mechanism, motion.q, motion.law(motion.t))


@pytest.mark.parametrize(
    "seed",
    extended_but(
        (seed for seed in range(12) if seed % 3 != 2),
        range(12),
        "test_equal_50_digit_differences_with_springs_of_turns_in_space",
    ),
)
def test_equal_50_digit_differences_on_random_closed_chains(seed: int, tmp_path: Path, model_case: CaseMaker) -> None:
    """Planar, spatial and floating mechanisms: redundant rows, all kinds of joints and closures."""
    rng, path = np.random.default_rng(seed), tmp_path / "chain.xml"
    floating = seed % 3 == 2
    shape = closed_chains.Shape(planar=seed % 3 == 0, loops=3 if floating else 2, floating=floating)
    assert closed_chains.closed_chain(shape, rng, path)
    case = model_case(path)
    motion, rates = states(case, rng), case.mechanism.rates_of(case.mechanism.drives).T
    drive = Drive(case.mechanism.values_of(case.mechanism.drives, motion.q), motion.qd @ rates, motion.qdd @ rates)
    _agrees(case.mechanism, motion.q, drive)


def test_equal_differences_of_noc(prr: Case, prr_motion: Motion) -> None:
    """Differences of the plain version, which shares no equation with the traces."""
    rows, step = slice(0, 100, 20), 2e-6
    q, drive = prr_motion.q[rows], Drive(*(x[rows] for x in prr_motion.law(prr_motion.t)))
    traced = trace(prr.mechanism, q[0])
    batch = inverse_dynamics(prr.mechanism, drive, q, traced=traced, evaluator="numpy", derivatives=BLOCKS)

    def plain(name: str, j: int, distance: float) -> Array:
        moved = getattr(drive, name) + distance * np.eye(3)[j]
        return inverse_dynamics(prr.mechanism, drive._replace(**{name: moved}), q, evaluator="plain").effort

    for name in BLOCKS:
        found = batch.derivatives[name]
        for j in range(3):
            wanted = (plain(name, j, step) - plain(name, j, -step)) / (2 * step)
            assert np.abs(found[..., j] - wanted).max() <= 1e-7 * np.abs(found).max()


@pytest.mark.parametrize("name", ["3prr", "2pur2rpu"])
def test_efforts_are_linear_in_inertial_parameters(name: str) -> None:
    """The change of the efforts by `noc` with a changed parameter of a body is exact at any step."""
    case = representative_case(load(name))
    mechanism, motion = case.mechanism, prescribe(case)
    rows = slice(0, 60, 20)
    q, drive = motion.q[rows], Drive(*(x[rows] for x in motion.law(motion.t)))
    traced = trace(mechanism, q[0])
    batch = inverse_dynamics(mechanism, drive, q, traced=traced, evaluator="numpy", derivatives=["parameters"])
    found = batch.derivatives["parameters"]
    assert found.shape == (3, mechanism.na, len(mechanism.bodies), CONSTANTS)
    for b in (0, len(mechanism.bodies) - 1):
        for k in range(CONSTANTS):
            bodies = tuple(changed(body, k, 1.0) if i == b else body for i, body in enumerate(mechanism.bodies))
            after = inverse_dynamics(replace(mechanism, bodies=bodies), drive, q, evaluator="plain").effort
            scale = np.abs(after).max() + np.abs(found[:, :, b]).max()
            np.testing.assert_allclose(after - batch.effort, found[:, :, b, k], rtol=0, atol=ROUND_OFF * scale)


@NEEDS_LLVM
@pytest.mark.parametrize("count", [1, 8, 13, 512, 5000])
def test_llvm_and_numpy_give_the_same(
    prr: Case, prr_motion: Motion, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derivatives, "shape_of", lambda *_: pytest.fail("samples of machine code are traced again"))
    drive = prr_motion.law(np.linspace(prr_motion.t[0], prr_motion.t[-1], count))
    traced = trace(prr.mechanism, prr_motion.q[0])
    found = [
        inverse_dynamics(prr.mechanism, drive, prr_motion.q[0], traced=traced, evaluator=evaluator, derivatives=["qd"])
        for evaluator in ("llvm", "numpy")
    ]
    llvm, numpy = (batch.derivatives["qd"] for batch in found)
    assert llvm.shape == (count, 3, 3)
    np.testing.assert_allclose(llvm, numpy, rtol=0, atol=ROUND_OFF * np.abs(numpy).max())


@NEEDS_LLVM
def test_auto_compiles_when_calls_have_taken_as_long(
    prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small batches, as of an optimizer: the third call pays for the compiler, for this trace only."""
    monkeypatch.setattr(inverse, "STARTING", 0.0)
    monkeypatch.setattr(inverse, "COMPILING", 2.5 * inverse.CALL * inverse.DISPATCHING)
    monkeypatch.setattr(inverse, "is_compiled", lambda _: False)
    ran = []
    for _ in range(2):
        traced = trace_forward(prr.mechanism, prr_motion.q[0])
        ran.append([inverse.runs_compiled(traced, 10, "auto") for _ in range(4)])
    assert ran == 2 * [[False, False, True, True]]


def test_weak_pivots_are_chosen_again(prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch) -> None:
    drive, q = prr_motion.law(prr_motion.t), prr_motion.q
    wanted = inverse_dynamics(prr.mechanism, drive, q[0], evaluator="numpy", derivatives=["q"]).derivatives["q"]
    poses = []

    def counted(mechanism: Mechanism, q: Array, independent: list[int]) -> Shape:
        poses.append(q)
        return shape_of(mechanism, q, independent)

    traced = trace(prr.mechanism, q[0])
    monkeypatch.setattr(derivatives, "WEAK", 0.99)
    monkeypatch.setattr(derivatives, "shape_of", counted)
    interpreted = derivatives._interpreted

    def without_weak(traced: Gradient, inputs: list[Array]) -> Array:
        values = interpreted(traced, inputs)
        values[1:, values[traced.blocks["guard"]][0] < derivatives.WEAK] = np.nan
        return values

    monkeypatch.setattr(derivatives, "_interpreted", without_weak)
    found = inverse_dynamics(prr.mechanism, drive, q[0], traced=traced, evaluator="numpy", derivatives=["q"])
    assert len(poses) > 1
    np.testing.assert_allclose(found.derivatives["q"], wanted, rtol=0, atol=ROUND_OFF * np.abs(wanted).max())


def test_a_sample_near_a_singularity_is_refused(prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch) -> None:
    drive, traced = prr_motion.law(prr_motion.t), trace(prr.mechanism, prr_motion.q[0])
    Phi_u = closure_jacobian_at(prr.mechanism, prr_motion.q)[..., traced.shape.dependent]
    ratios = conditioning(Phi_u)[0]
    monkeypatch.setattr(derivatives, "RESOLVED", 1.001 * ratios.min())
    with pytest.raises(SingularityError, match=f"derivatives at sample {ratios.argmin()} are not resolved"):
        inverse_dynamics(prr.mechanism, drive, prr_motion.q[0], traced=traced, derivatives=["q"])


def test_what_is_unknown_or_not_traced_is_refused(prr: Case, prr_motion: Motion, model_case: CaseMaker) -> None:
    drive = prr_motion.law(prr_motion.t)
    with pytest.raises(NotFoundError, match=r"unknown derivative: 'qdot'.*Known: q, qd, qdd, parameters"):
        inverse_dynamics(prr.mechanism, drive, prr_motion.q[0], derivatives=["qdot"])
    sprung = model_case(MODELS / "tendon_hand.xml")
    motion = prescribe(sprung)
    with pytest.raises(MechanismError, match="the traced equations do not support"):
        inverse_dynamics(sprung.mechanism, motion.law(motion.t), motion.q[0], derivatives=["q"])


def _moved(mechanism: Mechanism, q: Array, mask: AnyArray, step: Array) -> Array:
    """Poses after a step of the independent dofs, with the loops closed."""
    return np.concatenate(
        [close(mechanism, row[None], ~mask)[0] for row in retract(mechanism, q, np.tile(step, (len(q), 1)))]
    )


def test_forward_equals_differences_of_noc(zoo_name: str, zoo_case: Case, zoo_motion: Motion) -> None:
    """Undriven dofs, ball and free joints: closed again by Newton's method, accelerations by `noc`."""
    if zoo_name == "six_legs":
        pytest.skip("long")
    mechanism, rows = zoo_case.mechanism, slice(0, 12, 4)
    if zoo_name in UNDRIVEN:
        assert mechanism.na < len(trace_forward(mechanism, zoo_motion.q[0]).shape.independent)
    _forward_agrees(mechanism, zoo_motion.q[rows], zoo_motion.qd[rows])


def test_forward_equals_50_digit_differences(prr: Case, prr_motion: Motion) -> None:
    """With the inverse dynamics held, the derivative of the accelerations is −M⁻¹ times that of the efforts."""
    mechanism, rows, k = prr.mechanism, slice(30, 31), 30
    effort = np.array([[1.0, -2.0, 0.5]])
    batch = forward_dynamics(mechanism, prr_motion.q[rows], prr_motion.qd[rows], effort, derivatives=["q", "qd"])
    dofs = [mechanism.dof_slices[j].start for j in mechanism.actuated_joints]
    assert dofs == list(batch.independent)
    law = prr_motion.law(prr_motion.t)
    drive = Drive(law.q[k], law.qd[k], batch.qdd[0, dofs])
    of_q, of_qd, M = slopes(trace(mechanism, prr_motion.q[k]), prr_motion.q[k], drive)
    for name, block in (("q", of_q), ("qd", of_qd)):
        wanted = -np.linalg.solve(M, block)
        assert np.abs(batch.derivatives[name][0] - wanted).max() <= ROUND_OFF * np.abs(wanted).max()


def test_forward_equals_differences_of_noc_with_redundant_drives() -> None:
    case = make_case(load("2pur2rpu"), variant="default", mode="home", configuration="vertical")
    motion = prescribe(case)
    _forward_agrees(case.mechanism, motion.q[60:180:60], motion.qd[60:180:60])


def _forward_agrees(mechanism: Mechanism, q: Array, qd: Array) -> None:
    effort = np.random.default_rng(0).normal(size=(len(q), mechanism.na))
    batch = forward_dynamics(mechanism, q, qd, effort, derivatives=["q", "qd", "effort", "parameters"], loops=True)
    mask = np.zeros(mechanism.nv, bool)
    mask[list(batch.independent)] = True
    n, free = len(batch.independent), qd[:, mask]

    def accelerations(q: Array, free: Array, effort: Array, mechanism: Mechanism = mechanism) -> Array:
        return accelerations_by_noc(mechanism, q, dependent_velocities(mechanism, q, free, mask), effort, mask)

    def loop_forces(q: Array, free: Array, effort: Array, mechanism: Mechanism = mechanism) -> Array:
        state = State(mechanism=mechanism, q=q, qd=dependent_velocities(mechanism, q, free, mask))
        required = tree_model(state).force(accelerations(q, free, effort, mechanism), state.qd)
        return required - effort @ mechanism.selection

    force, most = np.asarray(batch.loop_force), np.abs(effort).max()
    cut = tree_model(State.at_rest(mechanism, q))
    weights = np.abs(cut.G).max()  # cancel in the forces of the loops
    moments = size(mechanism) * np.abs(mechanism.stacked.weights).sum()
    falls = moments / np.diagonal(cut.M, axis1=1, axis2=2).max()  # cancels in the accelerations of a balance
    values: list[tuple[Callable[..., Array], AnyArray, Array, Mapping[str, Array]]] = [
        (accelerations, mask, batch.qdd, batch.derivatives)
    ]
    if mechanism.closures:
        values.append((loop_forces, np.ones_like(mask), force, batch.loop_derivatives))
    else:
        assert np.abs(force).max() < 1e-10 * most
    for function, rows, found, slopes_of in values:
        peak = max(np.abs(found).max(), weights if function is loop_forces else falls)
        np.testing.assert_allclose(found, function(q, free, effort), rtol=0, atol=1e-10 * peak)
        for j, step in enumerate(STEP * np.eye(mechanism.nv)[mask]):
            sides = [function(_moved(mechanism, q, mask, s * step), free, effort) for s in (1, -1)]
            _is_slope(slopes_of["q"][..., j], sides, rows, peak)
            sides = [function(q, free + s * STEP * np.eye(n)[j], effort) for s in (1, -1)]
            _is_slope(slopes_of["qd"][..., j], sides, rows, peak)
        for j in range(mechanism.na):
            sides = [function(q, free, effort + s * STEP * np.eye(mechanism.na)[j]) for s in (1, -1)]
            _is_slope(slopes_of["effort"][..., j], sides, rows, peak)
        *others, last = mechanism.bodies
        sizes = np.repeat([last.mass, np.sqrt(last.mass * last.inertia.max()), last.inertia.max()], [1, 3, 6])
        for k, each in enumerate(sizes):
            bodies = [(*others, changed(last, k, s * STEP * each)) for s in (1, -1)]
            sides = [function(q, free, effort, replace(mechanism, bodies=b)) for b in bodies]
            _is_slope(slopes_of["parameters"][:, :, -1, k] * each, sides, rows, peak)


def _is_slope(found: Array, sides: list[Array], mask: AnyArray, peak: float) -> None:
    wanted = ((sides[0] - sides[1]) / (2 * STEP))[:, mask]
    assert np.abs(found - wanted).max() <= 1e-6 * (np.abs(wanted).max() + 1e-3 * peak)


def test_open_loops_are_refused(prr: Case, prr_motion: Motion) -> None:
    q, qd, effort = prr_motion.q[:3], prr_motion.qd[:3].copy(), np.zeros((3, 3))
    with pytest.raises(LoopClosureError, match=r"loops must be closed to 1e-09, got .* at sample"):
        forward_dynamics(prr.mechanism, q + 1e-6, qd, effort)
    qd[2, 0] += 1e-3
    with pytest.raises(LoopClosureError, match=r"rates of the loops must be closed to 1e-09, got .* at sample 2"):
        forward_dynamics(prr.mechanism, q, qd, effort)
    with pytest.raises(ShapeError, match=r"effort: shape must be \(3, 3\), got \(3, 2\)"):
        forward_dynamics(prr.mechanism, q, qd, effort[:, :2])
