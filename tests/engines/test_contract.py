"""What every engine and every route must do, whatever its robot: found by their places, tested by this one file.

Nothing here names an engine, but where one is known to be wrong; what an engine cannot carry stands in `refusals.py`.
"""

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import requires
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.requirements import Requirement

from loopcheck import engines
from loopcheck.analytic.motion.batched_assembly import assemble_batch
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.contract import Audit, FileInertia, Gradients, Refinements, ReleaseTerms, Simulation
from loopcheck.engines.declarations import Tuning
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.errors import EngineError, NotFoundError, NotRepresentableError
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import registered
from tests.conftest import ZOO, CaseMaker, want_engine
from tests.cpu_time import extended_but
from tests.engines.mechanisms import CART, PARALLEL_CRANKS, PLAIN_FOUR_BAR, TWO_CRANKS, Own, reference, want_right
from tests.engines.refusals import REFUSALS
from tests.errors import relative_error

NAMES = [name for name in engines.names() if not name.startswith("mjx/")]
"""Those of MJX are slow to begin with: their own tests hold them to the same contract."""
PARTS: dict[str, type] = {
    "audit": Audit,
    "file_inertia": FileInertia,
    "gradients": Gradients,
    "refinements": Refinements,
    "release_terms": ReleaseTerms,
    "simulation": Simulation,
    "tuning": Tuning,
}
JUDGED = [name for name in NAMES if registered()[name].relative_error is not None]
SIMULATING = [name for name in JUDGED if engines.simulates(name)]
ROUTES = pytest.mark.parametrize("history", NAMES, indirect=True)
FORWARD = pytest.mark.parametrize("history", SIMULATING, indirect=True)
WRONG = {("mujoco/forward", "geared_pair"): 1e-3}
"""Least error of what is known to be wrong [-]: no term with the second derivative of a joint equality's polynomial."""


LONG = {("pybullet/forward", "tendon_hand"), ("exudyn/forward", "six_legs"), ("simbody/forward", "six_legs")}
"""Simulations of more than a second of CPU time."""


def _in_the_zoo() -> Iterator[Any]:
    """Sources on mechanisms of the zoo: of the simulations, a third with all routes and all mechanisms."""
    long = pytest.mark.evidence("undriven dofs are simulated", seconds=1.5)
    for name in [*JUDGED, "analytic/lagrange"]:
        for i, mechanism in enumerate(ZOO):
            is_example = (name, mechanism) == ("mujoco/forward", "spinning_rod")
            is_chosen = not (name in SIMULATING and (SIMULATING.index(name) + i) % 3) and mechanism != "spinning_rod"
            is_short = name not in SIMULATING or (is_chosen and (name, mechanism) not in LONG)
            if is_short or is_example or (name, mechanism) in REFUSALS:
                yield pytest.param(name, mechanism, marks=[long] if is_example else [])


def loaded(name: str, request: pytest.FixtureRequest) -> Source:
    if name not in sources.ANALYTIC:
        want_engine(name.split("/")[0], request.config)
    return sources.load(name)


@pytest.fixture(scope="module")
def history(request: pytest.FixtureRequest, prr: Case, prr_motion: Motion) -> EffortHistory:
    return loaded(request.param, request).compute_efforts(prr, prr_motion)


@pytest.mark.parametrize("name", engines.engine_names())
@pytest.mark.parametrize("kind", PARTS)
def test_a_part_has_the_functions_of_its_protocol(name: str, kind: str) -> None:
    if not engines.installed(name):
        pytest.skip(f"{name} is not installed")
    module, protocol = engines.part(name, kind), PARTS[kind]
    assert engines.provides(name, kind) == (module is not None)
    if module is None:
        return
    for member, declared in inspect.getmembers_static(protocol):
        if inspect.isfunction(declared) and not member.startswith("_"):
            _, *parameters = inspect.signature(declared).parameters.values()
            defined = inspect.signature(getattr(module, member)).parameters.values()
            assert [(one.name, one.kind) for one in defined] == [(one.name, one.kind) for one in parameters], member
        elif isinstance(declared, property):
            assert hasattr(module, member)


@pytest.mark.parametrize("name", engines.engine_names())
def test_an_engine_is_its_folder(name: str) -> None:
    """What it says of itself fits its place, and its parts come from there."""
    engine, folder = engines.engine(name), Path(engines.__file__).parent / name
    routes = {route.split("/")[1] for route in engines.names() if route.startswith(f"{name}/")}
    assert engine.name == name
    assert routes
    assert engine.simulating | set(engine.on_request) <= routes
    assert engine.requires.split(".")[0] in engine.packages
    if engines.installed(name):
        for kind in PARTS:
            module = engines.part(name, kind)
            assert module is None or Path(module.__file__) == folder / f"{kind}.py"
        assert engines.provides(name, "audit")


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(NotFoundError, match=r"unknown engine: 'ode'. Known: .*mujoco, "):
        engines.engine("ode")


