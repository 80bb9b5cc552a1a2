"""Imports MuJoCo Warp without its output, and reports its computing device."""

from collections.abc import Iterator
from contextlib import contextmanager

from loopcheck.engines.boundary import silenced
from loopcheck.robots.errors import EngineError

with silenced():  # that there is no driver of a GPU
    import warp

    warp.config.log_level = warp.LOG_ERROR
    warp.init()
    import mujoco_warp

__all__ = ["device", "guarded", "mujoco_warp", "warp"]


def device() -> str:
    """The computing device, a GPU if available."""
    chosen = warp.get_preferred_device()
    return str(chosen.name) if chosen.is_cuda else "CPU"


@contextmanager
def guarded(source: str) -> Iterator[None]:
    """Turn Warp's exceptions into an `EngineError`."""
    try:
        yield
    except RuntimeError as error:
        raise EngineError(f"{source}: {error}") from error
