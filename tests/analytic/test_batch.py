"""The traced equations against the plain equations, and their behaviour outside their range."""

from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck.analytic.batch import elimination, equations, inverse_dynamics
from loopcheck.analytic.batch.expressions import Graph, Scalar, Symbol, value_of
from loopcheck.analytic.batch.interpreter import outputs
from loopcheck.analytic.batch.inverse import FEWEST
from loopcheck.analytic.batch.lanes import CELLS, Equations
from loopcheck.analytic.batch.support import want_known
from loopcheck.analytic.batch.tape import assemble_tape
from loopcheck.analytic.batch.trace import Trace, trace
from loopcheck.analytic.batch.tracking import SMALLEST_PIVOT
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.catalogue import names
from loopcheck.robots.errors import LoopClosureError, MechanismError, ShapeError, SingularityError
from loopcheck.robots.mechanism import Joint, Mechanism
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case, load, make_case, modes, representative_case
from tests.closed_chains import Shape, closed_chain, states
from tests.conftest import MODELS, CaseMaker
from tests.cpu_time import extended_but
from tests.errors import relative_error

ROUND_OFF = 1e-12
"""Tolerance of the same equations in another order, relative to the peak [-]."""
TURNS = (1, 10, 50, 200, 1000)


def _agrees(case: Case, motion: Motion, guess: Array, *, plain: bool = False) -> None:
    reference = Noc().compute_efforts(case, motion).effort
    batch = inverse_dynamics(case.mechanism, motion.law(motion.t), guess, evaluator="numpy")
    assert relative_error(batch.effort, reference) < ROUND_OFF
    np.testing.assert_allclose(batch.q, motion.q, atol=1e-12)
    assert plain or batch.plain <= len(motion.t) // 20  # else this tests the plain version against itself


@pytest.mark.parametrize(
    "name",
    extended_but(set(names()) - {"6x6r", "6spu", "n_four_bar_40"}, names(), "test_agrees_with_noc_on_every_robot"),
)
def test_agrees_with_noc_on_every_robot(name: str) -> None:
    case = representative_case(load(name))
    motion = prescribe(case)
    if len(motion.t) < FEWEST:
        motion = motion.assemble(np.linspace(motion.t[0], motion.t[-1], FEWEST))
    _agrees(case, motion, motion.q[0], plain=name in PLAIN)


UNDRIVEN = {"floating_rotors", "spinning_rod"}
PLAIN = {"tendon_hand"}
"""Mechanisms that have more dofs than actuators, and that are not traced."""


def test_agrees_with_noc_on_the_zoo(zoo_name: str, zoo_case: Case, zoo_motion: Motion) -> None:
    if zoo_name in UNDRIVEN:
        few = Drive(*(x[:5] for x in zoo_motion.law(zoo_motion.t)))
        for drive, guess in ((zoo_motion.law(zoo_motion.t), zoo_motion.q[0]), (few, zoo_motion.q[:5])):
            with pytest.raises(MechanismError, match="every degree of freedom must have an actuator"):
                inverse_dynamics(zoo_case.mechanism, drive, guess, derivatives=["q"])
        return
    if zoo_name in PLAIN:
        with pytest.raises(MechanismError, match="do not support"):
            trace(zoo_case.mechanism, zoo_motion.q[0])
    _agrees(zoo_case, zoo_motion, zoo_motion.q[0], plain=zoo_name in PLAIN)


@pytest.mark.parametrize("seed", range(9))
def test_agrees_with_noc_on_random_closed_chains(seed: int, tmp_path: Path, model_case: CaseMaker) -> None:
    """Planar, spatial and floating mechanisms: redundant rows, all kinds of joints and closures."""
    rng, path = np.random.default_rng(seed), tmp_path / "chain.xml"
    planar, floating = seed % 3 == 0, seed % 3 == 2
    assert closed_chain(Shape(planar=planar, loops=4 if floating else 2, floating=floating), rng, path)
    case = model_case(path)
    mechanism, motion = case.mechanism, states(case, rng)
    rates = mechanism.rates_of(mechanism.drives).T
    drive = Drive(mechanism.values_of(mechanism.drives, motion.q), motion.qd @ rates, motion.qdd @ rates)
    tape = trace(mechanism, motion.q[0])
    batch = inverse_dynamics(mechanism, drive, motion.q, traced=tape, evaluator="numpy")
    assert batch.plain == 0
    assert relative_error(batch.effort, Noc().compute_efforts(case, motion).effort) < ROUND_OFF