def test_every_route_is_there() -> None:
    assert set(engines.names()) >= {
        *(f"mujoco/{route}" for route in ("kkt", "forward", "as_is", "inverse")),
        *(f"pinocchio/{route}" for route in ("kkt", "forward", "lcaba")),
        *(f"pybullet/{route}" for route in ("kkt", "forward", "as_is")),
        "exudyn/forward",
        *(f"{engine}/{route}" for engine in ("dart", "drake", "simbody") for route in ("kkt", "forward", "as_is")),
        *(f"physx/{route}" for route in ("as_is", "as_is_tgs")),
        *(f"mjx/{route}" for route in ("kkt", "forward", "kkt_single", "forward_single")),
    }


def test_an_unknown_route_is_refused() -> None:
    with pytest.raises(NotFoundError, match=r"unknown source: 'mujoco/model'. Known: .*mujoco/forward, "):
        engines.load("mujoco/model")


@pytest.mark.parametrize("name", engines.names())
def test_every_route_has_a_registered_limit(name: str) -> None:
    assert registered()[name].reason


@ROUTES
def test_a_history_matches_the_motion(history: EffortHistory, prr: Case, prr_motion: Motion) -> None:
    assert history.source in engines.names()
    assert history.actuators == tuple(actuator.name for actuator in prr.mechanism.actuators)
    np.testing.assert_array_equal(history.t, prr_motion.t)
    assert history.settings


@ROUTES
def test_a_simulation_reports_how_well_it_kept_to_the_motion(history: EffortHistory) -> None:
    simulated = engines.simulates(history.source)
    assert (history.tracking_error is not None) == simulated
    assert not simulated or history.closure_drift is not None


ORDERS = {"drake": 1, "dart": 1, "pybullet": 1, "exudyn": 2, "mujoco": 4, "mjx": 3.5, "pinocchio": 4, "simbody": 4}
"""Least orders of the error in the step [-].

The two compliances of MJX leave a softness of 3e-8 of the scale, which does not fall with the step: beside changes of
8e-6 and 5e-7, it takes half an order.
"""


@FORWARD
def test_a_forward_route_converges_in_its_order(history: EffortHistory) -> None:
    """Seen in the changes from step to step alone, without a reference; at least three steps, each half of the last."""
    assert len(history.ladder) >= 3
    assert [a.dt / b.dt for a, b in pairwise(history.ladder)] == pytest.approx([2] * (len(history.ladder) - 1))
    first, second, *_ = (np.abs(a.effort - b.effort).max() for a, b in pairwise(history.ladder))
    assert np.log2(first / second) > ORDERS[history.source.split("/")[0]] - 0.3


@pytest.mark.parametrize("name", [name for name in NAMES if engines.simulates(name)])
def test_a_simulation_that_blows_up_is_an_error(
    name: str, prr: Case, prr_motion: Motion, request: pytest.FixtureRequest
) -> None:
    def nowhere(t: Array) -> Drive:
        return Drive(*(np.full((len(t), 3), np.nan) for _ in range(3)))

    with pytest.raises(EngineError, match=name.split("/")[0]):
        loaded(name, request).compute_efforts(prr, replace(prr_motion, law=nowhere))


