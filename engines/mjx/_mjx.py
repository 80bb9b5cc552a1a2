"""Imports MJX without its output, and selects the precision."""

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

with redirect_stdout(StringIO()):  # that Warp, another way to compute, is not there
    import jax
    from mujoco import mjx

__all__ = ["device", "jax", "mjx", "on_cpu", "on_device"]


@contextmanager
def on_cpu(*, double: bool) -> Iterator[None]:
    """Compute on the CPU in double or single precision meanwhile, and in this thread alone."""
    with jax.enable_x64(double), jax.default_device(jax.devices("cpu")[0]):
        yield


@contextmanager
def on_device(*, double: bool) -> Iterator[None]:
    """Compute in double or single precision meanwhile, in this thread alone, on a GPU if JAX has one."""
    with jax.enable_x64(double):
        yield


def device() -> str:
    """The device that computes unless the CPU is requested."""
    first = jax.devices()[0]
    return "CPU" if first.platform == "cpu" else str(first.device_kind)
