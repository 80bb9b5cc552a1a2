"""Imports MJX without what it prints, and says in which precision it computes."""

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

with redirect_stdout(StringIO()):  # that Warp, another way to compute, is not there
    import jax
    from mujoco import mjx

__all__ = ["jax", "mjx", "on_cpu"]


@contextmanager
def on_cpu(*, double: bool) -> Iterator[None]:
    """Compute on the CPU in double or single precision meanwhile, and in this thread alone."""
    with jax.enable_x64(double), jax.default_device(jax.devices("cpu")[0]):
        yield
