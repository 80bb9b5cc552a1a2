"""Every evaluator must refuse the inputs that the plain version refuses, singularities above all."""

from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from loopcheck.analytic.batch import Batch, inverse_dynamics
from loopcheck.analytic.batch.trace import Trace, trace
from loopcheck.analytic.motion.laws import AUTOMATIC, prescription
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import names
from loopcheck.robots.errors import HarnessError, SingularityError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import Case, load, make_case, modes
from tests.closed_chains import Shape, closed_chain
from tests.conftest import CaseMaker
from tests.cpu_time import extended_but
from tests.errors import relative_error

FAST = [
    "numpy",
    pytest.param("llvm", marks=pytest.mark.skipif(find_spec("llvmlite") is None, reason="llvmlite is not installed")),
]
INSTALLED = ["numpy", *(["llvm"] if find_spec("llvmlite") else [])]
ROUND_OFF = 1e-9
"""Tolerance of efforts, relative to their peak, for paths near singularities [-]."""


def _case(name: str, mode: str) -> Case:
    return make_case(load(name), variant="default", mode=mode, configuration="horizontal")


@pytest.mark.parametrize("evaluator", FAST)
@pytest.mark.parametrize(
    ("mode", "samples"),
    extended_but(
        [("mpp", 210), ("pmm", 80)],
        [
            ("mpp", 210),
            ("mpp", 370),
            ("mmp", 400),
            ("pmm", 80),
            ("mpp", 400),
            ("mpp", 2000),
            ("mmm", 400),
        ],
        "test_the_singular_modes_of_the_3rrr_are_refused",
    ),
)
def test_the_singular_modes_of_the_3rrr_are_refused(mode: str, samples: int, evaluator: str) -> None:
    case = _case("3rrr", mode)
    law = prescription(case)
    drive = law.law(np.linspace(*law.span, samples))
    with pytest.raises(SingularityError):
        inverse_dynamics(case.mechanism, drive, case.guess, evaluator=evaluator)


@cache
def cases(*robots: str) -> list[tuple[str, str]]:
    """Robots and their modes; by default of all traced robots except the slow chain of 40 bodies."""
    traced = (name for name in names() if name not in ("andrews", "n_four_bar_40"))
    return [
        (name, mode)
        for name in robots or traced
        if load(name).motion.law != AUTOMATIC
        for mode in modes(load(name).mechanism())
    ]


