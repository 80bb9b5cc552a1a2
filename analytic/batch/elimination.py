"""Sparse Gaussian elimination on scalars, with pivots chosen by size and fill at the pose of the trace.

What is zero by structure costs nothing. A pivot that is small at another pose is not exchanged: `guard` tells.
"""

from dataclasses import dataclass

from analytic.batch.expressions import Scalar, Symbol, root, value_of
from analytic.closures import RANK_TOLERANCE
from robots.errors import SingularityError

THRESHOLD = 0.25
"""Smallest pivot relative to the largest entry of its column [-]: larger is stabler, smaller leaves less work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Two rows changed by a matrix: the new one of the first is a first + b second, of the second c first + d second."""

    first: int
    second: int
    matrix: tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar]]

    def apply(self, x: list[Scalar]) -> None:
        """Change what stands on the right of the rows."""
        self._multiply(x, *self.matrix)

    def apply_transposed(self, x: list[Scalar]) -> None:
        """The same by the transposed matrix."""
        self._multiply(x, *zip(*self.matrix, strict=True))

    def _multiply(self, x: list[Scalar], *rows: tuple[Scalar, ...]) -> None:
        first, second = x[self.first], x[self.second]
        x[self.first], x[self.second] = (a * first + b * second for a, b in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """E A Q = U of the independent rows of A (m, n), m ≥ n, with E the product of all steps; other rows become 0."""

    rows: list[int]
    """Row of each pivot."""
    columns: list[int]
    """Column of each pivot."""
    pivots: list[Scalar]
    inverses: list[Scalar]
    """One over each pivot."""
    steps: list[Step]
    upper: list[dict[int, Scalar]]
    """What each pivot row has in later columns."""

    def solve(self, right: list[Scalar]) -> list[Scalar]:
        """X in A x = right, one entry for each column."""
        right = list(right)
        x: list[Scalar] = [0.0] * len(self.columns)
        for step in self.steps:
            step.apply(right)
        for k in reversed(range(len(self.rows))):
            rest = right[self.rows[k]]
            for column, entry in self.upper[k].items():
                rest = rest - entry * x[column]
            x[self.columns[k]] = rest * self.inverses[k]
        return x

    def solve_transposed(self, right: list[Scalar], size: int) -> list[Scalar]:
        """Y in Aᵀ y = right; `size` is the number of rows of A."""
        right = list(right)
        y: list[Scalar] = [0.0] * size
        for k, (row, column) in enumerate(zip(self.rows, self.columns, strict=True)):
            y[row] = right[column] * self.inverses[k]
            for other, entry in self.upper[k].items():
                right[other] = right[other] - entry * y[row]
        for step in reversed(self.steps):
            step.apply_transposed(y)
        return y

    @property
    def relative_pivots(self) -> list[Symbol]:
        """Each pivot over its value at the pose of the trace, where it is not constant [-]."""
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
    factors = Factors(rows=[], columns=[], pivots=[], inverses=[], steps=[], upper=[])
    for _ in range(n):
        i, j = _pivot(active, RANK_TOLERANCE * largest)
        others = [other for other, entries in active.items() if j in entries and other != i]
        for other in others:
            rotates = len(others) == 1 and isinstance(active[i][j], Symbol)
            step, pivot = (_rotation if rotates else _elimination)(active, i, other, j)
            _change(active, step)
            del active[other][j]
            active[i][j] = pivot
            factors.steps.append(step)
        row = active.pop(i)
        pivot = row.pop(j)
        factors.rows.append(i)
        factors.columns.append(j)
        factors.pivots.append(pivot)
        factors.inverses.append(1.0 / pivot)
        factors.upper.append(row)
    return factors


def _elimination(active: dict[int, dict[int, Scalar]], i: int, other: int, j: int) -> tuple[Step, Scalar]:
    """The step that takes a multiple of the pivot row from another row (Gauss), and the pivot."""
    pivot = active[i][j]
    return Step(first=i, second=other, matrix=((1.0, 0.0), (-(active[other][j] * (1.0 / pivot)), 1.0))), pivot


def _rotation(active: dict[int, dict[int, Scalar]], i: int, other: int, j: int) -> tuple[Step, Scalar]:
    """The step that turns two rows so that one loses its entry (Givens), and the pivot.

    It costs more, but the pivot vanishes only where both entries do.
    """
    a, b = active[i][j], active[other][j]
    pivot = root(a * a + b * b)
    c, s = a * (1.0 / pivot), b * (1.0 / pivot)
    return Step(first=i, second=other, matrix=((c, s), (-s, c))), pivot


def _change(active: dict[int, dict[int, Scalar]], step: Step) -> None:
    """Change two rows."""
    rows = active[step.first], active[step.second]
    for column in sorted(rows[0].keys() | rows[1].keys()):
        entries = [row.get(column, 0.0) for row in rows]
        for row, (a, b) in zip(rows, step.matrix, strict=True):
            entry = a * entries[0] + b * entries[1]
            if isinstance(entry, Symbol) or entry != 0:
                row[column] = entry


def _pivot(active: dict[int, dict[int, Scalar]], smallest: float) -> tuple[int, int]:
    """The entry of least fill (Markowitz 1957) among those that are large in their column."""
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
