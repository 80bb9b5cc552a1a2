"""Sparse Gaussian elimination on scalars, with pivots chosen by size and fill at the pose of the trace.

Structural zeros cost no operation. A pivot that is small at another pose is not exchanged: see `guard`.
"""

from dataclasses import dataclass

from loopcheck.analytic.batch.expressions import Scalar, Symbol, value_of
from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.robots.errors import SingularityError

THRESHOLD = 0.25
"""Smallest pivot relative to the largest entry of its column [-]: larger is stabler, smaller leaves less work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """P A Q = L U of the independent rows of A (m, n), m ≥ n; rows that depend on them are left out."""

    rows: list[int]
    """Row of each pivot."""
    columns: list[int]
    """Column of each pivot."""
    pivots: list[Scalar]
    inverses: list[Scalar]
    """Reciprocal of each pivot."""
    lower: list[dict[int, Scalar]]
    """Multiples of each pivot row that are taken from later rows."""
    upper: list[dict[int, Scalar]]
    """Entries of each pivot row in later columns."""

    def solve(self, right: list[Scalar]) -> list[Scalar]:
        """X in A x = right, an entry for each column."""
        right = list(right)
        x: list[Scalar] = [0.0] * len(self.columns)
        for row, lower in zip(self.rows, self.lower, strict=True):
            for other, multiple in lower.items():
                right[other] = right[other] - multiple * right[row]
        for k in reversed(range(len(self.rows))):
            rest = right[self.rows[k]]
            for column, entry in self.upper[k].items():
                rest = rest - entry * x[column]
            x[self.columns[k]] = rest * self.inverses[k]
        return x

    def solve_transposed(self, right: list[Scalar], size: int) -> list[Scalar]:
        """Y in Aᵀ y = right with a zero for each row left out; `size` is the number of rows of A."""
        right = list(right)
        y: list[Scalar] = [0.0] * size
        for k, (row, column) in enumerate(zip(self.rows, self.columns, strict=True)):
            y[row] = right[column] * self.inverses[k]
            for other, entry in self.upper[k].items():
                right[other] = right[other] - entry * y[row]
        for k in reversed(range(len(self.rows))):
            for other, multiple in self.lower[k].items():
                y[self.rows[k]] = y[self.rows[k]] - multiple * y[other]
        return y

    @property
    def relative_pivots(self) -> list[Symbol]:
        """Each variable pivot over its value at the pose of the trace [-]."""
        relative = (pivot * (1 / pivot.value) for pivot in self.pivots if isinstance(pivot, Symbol))
        return [pivot for pivot in relative if isinstance(pivot, Symbol)]


def factorize(A: list[dict[int, Scalar]], n: int) -> Factors:
    """Eliminate.

    Args:
        A: Entries of each row by column.
        n: Number of columns.

    Raises:
        SingularityError: If A has not rank n at the pose of the trace.
    """
    active = {i: {j: a for j, a in row.items() if isinstance(a, Symbol) or a != 0} for i, row in enumerate(A)}
    largest = max((abs(value_of(a)) for row in active.values() for a in row.values()), default=0.0)
    factors = Factors(rows=[], columns=[], pivots=[], inverses=[], lower=[], upper=[])
    for _ in range(n):
        i, j = _pivot(active, RANK_TOLERANCE * largest)
        row = active.pop(i)
        pivot = row.pop(j)
        inverse = 1.0 / pivot
        lower = {other: entries.pop(j) * inverse for other, entries in active.items() if j in entries}
        for other, multiple in lower.items():
            for column, entry in row.items():
                active[other][column] = active[other].get(column, 0.0) - multiple * entry
        factors.rows.append(i)
        factors.columns.append(j)
        factors.pivots.append(pivot)
        factors.inverses.append(inverse)
        factors.lower.append(lower)
        factors.upper.append(row)
    return factors


def _pivot(active: dict[int, dict[int, Scalar]], smallest: float) -> tuple[int, int]:
    """The entry of least fill (Markowitz 1957) among the large entries of their columns.

    Among equals, an entry in a column of few entries: so no pivot of the 3-PRR vanishes on its path.
    """
    columns: dict[int, list[tuple[int, float]]] = {}
    for i, row in active.items():
        for j, a in row.items():
            columns.setdefault(j, []).append((i, abs(value_of(a))))
    candidates = [
        ((len(active[i]) - 1) * (len(entries) - 1), len(entries), -size, i, j)
        for j, entries in columns.items()
        for i, size in entries
        if size > smallest and size >= THRESHOLD * max(other for _, other in entries)
    ]
    if not candidates:
        raise SingularityError("the closures do not determine the passive joints", time=0.0, singular_value=0.0)
    *_, i, j = min(candidates)
    return i, j
