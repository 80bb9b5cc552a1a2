"""Newton and Warp, without the output of Warp's compilations."""

import warp

warp.config.quiet = True
warp.init()

import newton  # noqa: E402

__all__ = ["device", "newton", "warp"]


def device() -> str:
    """The default device of models: a GPU if available, otherwise the CPU."""
    chosen = warp.get_device()
    return str(chosen.name) if chosen.is_cuda else "CPU"
