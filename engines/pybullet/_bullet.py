"""Imports PyBullet, and keeps the output of its C++ code out of the user's terminal."""

from loopcheck.engines.boundary import silenced

__all__ = ["pybullet", "silenced"]

with silenced():
    import pybullet  # prints when it was built