def test_scales_weigh_the_efforts_of_redundant_actuators() -> None:
    robot = load("2pur2rpu")
    case = make_case(robot, variant="default", mode=next(iter(modes(robot.mechanism()))), configuration="vertical")
    actuators = case.mechanism.actuators
    scaled = tuple(replace(actuator, effort_scale=1.0 + k) for k, actuator in enumerate(actuators))
    case = replace(case, mechanism=replace(case.mechanism, actuators=scaled))
    motion = prescribe(case)
    _agrees(case, motion, motion.q[0])


def test_samples_in_any_order_have_their_own_guess(prr: Case, prr_motion: Motion) -> None:
    order = np.random.default_rng(0).permutation(len(prr_motion.t))
    drive = Drive(*(x[order] for x in prr_motion.law(prr_motion.t)))
    batch = inverse_dynamics(prr.mechanism, drive, prr_motion.q[order] + 1e-3, evaluator="numpy")
    reference = Noc().compute_efforts(prr, prr_motion).effort[order]
    assert relative_error(batch.effort, reference) < ROUND_OFF


NEEDS_LLVM = pytest.mark.skipif(
    find_spec("llvmlite") is None, reason="llvmlite is not installed: pip install 'loopcheck[fast]'"
)


@NEEDS_LLVM
def test_llvm_and_numpy_give_the_same(zoo_name: str, zoo_case: Case, zoo_motion: Motion) -> None:
    if zoo_name in UNDRIVEN | PLAIN:
        pytest.skip("not traced")
    drive = zoo_motion.law(zoo_motion.t)
    llvm, numpy = (
        inverse_dynamics(zoo_case.mechanism, drive, zoo_motion.q[0], evaluator=evaluator)
        for evaluator in ("llvm", "numpy")
    )
    assert relative_error(llvm.effort, numpy.effort) < ROUND_OFF
    assert llvm.plain == numpy.plain