@pytest.mark.extended("test_no_evaluator_passes_some_of_what_the_plain_one_refuses")
@settings(max_examples=16)
@given(
    which=st.one_of(st.deferred(lambda: st.sampled_from(cases())), st.deferred(lambda: st.sampled_from(cases("3rrr")))),
    samples=st.integers(2, 80),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    size=st.sampled_from([0.0, 0.0, 0.01, 0.1, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
@example(which=("3rrr", "mpp"), samples=400, ends=(0.0, 1.0), size=0.0, seed=0)
@example(which=("3rrr", "pmm"), samples=400, ends=(0.0, 1.0), size=0.0, seed=0)
@example(which=("3rrr", "pmm"), samples=34, ends=(0.0, 0.5), size=0.0, seed=0)
@example(which=("3rrr", "pmm"), samples=29, ends=(1.0, 0.0), size=0.0, seed=0)
@example(which=("3rrr", "mmp"), samples=28, ends=(0.375, 0.109375), size=0.1, seed=296)
def test_no_evaluator_passes_what_the_plain_one_refuses(
    which: tuple[str, str], samples: int, ends: tuple[float, float], size: float, seed: int
) -> None:
    """The law of a robot in every mode, between any times and in any steps, and random motions about it."""
    assume(abs(ends[1] - ends[0]) > 1e-3)
    assume(_agree_about(which, samples, ends, size, seed))


@pytest.mark.parametrize(
    ("which", "samples", "ends", "size"),
    [
        (("3rrr", "pmm"), 34, (0.0, 0.5), 0.0),
        (("3rrr", "pmm"), 29, (1.0, 0.0), 0.0),
        (("3rrr", "ppp"), 20, (0.2, 0.6), 0.1),
        (("3prr", "plus"), 12, (0.0, 1.0), 1.0),
        pytest.param(
            ("3rrr", "mmp"),
            60,
            (0.375, 1.0),
            0.1,
            marks=pytest.mark.extended("test_no_evaluator_passes_some_of_what_the_plain_one_refuses"),
        ),
    ],
)
def test_no_evaluator_passes_some_of_what_the_plain_one_refuses(
    which: tuple[str, str], samples: int, ends: tuple[float, float], size: float
) -> None:
    assert _agree_about(which, samples, ends, size, 0)


def _agree_about(which: tuple[str, str], samples: int, ends: tuple[float, float], size: float, seed: int) -> bool:
    case = _case(*which)
    mechanism, law = case.mechanism, prescription(case)
    start, end = (law.span[0] + x * (law.span[1] - law.span[0]) for x in ends)
    t = np.linspace(start, end, samples)
    drive = _disturbed(law.law(t), t, size, np.random.default_rng(seed))
    return _agree(mechanism, drive, case.guess)


@pytest.mark.extended(
    "test_no_evaluator_passes_some_of_what_the_plain_one_refuses",
    "tests/analytic/test_batch.py::test_agrees_with_noc_on_random_closed_chains",
)
@settings(max_examples=10)
@given(
    shape=st.builds(Shape, planar=st.booleans(), loops=st.integers(1, 3)),
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(2, 80),
    size=st.sampled_from([0.01, 0.1, 1.0]),
)
def test_no_evaluator_passes_on_chains_what_the_plain_one_refuses(
    shape: Shape,
    seed: int,
    samples: int,
    size: float,
    tmp_path_factory: pytest.TempPathFactory,
    model_case: CaseMaker,
) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.getbasetemp() / "chain.xml"
    assume(closed_chain(shape, rng, path))
    case = model_case(path)
    mechanism = case.mechanism
    q = mechanism.values_of(mechanism.drives, case.guess[None])
    rest = Drive(np.repeat(q, samples, axis=0), *(np.zeros((samples, q.shape[1])) for _ in range(2)))
    drive = _disturbed(rest, np.linspace(0, 1, samples), size, rng)
    assume(_agree(mechanism, drive, case.guess))


def _disturbed(drive: Drive, t: Array, size: float, rng: np.random.Generator) -> Drive:
    """Motions with sines of random sizes and frequencies added."""
    a, w = size * rng.normal(size=drive.q.shape[1]), rng.uniform(0.5, 6, drive.q.shape[1])
    angle = np.outer(t - t[0], w)
    return Drive(drive.q + a * np.sin(angle), drive.qd + a * w * np.cos(angle), drive.qdd - a * w**2 * np.sin(angle))


def _agree(mechanism: Mechanism, drive: Drive, guess: Array) -> bool:
    """Every evaluator refuses the same inputs as the plain version, and gives the same results.

    Returns:
        Whether there is something to compare: the first pose must be regular.
    """
    first = _outcome(mechanism, Drive(*(x[:1] for x in drive)), guess, "plain", None)
    if not isinstance(first, Batch):
        return False
    traced = trace(mechanism, first.q[0])
    plain = _outcome(mechanism, drive, guess, "plain", None)
    moved = Drive(*(x * (1 + 4 * np.finfo(float).eps) for x in drive))  # what round-off does beside a singularity
    other = _outcome(mechanism, moved, guess, "plain", None)
    both = isinstance(plain, Batch) and isinstance(other, Batch)
    resolved = relative_error(other.effort, plain.effort) if both else 0.0  # type: ignore[union-attr]
    for evaluator in INSTALLED:
        fast = _outcome(mechanism, drive, guess, evaluator, traced)
        if not (isinstance(plain, Batch) and isinstance(fast, Batch)):
            assert type(fast) is type(plain), f"{evaluator}: {fast}, plain: {plain}"
            continue
        np.testing.assert_allclose(fast.q, plain.q, atol=1e-7)
        assert relative_error(fast.effort, plain.effort) < max(ROUND_OFF, 3 * resolved)
    return True


def _outcome(
    mechanism: Mechanism, drive: Drive, guess: Array, evaluator: str, traced: Trace | None
) -> Batch | HarnessError:
    try:
        return inverse_dynamics(mechanism, drive, guess, traced=traced, evaluator=evaluator)
    except HarnessError as error:
        return error
