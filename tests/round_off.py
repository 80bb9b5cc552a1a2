"""Opt-in plug-in: results of linear algebra differ in their last digit, as they do between machines.

The difference depends on the seed and on the number alone, so that the same computation still has the same result.
A test that fails with it asserts the sign or the size of round-off.
"""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.linalg

PERTURBED = {
    np: ("cross", "dot", "einsum"),
    np.linalg: ("cholesky", "det", "eigh", "eigvalsh", "inv", "lstsq", "norm", "pinv", "qr", "solve", "svd"),
    scipy.linalg: ("eigh", "lstsq", "qr", "solve", "svd"),
}
EXACT = 2.0**20
"""Numbers that are multiples of its inverse are taken for exact, on every machine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--perturb", type=int, default=0, metavar="SEED", help="Seed of the round-off.")


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any module of ours takes a function of these."""
    salt = np.uint64(0x9E3779B97F4A7C15 * (early_config.known_args_namespace.perturb + 1) % 2**64)
    for module, names in PERTURBED.items():
        for name in names:
            _perturb(module, name, salt)


def _perturb(module: ModuleType, name: str, salt: np.uint64) -> None:
    function: Callable[..., Any] = getattr(module, name)

    @wraps(function)
    def perturbed(*args: Any, **options: Any) -> Any:
        return _rounded(function(*args, **options), salt)

    setattr(module, name, perturbed)


def _rounded(result: Any, salt: np.uint64) -> Any:
    """The same with each number up to an ulp larger or smaller."""
    if isinstance(result, tuple):
        parts = [_rounded(part, salt) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if not isinstance(result, np.ndarray | np.floating) or result.dtype != np.float64:
        return result
    x = np.asarray(result)
    with np.errstate(all="ignore"):
        bits = np.ascontiguousarray(x).view(np.uint64).reshape(x.shape) + salt
        mixed = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(33)
        is_exact = np.rint(EXACT * x) == EXACT * x
        other = np.where(is_exact, x, x * (1 + np.finfo(float).eps * ((mixed % np.uint64(3)).astype(float) - 1)))
    return other if isinstance(result, np.ndarray) else np.float64(other)