def test_vanishing_pivot_is_left_to_the_plain_version(
    prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the first entries as pivots, the 3-PRR passes a pose with a zero pivot; Φᵘ is regular there."""
    guards = _guards(trace(prr.mechanism, prr_motion.q[0]), prr_motion)
    assert guards.min() > 0.1 * guards[0]
    monkeypatch.setattr(elimination, "_pivot", _first_entry)
    tape = trace(prr.mechanism, prr_motion.q[0])
    smallest = int(np.argmin(_guards(tape, prr_motion)))
    first, last = prr_motion.t[smallest - 5], prr_motion.t[smallest + 5]
    motion = prr_motion.assemble(np.linspace(first, last, 201))
    assert 0 < (_guards(tape, motion) < SMALLEST_PIVOT).sum() < 100
    batch = inverse_dynamics(prr.mechanism, motion.law(motion.t), motion.q[0], traced=tape, evaluator="numpy")
    assert 0 < batch.plain < 100
    reference = Noc().compute_efforts(prr, motion).effort
    assert relative_error(batch.effort, reference) < ROUND_OFF


def _first_entry(active: dict[int, dict[int, Scalar]], smallest: float) -> tuple[int, int]:
    return next((i, j) for i, row in sorted(active.items()) for j in sorted(row) if abs(value_of(row[j])) > smallest)


def _guards(tape: Trace, motion: Motion) -> Array:
    """The guard of the tape at the samples of a motion, shape (nt,)."""
    return outputs(tape.efforts, np.concatenate([motion.q, *motion.law(motion.t)], axis=1).T)[7 + 3 + 2]


def test_a_jump_of_the_path_is_followed_as_the_plain_version_does(prr: Case, prr_motion: Motion) -> None:
    drive = Drive(*(x[::8] for x in prr_motion.law(prr_motion.t)))
    drive = Drive(*(np.concatenate([x] * 10) for x in drive))  # jumps from the end back to the start
    batches = [
        inverse_dynamics(prr.mechanism, drive, prr_motion.q[0], evaluator=evaluator) for evaluator in ("numpy", "plain")
    ]
    assert batches[1].plain == len(drive.q)
    assert relative_error(batches[0].effort, batches[1].effort) < ROUND_OFF


@pytest.mark.parametrize("evaluator", ["numpy", pytest.param("llvm", marks=NEEDS_LLVM)])
def test_dense_samples_need_no_newton_step(prr: Case, prr_motion: Motion, evaluator: str) -> None:
    """There and back again: lanes meet the same samples from both sides, and turn in between."""
    t = np.linspace(0, prr_motion.t[-1] / 8, 5000)
    drive = Drive(*(np.concatenate([x, x[::-1]]) for x in prr_motion.law(t)))
    batch = inverse_dynamics(prr.mechanism, drive, prr_motion.q[0], evaluator=evaluator)
    assert batch.plain == 0
    assert batch.extrapolated >= len(drive.q) // 2
    peak = np.abs(batch.effort).max()
    np.testing.assert_allclose(batch.effort, batch.effort[::-1], atol=ROUND_OFF * peak, rtol=0)
    some = np.r_[:5000:250, 4990:5000]
    reference = Noc().compute_efforts(prr, prr_motion.assemble(t[some])).effort
    np.testing.assert_allclose(batch.effort[some], reference, atol=ROUND_OFF * peak, rtol=0)


def _turns(case: Case, turns: int, samples: int) -> tuple[Drive, Motion]:
    """The motion of a case, there and back in each turn; a single drive turns round."""
    motion, angle = prescribe(case), np.arange(turns * samples) * (2 * np.pi / samples)
    t, rate, change = (motion.t[-1] / 2 * x for x in (1 - np.cos(angle), np.sin(angle), np.cos(angle)))
    q, qd, qdd = motion.law(t)
    if q.shape[1] == 1:
        q = q[0] + angle[:, None]
        return Drive(q, np.ones_like(q), np.zeros_like(q)), motion
    return Drive(q, qd * rate[:, None], qdd * rate[:, None] ** 2 + qd * change[:, None]), motion


def _agrees_turn_by_turn(case: Case, turns: int, samples: int, evaluator: str) -> None:
    """At most 1 % by the plain version; the all turns as the first by `noc`, and joints continuous."""
    drive, motion = _turns(case, turns, samples)
    batch = inverse_dynamics(case.mechanism, drive, motion.q[0], evaluator=evaluator)
    assert batch.plain <= len(drive.q) // 100
    round_off = ROUND_OFF + 2 * np.spacing(np.abs(drive.q).max())  # of the angle after many turns
    first = Drive(*(x[:samples] for x in drive))
    reference = inverse_dynamics(case.mechanism, first, motion.q[0], evaluator="plain").effort
    each = batch.effort.reshape(turns, samples, -1)
    np.testing.assert_allclose(
        each, np.broadcast_to(reference, each.shape), atol=round_off * np.abs(reference).max(), rtol=0
    )
    assert np.abs(np.diff(batch.q, axis=0)).max() < 1.0
    np.testing.assert_array_equal(
        batch.q[:, case.mechanism.q_slices[case.mechanism.actuated_joints[0]]], drive.q[:, :1]
    )


@pytest.mark.parametrize("evaluator", ["numpy", pytest.param("llvm", marks=NEEDS_LLVM)])
@pytest.mark.parametrize("samples", [100, 200])
def test_many_turns_of_a_crank_need_the_cells_of_one(
    evaluator: str, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, find = [], Equations._poses

    def poses(self: Equations, centers: Array, visited: AnyArray, guess: Array) -> Array:
        counts.append(len(centers) / CELLS)
        return find(self, centers, visited, guess)

    monkeypatch.setattr(Equations, "_poses", poses)
    _agrees_turn_by_turn(representative_case(load("four_bar")), 60, samples, evaluator)
    assert counts
    assert max(counts) <= 1


@pytest.mark.parametrize("lane", [1, 3])
def test_lanes_that_do_not_meet_are_left_to_the_plain_version(
    lane: int, prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lane before does not end at a start that is moved."""
    drive, guess = prr_motion.law(prr_motion.t), prr_motion.q[0]
    right = inverse_dynamics(prr.mechanism, drive, guess, evaluator="numpy")
    find = Equations._starts

    def starts(self: Equations, driven: Array, guess: Array, span: int) -> Array:
        found = find(self, driven, guess, span)
        assert len(found) > lane
        found[lane] += 3e-6
        return found

    monkeypatch.setattr(Equations, "_starts", starts)
    wrong = inverse_dynamics(prr.mechanism, drive, guess, evaluator="numpy")
    assert wrong.plain > right.plain == 0
    np.testing.assert_allclose(wrong.effort, right.effort, rtol=0, atol=1e-11 * np.abs(right.effort).max())


GEARED = """<mujoco><worldbody>
<body><joint name="crank" axis="0 0 1"/><geom size=".1" pos=".2 0 0"/></body>
<body pos="1 0 0"><joint name="follower" axis="0 0 1"/><geom size=".1" pos=".3 0 0"/></body>
</worldbody><equality><joint joint1="follower" joint2="crank" polycoef="0 2.3 0 0 0"/></equality>
<actuator><motor joint="crank"/></actuator></mujoco>"""


def test_a_gear_follows_all_turns_of_its_crank(tmp_path: Path, model_case: CaseMaker) -> None:
    """After a turn of the crank, the follower is elsewhere."""
    (tmp_path / "geared.xml").write_text(GEARED)
    case = model_case(tmp_path / "geared.xml", configuration="vertical", amplitude=0.1)
    drive, motion = _turns(case, 10, 50)
    batch = inverse_dynamics(case.mechanism, drive, motion.q[0], evaluator="numpy")
    assert batch.plain == 0
    np.testing.assert_allclose(batch.q[:, 1], 2.3 * batch.q[:, 0], rtol=1e-14, atol=1e-14)


@NEEDS_LLVM
@pytest.mark.parametrize(
    ("name", "turns"),
    extended_but(
        [("3prr", 10), ("3rrr", 1), *(("four_bar", turns) for turns in TURNS)],
        [(name, turns) for name in ("3prr", "3rrr", "6x6r", "four_bar") for turns in TURNS],
        "test_many_turns_are_equal_turn_by_turn",
    ),
)
def test_many_turns_are_equal_turn_by_turn(name: str, turns: int) -> None:
    _agrees_turn_by_turn(representative_case(load(name)), turns, 200, "llvm")


@pytest.mark.parametrize("turns", [3, 40])
def test_a_ball_that_turns_round_keeps_its_quaternion_continuous(turns: int, model_case: CaseMaker) -> None:
    """A turn of the crank is half a turn of a quaternion: after it, all signs have changed."""
    case = model_case(MODELS / "ball_and_universal.xml", configuration="vertical", amplitude=0.1)
    _agrees_turn_by_turn(case, turns, 100, "numpy")


def test_coarse_samples_need_newton_steps(prr: Case, prr_motion: Motion) -> None:
    batch = inverse_dynamics(prr.mechanism, prr_motion.law(prr_motion.t), prr_motion.q[0], evaluator="numpy")
    assert (batch.plain, batch.extrapolated) == (0, 0)


@pytest.mark.parametrize("each", [False, True], ids=["path", "guess for each sample"])
def test_a_sample_out_of_reach_is_an_error(prr: Case, prr_motion: Motion, *, each: bool) -> None:
    drive = prr_motion.law(prr_motion.t)
    q = drive.q.copy()
    q[70] += [5.0, 0.0, 0.0]
    guess = prr_motion.q if each else prr_motion.q[0]
    with pytest.raises((LoopClosureError, SingularityError)) as caught:
        inverse_dynamics(prr.mechanism, drive._replace(q=q), guess, evaluator="numpy")
    assert vars(caught.value)["time"] == pytest.approx(70, abs=1)


def test_a_shape_that_does_not_fit_is_refused(prr: Case, prr_motion: Motion) -> None:
    drive = prr_motion.law(prr_motion.t)
    with pytest.raises(ShapeError, match=r"shape of q, qd and qdd must be \(\d+, 3\), got q .*, qd "):
        inverse_dynamics(prr.mechanism, drive._replace(qd=drive.qd[1:]), prr_motion.q[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewJoint(Joint):
    roughness: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewMechanism(Mechanism):
    ropes: tuple[str, ...] = ()


def _roped(mechanism: Mechanism) -> Mechanism:
    given: dict[str, Any] = {field.name: getattr(mechanism, field.name) for field in fields(Mechanism) if field.init}
    return _NewMechanism(**given, ropes=("rope",))


def test_what_is_not_known_is_not_traced(prr: Case, prr_motion: Motion) -> None:
    """A new type, or a field that a type of the mechanism does not have today, goes to the plain version."""
    mechanism = prr.mechanism
    joint = mechanism.joints[0]
    rubbing = _NewJoint(**{name: getattr(joint, name) for name in Joint.__slots__}, roughness=1.0)
    for changed in (
        _roped(mechanism),
        replace(mechanism, joints=(rubbing, *mechanism.joints[1:])),
    ):
        with pytest.raises(MechanismError, match="do not support"):
            want_known(changed)
        batch = inverse_dynamics(changed, prr_motion.law(prr_motion.t), prr_motion.q[0], evaluator="numpy")
        assert batch.plain == len(prr_motion.t)
    want_known(mechanism)


def test_symbols_compute_what_numbers_do() -> None:
    """Every operation on a tape against numpy."""

    def of(x: Any, y: Any, z: Any) -> list[Any]:
        sum_ = x * y + y * z - (2 * x) * (3 * z) + (1 - x) / (y + 2.5) - 4 / z
        return [
            *(sum_, -sum_, x * y - z * y, x * y - z, z - x * z, z - 3 * y, 3 * y + x, 3 * y - x, x - x + y),
            *(np.sin(x) + np.cos(x) * np.cos(y), np.sqrt(x * x + 1), abs(x) * 0 + 1, 0 * y, -(-1 * z), x / 4),
        ]

    values = np.random.default_rng(1).uniform(0.5, 2, (3, 7))
    graph = Graph()
    symbols = [graph.input(float(v)) for v in values[:, 0]]
    wanted = of(*values)
    traced = of(*symbols)
    assert traced[12] == 0
    for out, found, value in zip(traced, outputs(assemble_tape(graph, traced), values), wanted, strict=True):
        np.testing.assert_allclose(found, np.broadcast_to(value, 7), rtol=1e-14)
        if isinstance(out, Symbol):
            assert out.value == pytest.approx(np.broadcast_to(value, 7)[0], rel=1e-14)


def test_rotation_vectors_equal_those_by_arctangents() -> None:
    """Angles from zero to half a turn about any axis, to quaternions of any length and sign."""
    rng, angles = np.random.default_rng(2), np.concatenate([[0.0], np.logspace(-17, 0, 500) * 0.9999 * np.pi])
    start, axes, sizes = rng.normal(size=4), rng.normal(size=(501, 3)), rng.normal(size=501)
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    vectors = angles[:, None] * axes
    turned = Rotation.from_quat(start, scalar_first=True) * Rotation.from_rotvec(vectors)
    end = sizes[:, None] * turned.as_quat(scalar_first=True)
    graph = Graph()
    found = equations._rotation_vector(start, np.array([graph.input(x) for x in end[0]], dtype=object))
    values = outputs(assemble_tape(graph, list(found)), end.T).T
    np.testing.assert_allclose(values, vectors, rtol=0, atol=4e-15)


@pytest.mark.parametrize("evaluator", ["auto", "plain"])
def test_an_empty_batch_is_refused(prr: Case, prr_motion: Motion, evaluator: str) -> None:
    empty = Drive(*(x[:0] for x in prr_motion.law(prr_motion.t)))
    with pytest.raises(ShapeError, match="at least 1 sample"):
        inverse_dynamics(prr.mechanism, empty, prr_motion.q[0], evaluator=evaluator)


@pytest.mark.parametrize("evaluator", ["numpy", "plain", pytest.param("llvm", marks=NEEDS_LLVM)])
@pytest.mark.parametrize("each", [False, True], ids=["path", "guess for each sample"])
@pytest.mark.parametrize(("name", "what"), [("q", "positions"), ("qd", "velocities"), ("qdd", "accelerations")])
@pytest.mark.parametrize("sample", [0, 5])
def test_redundant_drives_that_do_not_fit_are_refused(
    redundant: tuple[Case, Motion], evaluator: str, name: str, what: str, sample: int, *, each: bool
) -> None:
    case, motion = redundant
    drive = motion.law(motion.t[:9])
    off = getattr(drive, name).copy()
    off[sample, 1] += 1e-4
    guess = motion.q[:9] if each else motion.q[0]
    traced = trace(case.mechanism, motion.q[0])
    inverse_dynamics(case.mechanism, drive, guess, traced=traced, evaluator=evaluator)
    with pytest.raises(
        LoopClosureError, match=f"{what} of redundant drives must be consistent, but at sample {sample} "
    ):
        inverse_dynamics(case.mechanism, drive._replace(**{name: off}), guess, traced=traced, evaluator=evaluator)


@pytest.fixture(scope="module")
def redundant() -> tuple[Case, Motion]:
    case = make_case(load("2pur2rpu"), variant="default", mode="home", configuration="vertical")
    return case, prescribe(case)


@pytest.mark.parametrize("evaluator", ["numpy", "plain", pytest.param("llvm", marks=NEEDS_LLVM)])
@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_a_number_that_is_not_finite_is_named(prr: Case, prr_motion: Motion, evaluator: str, which: int) -> None:
    arrays = [x[:4].copy() for x in prr_motion.law(prr_motion.t)] + [prr_motion.q[:4].copy()]
    arrays[which][2, 1] = np.nan
    traced = trace(prr.mechanism, prr_motion.q[0])
    with pytest.raises(ShapeError, match=r"numbers must be finite, got nan at \[2, 1\]"):
        inverse_dynamics(prr.mechanism, Drive(*arrays[:3]), arrays[3], traced=traced, evaluator=evaluator)
