"""Newton and Warp, which is told before it starts not to print what it compiles."""

import warp

warp.config.quiet = True
warp.init()

import newton  # noqa: E402

__all__ = ["device", "newton", "warp"]


def device() -> str:
    """What computes, where models are put unless they are told: a GPU where there is one, else the CPU."""
    chosen = warp.get_device()
    return str(chosen.name) if chosen.is_cuda else "CPU"
