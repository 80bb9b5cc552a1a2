"""Robots of a batch: required efforts accelerate each robot by its motion, in every engine with batches."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.declarations import choices
from loopcheck.robots.mechanism import Wrench
from loopcheck.robots.robot import Case, load, representative_case
from tests.cpu_time import extended_but

STEPS = 10
GPU = "a GPU of a test"
ACCELERATED = "test_efforts_accelerate_each_world_as_its_motion_does"
WITH_BATCHES = [name for name in engines.engine_names() if engines.provides(name, "batch")]


def is_loaded(case: Case) -> Case:
    """The same with a wrench on its platform that exceeds the required efforts."""
    body = next(k for k, body in enumerate(case.mechanism.bodies) if body.name == "platform")
    wrench = Wrench(
        body=body, point=np.array([0.05, -0.03, 0.0]), force=np.array([90.0, -60.0, 0.0]), moment=np.array([0, 0, 9.0])
    )
    return replace(case, mechanism=replace(case.mechanism, wrenches=(wrench,)))


@pytest.mark.parametrize("of_case", [lambda case: case, is_loaded], ids=["as it is", "loaded"])
@pytest.mark.parametrize("name", extended_but(["mujoco"], WITH_BATCHES, ACCELERATED))
def test_efforts_accelerate_each_world_as_its_motion_does(name: str, of_case: Callable[[Case], Case]) -> None:
    """Held at their values in the middle of the steps; each robot has its own state.

    Soft loops swing at first: doubled or missing efforts miss the motion by far more.
    """
    if not engines.installed(name):
        pytest.skip(f"{name} is not installed")
    batch = engines.part(name, "batch")
    assert batch is not None
    case = of_case(representative_case(load("3prr")))
    motion = prescribe(case)
    places = np.array([20, 50, 70])
    tuning = engines.part(name, "tuning")
    given = tuning.given(case.mechanism)
    tried = choices(tuning, given)
    of_every_solver = {settings.get("solver", ""): settings for settings in [*tried.values()][::-1]}
    for settings in of_every_solver.values():
        span = STEPS * float(settings.get("timestep", given.step))
        middle = motion.assemble(motion.t[places] + span / 2)
        after = motion.assemble(motion.t[places] + span)
        tau = Noc().compute_efforts(case, middle).effort
        for precision in batch.PRECISIONS:
            off = []
            for part in (1.0, 0.0, 2.0):
                robots = batch.worlds(case.mechanism, (motion.q[places], motion.qd[places]), settings, precision)
                robots.step(part * tau, STEPS)
                off.append(np.linalg.norm(robots.state()[1] - after.qd, axis=1))
            assert (off[0] < 0.2 * np.minimum(*off[1:])).all(), (settings, off)


def test_mjx_computes_on_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco.mjx")
    from loopcheck.engines.mjx import _mjx

    assert _mjx.device() == "CPU"
    monkeypatch.setattr(_mjx.jax, "devices", lambda: [SimpleNamespace(platform="gpu", device_kind=GPU)])
    assert _mjx.device() == GPU


def test_mujoco_warp_computes_on_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco_warp")
    from loopcheck.engines.mujoco_warp import _warp

    monkeypatch.setattr(_warp.warp, "get_preferred_device", lambda: SimpleNamespace(name=GPU, is_cuda=True))
    assert _warp.device() == GPU


def test_newton_computes_on_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo's C library cannot: its port does then, and the settings of a run state it."""
    pytest.importorskip("newton")
    from loopcheck.engines.newton import _newton, _stepping

    stepping = _stepping.Stepping(solver="mujoco")
    on_cpu = (_newton.device(), stepping.description)
    monkeypatch.setattr(_newton.warp, "get_device", lambda: SimpleNamespace(name=GPU, is_cuda=True))
    assert _newton.device() == GPU
    assert "by MuJoCo Warp" in stepping.description
    assert on_cpu[0] == GPU or "by MuJoCo's C library" in on_cpu[1]


def test_genesis_computes_on_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("genesis")
    from loopcheck.engines.genesis import _genesis

    started: list[object] = []
    monkeypatch.setattr(_genesis.genesis, "init", lambda **options: started.append(options["backend"]))
    for has_one in (True, False):
        monkeypatch.setattr(_genesis.torch.cuda, "is_available", lambda has_one=has_one: has_one)
        monkeypatch.setattr(_genesis.torch.cuda, "get_device_name", lambda: GPU)
        _genesis.start.__wrapped__()
        assert _genesis.device() == (GPU if has_one else "CPU")
    assert started == [_genesis.genesis.gpu, _genesis.genesis.cpu]
