"""Counts floating-point operations of numpy code by a run on arrays that count their operations.

Sums, products and quotients of real numbers count one each; harmonic functions, their inverses and square roots as in
equation (41) of Wang et al. 2019. Complex operations count their real operations. Decompositions count by the
formulas of Golub and Van Loan, Matrix Computations (4th ed., sections 3.2, 5.2 and 8.6). Operations on constants of
the model alone are not counted, nor are signs, copies and comparisons; products with structural zeros are.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

HARMONIC, INVERSE, ROOT = 18, 23, 6
REAL = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "square", "reciprocal"), 1),
    **dict.fromkeys(("sin", "cos", "tan"), HARMONIC),
    **dict.fromkeys(("arcsin", "arccos", "arctan", "arctan2"), INVERSE),
    "sqrt": ROOT,
    "maximum": 0,
}
"""Cost of an operation on real numbers."""
COMPLEX = {
    **dict.fromkeys(("add", "subtract"), 2),
    "multiply": 6,
    "divide": 11,
    "square": 5,  # two products, and (a + b)(a − b)
    **dict.fromkeys(("sin", "cos"), 4 * HARMONIC + 2),
    "sqrt": 3 * ROOT + 7,  # of the modulus and of the half sums
}
"""Cost of an operation on complex numbers."""
MIXED = {**dict.fromkeys(("add", "subtract"), 1), "multiply": 2, "divide": 2}
"""Cost of an operation on a complex and a real number; a real number over a complex number counts as complex."""
FREE = {"negative", "positive", "absolute", "conjugate", "less", "greater", "greater_equal", "less_equal", "isfinite"}


class Counted(np.ndarray[Any, Any]):
    """An array with counted operations."""

    flops = 0.0
    """Counted so far, over all arrays."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [_plain(value) for value in inputs]
        if options.get("out"):
            options["out"] = tuple(_plain(value) for value in options["out"])
        result = getattr(ufunc, method)(*plain, **options)
        Counted.flops += _cost_of_ufunc(ufunc.__name__, method, plain, result)
        return _counted(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _call(func, *args, **kwargs)


def count(run: Callable[[], Any]) -> float:
    """Floating-point operations of a function of counted arrays."""
    before = Counted.flops
    run()
    return Counted.flops - before


def counted(array: Any) -> Any:
    """A copy of an array that keeps count."""
    return np.array(array).view(Counted)


@contextmanager
def counting(*modules: ModuleType) -> Iterator[None]:
    """Make all arrays of some modules count their operations, those made by zeros included."""
    try:
        for module in modules:
            vars(module)["np"] = _Numpy()
        yield
    finally:
        for module in modules:
            vars(module)["np"] = np


class _Numpy:
    """numpy with functions that return counted arrays."""

    linalg: Any

    def __getattr__(self, name: str) -> Any:
        if name == "linalg":
            return _Linalg()
        attribute = getattr(np, name)
        if isinstance(attribute, np.ufunc | type) or not callable(attribute):
            return attribute
        return lambda *args, **kwargs: _call(attribute, *args, **kwargs)


class _Linalg:
    def __getattr__(self, name: str) -> Any:
        attribute = getattr(np.linalg, name)
        return lambda *args, **kwargs: _call(attribute, *args, **kwargs)


def _call(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function of numpy on plain arrays, count its cost, and return counted arrays."""
    is_counted = any(isinstance(value, Counted) for value in _leaves(args))
    plain = _plain(args)
    result = func(*plain, **{name: _plain(value) for name, value in kwargs.items()})
    if is_counted:
        Counted.flops += COSTS.get(func.__name__, lambda args, result: 0.0)(plain, result)
    return _counted(result)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def _counted(result: Any) -> Any:
    if isinstance(result, tuple):
        parts = [_counted(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    is_number = isinstance(result, np.ndarray) and result.dtype.kind in "fc"
    return result.view(Counted) if is_number else result


def _cost_of_ufunc(name: str, method: str, inputs: Sequence[Any], result: Any) -> float:
    is_complex = [np.iscomplexobj(value) for value in inputs]
    if name == "matmul":
        return _cost_of_matmul(inputs, is_complex, result)
    if name in FREE:
        return 0.0
    if name == "power":  # of a whole number, by products
        return float(np.size(result) * (inputs[1] - 1) * (COMPLEX if is_complex[0] else REAL)["multiply"])
    size = np.size(inputs[0]) - np.size(result) if method == "reduce" else np.size(result)
    mixed = len(inputs) == 2 and is_complex[0] != is_complex[1] and not (name == "divide" and is_complex[1])
    return float(size * (MIXED if mixed else COMPLEX if any(is_complex) else REAL)[name])


def _cost_of_matmul(inputs: Sequence[Any], is_complex: Sequence[bool], result: Any) -> float:
    k = inputs[0].shape[-1]
    product, total = (1, 1) if not any(is_complex) else (6, 2) if all(is_complex) else (2, 2)
    return float(np.size(result) * (k * product + (k - 1) * total))


def _cost_of_einsum(args: Any, result: Any) -> float:
    names, *operands = args
    lengths = {
        name: length
        for letters, operand in zip(names.split("->")[0].split(","), operands, strict=True)
        for name, length in zip(letters, operand.shape, strict=True)
    }
    return float(math.prod(lengths.values()) * len(operands) - np.size(result))


def _cost_of_qr(args: Any, result: Any) -> float:
    """Householder: R, and Q of the required width."""
    *batch, m, n = args[0].shape
    wide = result[0].shape[-1]
    forming = 4 * (m * m * n - m * n * n + n**3 / 3) if wide == m else 2 * n * n * (m - n / 3)
    return math.prod(batch) * (2 * n * n * (m - n / 3) + forming)


def _cost_of_solve(args: Any, result: Any) -> float:
    n = args[0].shape[-1]
    batch = math.prod(args[0].shape[:-2])
    return batch * 2 / 3 * n**3 + 2 * n * np.size(result)


def _cost_of_inverse(args: Any, result: Any) -> float:
    """Elimination, and the solution for each column of the identity."""
    return 2.0 * np.size(result) * result.shape[-1]


def _cost_of_pinv(args: Any, result: Any) -> float:
    """Singular value decomposition, and the product V Σ⁻¹ Uᵀ."""
    *batch, rows, columns = args[0].shape
    m, n = max(rows, columns), min(rows, columns)
    return math.prod(batch) * (14.0 * m * n * n + 8 * n**3 + n + n * n + m * n * (2 * n - 1))


COSTS: dict[str, Callable[[Any, Any], float]] = {
    "einsum": _cost_of_einsum,
    "cross": lambda args, result: 3.0 * np.size(result),
    "qr": _cost_of_qr,
    "solve": _cost_of_solve,
    "inv": _cost_of_inverse,
    "norm": lambda args, result: 2.0 * np.size(args[0]),
    "pinv": _cost_of_pinv,
}
"""Cost of functions that are more than arrangements of numbers."""
