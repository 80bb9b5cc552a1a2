"""Every route that is judged against the reference, on random closed chains with all elements that the route has.

The reference itself is held by Lagrange's equations and by the power balance. A thousand chains for the exact routes:
`pytest tests/engines/test_oracle.py --extended --hypothesis-profile=thousand`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loopcheck import engines
from loopcheck.analytic.dynamics.energy import power_imbalance
from loopcheck.analytic.dynamics.forward import accelerations_by_multipliers, accelerations_by_noc
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale, powers_along, tree_inertia
from loopcheck.analytic.kinematics.redundancy import independent_dofs, moving_part, undriven_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Refinable
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism, Wrench
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import registered
from tests.closed_chains import ELEMENTS, Shape, closed_chain, states
from tests.conftest import CaseMaker, want_engine
from tests.engines.mechanisms import CLOSED

ROUND_OFF = 1e-10
"""Of exact equations away from singular poses, over the largest effort of the chain [-]."""
BALANCE = 1e-12
"""Remainder of a power balance, over the acting powers [-]."""
SAMPLES = 4
"""Of a simulated motion."""
MOST_UNMARKED = 2
"""Chains of a simulating route that are not extended."""


def _shape(kind: str, loops: int, elements: str) -> Shape:
    """Shape with elements in a comma-separated list."""
    planar, floating = kind == "planar", kind == "floating"
    return Shape(planar=planar, loops=loops, floating=floating, elements=frozenset(elements.split(", ")))


CHAINS: Mapping[str, Shape] = {
    "welds": _shape("planar", 2, "weld, again, dampers, springs, held"),
    "struts": _shape("spatial", 2, "struts, springs, dampers, held"),
    "balls": _shape("spatial", 1, "weld, ball, dampers"),
    "floating": _shape("floating", 3, "springs, dampers"),
    "rotors": _shape("planar", 2, "rotors, dampers, springs"),
    "driven rotors": _shape("spatial", 2, "driven rotors"),
    "coaxial": _shape("planar", 2, "coaxial, rotors"),
    "ball springs": _shape("spatial", 1, "weld, ball, ball springs"),
    "ball rotors": _shape("spatial", 1, "weld, ball, ball rotors, rotors"),
    "floating rotors": _shape("floating", 3, "ball rotors, rotors"),
    "coupler": _shape("planar", 2, "coupler"),
    "gear": _shape("planar", 2, "gear, dampers"),
    "lock": _shape("spatial", 1, "lock, dampers"),
    "tendons": _shape("planar", 2, "tendons"),
    "undriven": _shape("spatial", 1, "undriven, springs, dampers"),
    "redundant": _shape("spatial", 2, "redundant, again, springs"),
}
"""Each with an external wrench on its last body."""
MOVED = [name for name, shape in CHAINS.items() if "redundant" not in (shape.elements or ())]
"""Chains for simulations: a sine on each of redundant motors would contradict the others."""
SEEDS = 3
"""Chains of each kind, with the seeds 0, 1, 2 and so on; the first is not extended, and the only one in simulations."""
RANDOM = 20
"""Chains of random shapes in the profile of the suite."""
JUDGED = [
    name for name in engines.names() if registered()[name].relative_error is not None and not name.endswith("_single")
]
"""In double precision. Newton has no slides behind hinges, and so few of the chains."""
SIMULATING = [name for name in JUDGED if engines.simulates(name)]
EXACT = [*(name for name in JUDGED if name not in SIMULATING), "analytic/lagrange"]
COMPILED = {"mjx/kkt": ("floating", "coupler"), "mjx/forward": ("balls",)}
"""Chains of routes that compile for seconds."""
_NO_CAM = dict.fromkeys(("coupler", "gear", "lock"), "equality 'cam'")
_BALLS = {"ball springs": "(spring|damper) of ball joint", "ball rotors": "armature of (free|ball) joint"}
_NO_MASS = {"coaxial": "turns rotors alone"}
REFUSED: Mapping[str, Mapping[str, str]] = {
    "dart": {
        **_NO_CAM,
        "tendons": "tendon 'sum'",
        **dict.fromkeys(("rotors", "coaxial", "ball rotors"), "armature of the unactuated"),
    },
    "drake": {**_BALLS, **dict.fromkeys(("coupler", "lock"), "equality 'cam'"), "tendons": "tendon 'sum'"},
    "exudyn": {**_NO_CAM, **_BALLS, "tendons": "tendon 'sum'"},
    "simbody": _BALLS,
    "simbody/forward": _NO_MASS,
    "pinocchio/forward": _NO_CAM,
    "pinocchio/lcaba": _NO_CAM,
    "pybullet/forward": _NO_MASS,
}
"""Words of engines and routes on elements that they do not have."""
KNOWN = {("mujoco/forward", "coupler"): "known issue mujoco-joint-polynomial"}
"""Words of the note of a route on a chain for which its engine is known to be wrong."""
UNCONVERGED = "the solver stopped at its limit"
"""Words of a note on efforts that are not those of the engine's equations."""


