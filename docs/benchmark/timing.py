"""Times of several programs in turns, so that a busy machine slows all alike."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopcheck.robots.arrays import Array

REPETITIONS = 7
FEW, GAP = 512, 520
"""Samples whose inputs and outputs fit into a cache, and numbers of a column: no whole number of pages [-]."""


def repeated(act: Callable[[], Any], count: int) -> Callable[[], Any]:
    """The same act several times."""
    return lambda: [act() for _ in range(count)]


def alternated(ways: Mapping[str, tuple[Callable[[], Any], int]]) -> dict[str, Array]:
    """CPU time of each way for a sample [s], shape (REPETITIONS,); each comes with how many samples it does."""
    spent = {name: np.zeros(REPETITIONS) for name in ways}
    for k in range(REPETITIONS):
        for name, (way, count) in ways.items():
            start = time.process_time()
            way()
            spent[name][k] = (time.process_time() - start) / count
    return spent
