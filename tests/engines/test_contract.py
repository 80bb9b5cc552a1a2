"""What every route of every engine must do, whatever its robot: found by its place, tested by this one file."""

from itertools import pairwise

import numpy as np
import pytest

import engines
from robots.efforts import EffortHistory
from robots.errors import NotFoundError
from robots.motion import Motion
from robots.robot import Case
from validation.tolerances import registered

NAMES = [name for name in engines.names() if not engines.on_request(name.split("/")[0])]
"""Those on request are slow to begin with: their own tests hold them to the same contract."""
ROUTES = pytest.mark.parametrize("history", NAMES, indirect=True)
FORWARD = pytest.mark.parametrize("history", [n for n in NAMES if n.endswith("/forward")], indirect=True)


@pytest.fixture(scope="module")
def history(request: pytest.FixtureRequest, prr: Case, prr_motion: Motion) -> EffortHistory:
    if not engines.installed(request.param.split("/")[0]):
        if request.config.getoption("--require-engines"):
            pytest.fail(f"{request.param}: its engine is not installed")
        pytest.skip(f"{request.param}: its engine is not installed")
    return engines.load(request.param).compute_efforts(prr, prr_motion)


def test_every_route_is_there() -> None:
    assert set(engines.names()) >= {
        *(f"mujoco/{route}" for route in ("kkt", "forward", "default", "inverse")),
        *(f"pinocchio/{route}" for route in ("kkt", "forward")),
        *(f"pybullet/{route}" for route in ("kkt", "forward", "default")),
        "exudyn/forward",
        *(f"mjx/{route}" for route in ("kkt", "forward", "kkt_single", "forward_single")),
    }


def test_an_unknown_route_is_refused() -> None:
    with pytest.raises(NotFoundError, match="unknown source 'mujoco/model': known are exudyn/forward, mjx/forward"):
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


@FORWARD
def test_a_forward_route_shows_its_convergence(history: EffortHistory) -> None:
    """At least three steps, each finer than the one before, that come closer to each other."""
    steps = [rung.dt for rung in history.ladder]
    assert len(steps) >= 3
    assert steps == sorted(steps, reverse=True)
    efforts = [rung.effort for rung in history.ladder]
    changes = [np.abs(fine - coarse).max() for coarse, fine in pairwise(efforts)]
    assert changes == sorted(changes, reverse=True)