def refusals(route: str, chain: str) -> list[str]:
    """Words of a route on a chain that it refuses."""
    said = {**REFUSED.get(route.split("/")[0], {}), **REFUSED.get(route, {})}
    return sorted({said[element] for element in CHAINS[chain].elements or () if element in said})


def _rows() -> Iterator[Any]:
    """Each route on each chain: exact routes and refusals at once, and simulations of a choice with all chains."""
    extended = pytest.mark.extended("test_a_route_agrees")
    for number, route in enumerate([*EXACT, *SIMULATING]):
        mine = [name for name in COMPILED.get(route, CHAINS) if name in MOVED or route in EXACT]
        moved = [name for name in mine if not refusals(route, name)]
        chosen = [moved[(MOST_UNMARKED * number + k) % len(moved)] for k in range(MOST_UNMARKED)]
        for name in mine:
            # integrators and refusals depend on the elements of a chain, not on its numbers
            only_first = route in COMPILED or route in SIMULATING or name not in moved
            for seed in range(1 if only_first else SEEDS):
                is_long = seed or route in COMPILED or (route in SIMULATING and name in moved and name not in chosen)
                marks = [extended] if is_long else []
                yield pytest.param(route, name, seed, marks=marks, id=f"{route}-{name}-{seed}")


class Chains(Protocol):
    """Makes a chain, its states and its motion, once for all tests of a process."""

    def __call__(self, name: str, seed: int) -> tuple[Case, Motion]: ...


@pytest.fixture(scope="session")
def chains(tmp_path_factory: pytest.TempPathFactory, model_case: CaseMaker) -> Chains:
    folder = tmp_path_factory.mktemp("chains")

    @cache
    def make(name: str, seed: int) -> tuple[Case, Motion]:
        path, rng = folder / f"{name} {seed}.xml", np.random.default_rng(seed)
        assert closed_chain(CHAINS[name], rng, path)
        case = pushed(model_case(path, amplitude=0.02), rng)
        return case, states(case, rng)

    return make


@pytest.fixture(scope="session")
def moving(chains: Chains) -> Chains:
    @cache
    def make(name: str, seed: int) -> tuple[Case, Motion]:
        case, _ = chains(name, seed)
        motion = prescribe(case)
        return case, motion.assemble(motion.t[:SAMPLES])

    return make


def pushed(case: Case, rng: np.random.Generator) -> Case:
    """A case with an external wrench on its last body, and with efforts of different scales."""
    point, moment, force = rng.normal(size=(3, 3)) * [[0.2], [1], [3]]
    wrench = Wrench(body=len(case.mechanism.bodies) - 1, point=point, moment=moment, force=force)
    motors = tuple(replace(motor, effort_scale=rng.uniform(0.2, 5)) for motor in case.mechanism.actuators)
    return replace(case, mechanism=replace(case.mechanism, wrenches=(wrench,), actuators=motors))


def spoilt(case: Case, motion: Motion) -> Motion:
    """A motion with wrong rates of passive joints: exact routes find them in their own Jacobian."""
    if undriven_dofs(case.mechanism, motion.q[0]):
        return motion  # whose undriven rates are given by those of passive joints
    rng, passive = np.random.default_rng(0), ~case.mechanism.selection.any(axis=0)
    return replace(
        motion, **{k: getattr(motion, k) + passive * rng.normal(size=motion.qd.shape) for k in ("qd", "qdd")}
    )


