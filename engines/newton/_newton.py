"""Newton and Warp, which is told before it starts not to print what it compiles."""

import warp

warp.config.quiet = True
warp.init()

import newton  # noqa: E402

__all__ = ["newton", "warp"]
