"""Genesis, initialized once in a process: here in double precision, on a GPU if PyTorch has one."""

from functools import cache

import genesis
import torch

__all__ = ["device", "genesis", "start", "torch"]


@cache
def start() -> None:
    """Initialize Genesis; whoever did so before in this process has chosen its precision."""
    backend = genesis.gpu if torch.cuda.is_available() else genesis.cpu
    genesis.init(backend=backend, precision="64", logging_level="error")


def device() -> str:
    """Name of the computing device: the name of a GPU, or CPU."""
    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else "CPU"