def error(effort: Array, case: Case, motion: Motion) -> float:
    """Largest error of the efforts that move the robot, over the largest effort: loops lock some motors [-]."""
    wanted, Pi = Noc().compute_efforts(case, motion).effort, moving_part(case.mechanism, motion)
    moved = effort if Pi is None else (Pi @ effort[..., None])[..., 0]
    return float(np.abs(moved - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize(("route", "chain", "seed"), [*_rows()])
def test_a_route_agrees(
    route: str, chain: str, seed: int, chains: Chains, moving: Chains, request: pytest.FixtureRequest
) -> None:
    if route not in sources.ANALYTIC:
        want_engine(route.split("/")[0], request.config)
    case, motion = (moving if route in SIMULATING else chains)(chain, seed)
    source, limit = sources.load(route), registered()[route]
    try:
        history = source.compute_efforts(case, spoilt(case, motion) if route.endswith(("kkt", "lagrange")) else motion)
    except NotRepresentableError as error_of_route:
        refusal = str(error_of_route)
        assert re.search("|".join(refusals(route, chain)) or "(?!)", refusal)
        return
    most = limit.relative_error or 0 if route in SIMULATING or "lcaba" in route else ROUND_OFF
    found = error(history.effort, case, motion)
    if found > most and UNCONVERGED in history.note:
        for _ in range(2):
            assert isinstance(source, Refinable)
            source = source.tightened()
        history = source.compute_efforts(case, motion)
        found = error(history.effort, case, motion)
    if found > most and (route, chain) in KNOWN:
        assert KNOWN[route, chain] in history.note
        return
    assert found < most
    gaps = ((history.closure_drift, limit.closure_drift), (history.tracking_error, limit.tracking_error))
    for gap, widest in gaps:
        assert gap is None or gap.largest < (widest or CLOSED)


@pytest.mark.parametrize("route", [*EXACT, *SIMULATING])
def test_every_element_is_tried_on_every_route(route: str) -> None:
    """Each element is in a chain that the route either computes or refuses with words on this element."""
    tried = {
        element
        for name, shape in CHAINS.items()
        if (name in MOVED or route in EXACT) and not refusals(route, name)
        for element in shape.elements or ()
    }
    said = {**REFUSED.get(route.split("/")[0], {}), **REFUSED.get(route, {})}
    assert tried | {*said} >= {*ELEMENTS} - ({"redundant"} if route in SIMULATING else set())


@pytest.mark.parametrize(
    ("chain", "seed"),
    [
        pytest.param(name, seed, marks=[pytest.mark.extended("test_the_reference_is_held")] if seed else [])
        for name in CHAINS
        for seed in range(SEEDS)
    ],
)
def test_the_reference_is_held(chain: str, seed: int, chains: Chains) -> None:
    _hold(*chains(chain, seed))


def _hold(case: Case, motion: Motion) -> None:
    """Each term by itself has the efforts of one linear system; power in is the rate of energy; motions come back."""
    mechanism, effort = case.mechanism, Noc().compute_efforts(case, motion).effort
    state = State(mechanism=mechanism, q=motion.q, qd=motion.qd)
    every_dof = np.broadcast_to(np.eye(mechanism.nv), (len(motion.t), mechanism.nv, mechanism.nv))
    terms = powers_along(state, motion.qdd, every_dof).signed
    shares = np.array([least_efforts(mechanism, *at) for at in zip(tree_inertia(state), state.Phi, terms, strict=True)])
    sums = np.abs(shares).sum(axis=1)
    assert np.abs(shares.sum(axis=1) - effort).max() < ROUND_OFF * sums.max()
    np.testing.assert_allclose(
        effort_scale(mechanism, motion).scale, sums.max(axis=0), rtol=1e-8, atol=1e-12 * sums.max()
    )
    if undriven_dofs(case.mechanism, motion.q[0]):
        return
    imbalance, faulty = (power_imbalance(mechanism, motion, factor * effort) for factor in (1, 1.000001))
    assert (imbalance or 0) < BALANCE
    assert (faulty or 0) > 10 * BALANCE
    dofs = independent_dofs(mechanism, motion)
    by_noc = accelerations_by_noc(mechanism, motion.q, motion.qd, effort, dofs)
    by_multipliers, _ = accelerations_by_multipliers(mechanism, motion.q, motion.qd, effort)
    for qdd in (by_noc, by_multipliers):
        np.testing.assert_allclose(qdd, motion.qdd, rtol=0, atol=1e-9 * np.abs(motion.qdd).max())


def least_efforts(mechanism: Mechanism, M: Array, Phi: Array, forces: Array) -> Array:
    """Efforts of least norm over their scales that hold the drives against each force, from a single linear system.

    M a + f = Sᵀ τ + Φᵀ λ, Φ a = 0, S a = 0: undriven dofs accelerate freely.
    """
    S, W = mechanism.selection, mechanism.effort_scales
    rows = np.concatenate([Phi, S])
    system = np.block([[M, -rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    right = np.concatenate([-forces.T, np.zeros((len(rows), len(forces)))])
    efforts = np.linalg.lstsq(system, right, rcond=1e-9)[0][-mechanism.na :] / W[:, None]
    free = scipy.linalg.null_space(system, rcond=1e-9)[-mechanism.na :] / W[:, None]
    free[np.abs(free) < 1e-9] = 0.0  # of loops that are closed twice
    return np.asarray((W[:, None] * (efforts - free @ np.linalg.lstsq(free, efforts, rcond=1e-9)[0])).T)


SHAPES = st.one_of(
    st.builds(Shape, planar=st.booleans(), loops=st.integers(1, 3)),
    st.builds(Shape, planar=st.just(False), loops=st.integers(2, 4), floating=st.just(True)),
)


@pytest.mark.extended("test_a_route_agrees")
@settings(max_examples=RANDOM if settings.get_current_profile_name() == "suite" else settings().max_examples)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_exact_routes_agree_on_any_chain(
    shape: Shape, seed: int, tmp_path_factory: pytest.TempPathFactory, model_case: CaseMaker
) -> None:
    rng, path = np.random.default_rng(seed), tmp_path_factory.getbasetemp() / "chain.xml"
    assume(closed_chain(shape, rng, path))
    case = pushed(model_case(path), rng)
    motion = states(case, rng)
    _hold(case, motion)
    for route in EXACT:
        if route in COMPILED or not (route in sources.ANALYTIC or engines.installed(route.split("/")[0])):
            continue
        try:
            history = sources.load(route).compute_efforts(case, motion)
        except NotRepresentableError:  # of all engines, and of balls that are turned far
            assert route != "analytic/lagrange"
            continue
        most = registered()[route].relative_error or 0 if "lcaba" in route else ROUND_OFF
        assert error(history.effort, case, motion) < most, f"{route}\n{path.read_text(encoding='utf-8')}"
        assert history.closure_drift is None or history.closure_drift.largest < CLOSED


def test_a_loop_that_moves_no_motor_costs_nothing(tmp_path: Path, model_case: CaseMaker) -> None:
    """A driven pendulum beside a slide that is held: the pendulum's closed form."""
    inertial = '<inertial pos="0.3 0 0" mass="2" diaginertia="0.1 0.2 0.3"/>'
    path = tmp_path / "held.xml"
    path.write_text(
        f"""<mujoco><worldbody>
        <body name="arm"><joint name="arm" axis="0 1 0"/>{inertial}</body>
        <body name="held"><joint name="held" type="slide" axis="0 0 1"/>{inertial}</body>
        </worldbody><equality><weld body1="held"/></equality><actuator><motor joint="arm"/></actuator></mujoco>""",
        encoding="utf-8",
    )
    case = model_case(path)
    motion = replace(
        states(case, np.random.default_rng(0)), q=np.full((3, 2), [0.4, 0.0]), qdd=np.full((3, 2), [1.5, 0])
    )
    wanted = (0.2 + 2 * 0.3**2) * 1.5 - 2 * 9.81 * 0.3 * np.cos(0.4)
    for name in ("analytic/noc", "analytic/lagrange", "mujoco/kkt"):
        assert sources.load(name).compute_efforts(case, motion).effort[:, 0] == pytest.approx(wanted, rel=1e-12)
