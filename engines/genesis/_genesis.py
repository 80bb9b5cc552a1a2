"""Genesis, which is initialized once in a process: here in double precision, on the CPU."""

from functools import cache

import genesis
import torch

__all__ = ["genesis", "start", "torch"]


@cache
def start() -> None:
    """Initialize Genesis; whoever did so before in this process has chosen its precision."""
    genesis.init(backend=genesis.cpu, precision="64", logging_level="error")
