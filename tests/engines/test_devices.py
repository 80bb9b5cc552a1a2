"""The computing device of engines that run on GPUs, as routes state it."""

from types import SimpleNamespace

import pytest

GPU = "a GPU of a test"


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