@pytest.mark.parametrize("name", JUDGED)
def test_a_route_prints_nothing_and_leaves_no_file(
    name: str,
    own: Own,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Two hinges in sequence, with no body between them: engines warn of bodies without mass."""
    source, case = loaded(name, request), own("four_bar", PLAIN_FOUR_BAR) if "newton" in name else own("spatial")
    motion = prescribe(case)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    source.compute_efforts(case, motion.assemble(motion.t[:5]))
    assert capfd.readouterr() == ("", "")
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("place", ["dart._skeleton", "drake._plant", "pinocchio._tree", "simbody._opensim"])
def test_what_an_engine_raises_becomes_an_engine_error(place: str, request: pytest.FixtureRequest) -> None:
    engine = place.split(".")[0]
    want_engine(engine, request.config)
    guarded = importlib.import_module(f"loopcheck.engines.{place}").guarded
    with pytest.raises(EngineError, match=f"{engine}: wrong"), guarded(engine):
        raise RuntimeError("wrong")


@pytest.mark.parametrize(("name", "zoo_name"), [*_in_the_zoo()], scope="session")
def test_the_zoo_agrees(
    name: str, zoo_name: str, zoo_case: Case, zoo_motion: Motion, request: pytest.FixtureRequest
) -> None:
    """Welds, curves, tendons, balls, free joints, undriven dofs, redundant rows, a finger far below a lift."""
    source = loaded(name, request)
    if refusal := REFUSALS.get((name, zoo_name)):
        with pytest.raises(NotRepresentableError, match=refusal):
            source.compute_efforts(zoo_case, zoo_motion)
    elif least := WRONG.get((name, zoo_name)):
        effort = source.compute_efforts(zoo_case, zoo_motion).effort
        assert relative_error(effort, reference(zoo_case, zoo_motion)) > least
    else:
        want_right(name, zoo_case, zoo_motion)


@pytest.mark.parametrize("name", SIMULATING)
def test_the_start_of_unactuated_dofs_is_as_exact_as_the_others(
    name: str, own: Own, request: pytest.FixtureRequest
) -> None:
    """Velocities of the wrong half step leave out half of the first force; an earlier start is only approximate."""
    loaded(name, request)
    case = own("cart", CART)
    motion = prescribe(case)
    assert not motion.qd[0].any()
    assert motion.qdd[0].all()
    want_right(name, case, motion.assemble(motion.t[:4]))


@pytest.mark.parametrize("name", SIMULATING)
def test_redundant_motors_are_left_off(name: str, own: Own, request: pytest.FixtureRequest) -> None:
    """What the motors that are on do to the one degree of freedom is what a single motor would."""
    source, one = loaded(name, request), own("parallel_cranks")
    two = own("two", PARALLEL_CRANKS.format('<motor name="d" joint="d" gear="2"/>'))
    motion = prescribe(one)

    def both(t: Array) -> Drive:  # equal cranks turn alike
        return Drive(*(np.repeat(x, 2, axis=1) for x in motion.law(t)))

    history = source.compute_efforts(two, replace(motion, law=both))
    assert history.note
    assert (history.effort == 0).all(axis=0).sum() == 1
    on_the_dof = history.effort @ two.mechanism.selection.sum(axis=1, keepdims=True)
    assert relative_error(on_the_dof, reference(one, motion)) < (registered()[name].relative_error or 0)


@pytest.mark.parametrize(
    "name",
    extended_but(set(SIMULATING) - {"drake/forward"}, SIMULATING, "test_a_motor_that_passes_a_dead_centre_is_left_off"),
)
def test_a_motor_that_passes_a_dead_centre_is_left_off(
    name: str, tmp_path: Path, model_case: CaseMaker, request: pytest.FixtureRequest
) -> None:
    """Though it is the one that determines the others best in the middle of the motion."""
    source, law = loaded(name, request), {"amplitude": 1.3, "frequency": 1.25, "duration": 0.4}
    (tmp_path / "one.xml").write_text(TWO_CRANKS.format(""), encoding="utf-8")
    (tmp_path / "two.xml").write_text(TWO_CRANKS.format('<motor name="rocker" joint="rocker"/>'), encoding="utf-8")
    one, two = (model_case(tmp_path / f"{which}.xml", **law) for which in ("one", "two"))
    motion = prescribe(one)
    rates = motion.qd[1:-1, 2] / motion.qd[1:-1, 0]
    assert rates[len(rates) // 2] < -1
    assert rates[-1] > 0

    mechanism = one.mechanism

    def both(t: Array) -> Drive:  # all times at once, as simulations need thousands
        near = motion.q[np.abs(t[:, None] - motion.t).argmin(axis=1)]
        moved = assemble_batch(mechanism, motion.law, near, t, drives=mechanism.drives, where="one")
        return Drive(*(x[:, [0, 2]] for x in (moved.q, moved.qd, moved.qdd)))

    history = source.compute_efforts(two, replace(motion, law=both))
    assert not history.effort[:, 1].any()
    expected = reference(one, motion)
    assert relative_error(history.effort[:, :1], expected) < (registered()[name].relative_error or 0)


@pytest.mark.parametrize(("python", "there"), [("3.11", True), ("3.12", False)])
def test_pybullet_belongs_to_the_plain_install(python: str, there: bool) -> None:
    """Where there are wheels of it: from 3.12 on pip would have to compile it."""
    wanted = [Requirement(text) for text in requires("loopcheck") or ()]
    plain = [each.name for each in wanted if not each.marker or each.marker.evaluate({"python_version": python})]
    assert ("pybullet" in plain) == there


@pytest.mark.parametrize("name", [name for name in engines.engine_names() if engines.provides(name, "tuning")])
def test_settings_have_unique_names_and_are_written_as_they_are(name: str) -> None:
    """The words for a finer value contain its numbers."""
    if not engines.installed(name):
        pytest.skip(f"{name} is not installed")
    tuning = engines.part(name, "tuning")
    values = [value for setting in tuning.SETTINGS.values() for value in setting.values]
    assert len(values) == len(set(values))
    for setting in tuning.SETTINGS.values():
        if setting.finer:
            words = {word for text in setting.finer.fixed.values() for word in text.lower().split()}
            assert setting.written
            assert not [word for word in words if word not in setting.written.lower()]
