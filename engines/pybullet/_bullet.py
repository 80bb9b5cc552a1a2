"""Imports PyBullet, and keeps what its C++ prints out of the user's terminal."""

from loopcheck.engines.boundary import silenced

__all__ = ["pybullet", "silenced"]

with silenced():
    import pybullet  # prints when it was built
