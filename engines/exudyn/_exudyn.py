"""Imports Exudyn, and keeps what its C++ prints out of the user's terminal."""

from engines.silence import silenced

__all__ = ["exudyn", "items", "silenced"]

with silenced():
    import exudyn
    import exudyn.itemInterface as items
