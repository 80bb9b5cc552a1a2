"""Imports Exudyn, and keeps the output of its C++ code out of the user's terminal."""

from importlib import import_module
from typing import Any

from loopcheck.engines.boundary import silenced

__all__ = ["exudyn", "items", "silenced"]

with silenced():
    exudyn: Any = import_module("exudyn")  # its stubs lack the arguments of its methods
    items: Any = import_module("exudyn.itemInterface")
