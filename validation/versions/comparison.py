"""Changes of a model file between two releases, by term of its equations of motion."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.validation.versions.dump import unpacked

Dump: TypeAlias = Mapping[str, Any]
"""What `dump.py` writes for a file."""
SIGNIFICANT = 1e-9
"""Smallest change of a term that counts, over its largest value [-]. Round-off between builds reaches 2e-11."""
ROUND_OFF = 1e-12
"""Smallest change of a term that is noted [-]."""
NEGLIGIBLE = 1e-6
"""Part of the largest quantity of its kind below which a term has no scale of its own [-]."""
KINDS = (
    ("bias", "passive", "joint force", "gravity"),
    ("qacc without constraints", "qacc", "qacc, tight", "aref"),
)
"""Terms of the same kind: forces on dofs, accelerations. The zero of one is round-off of the others."""
NAMED = 3
"""Largest number of elements in a row."""
SOLVER_ONLY = ("qacc", "qacc, tight", "step")
"""Terms that depend on the solver; the others precede it."""
CONTACT = "contact "
"""Beginning of the names of rows of contacts."""


@dataclass(frozen=True, slots=True)
class TermChange:
    """A term that differs between two releases."""

    term: str
    size: float
    """Largest change over the largest value of the term at all states [-]."""
    elements: tuple[str, ...]
    """Elements that differ, the largest change first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Differences of two releases on a model file."""

    terms: tuple[TermChange, ...] = ()
    """Changed terms, the first in the order of the equations first: others may follow from it."""
    finer: tuple[TermChange, ...] = ()
    """Terms with a change between round-off and the limit."""
    fields: tuple[str, ...] = ()
    """Fields of the compiled model that differ."""
    settled: float = 0.0
    """Change of the settled state over its largest value [-]; informational."""
    tight: float | None = None
    """Change of the accelerations with tighter solvers [-]; None unless the solver alone changes."""


def compare(before: Dump, after: Dump) -> Comparison:
    """Differences between two dumps of a file that both releases read."""
    fields = tuple(_fields(before["fields"], after["fields"]))
    if before["sizes"] != after["sizes"]:
        change = TermChange("sizes", 1.0, (f"{before['sizes']} -> {after['sizes']}",))
        return Comparison(terms=(change,), fields=fields)
    found = {one.term: one for one in _changes(before["terms"], after["terms"])}
    tight = found.pop("qacc, tight", None)
    changes = [one for one in found.values() if one.size > SIGNIFICANT]
    is_solver = bool(changes) and changes[0].term == "qacc" and "rows" in after["terms"]
    if is_solver:
        changes[0] = replace(changes[0], term="solver")
    return Comparison(
        terms=tuple(changes),
        finer=tuple(one for one in found.values() if ROUND_OFF < one.size <= SIGNIFICANT),
        fields=fields,
        settled=_relative(unpacked(before["settled"]), unpacked(after["settled"]))
        if before["settled"] and after["settled"]
        else 0.0,
        tight=(tight.size if tight else 0.0) if is_solver else None,
    )


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[TermChange]:
    """The changed terms, with changes of any size."""
    series = [{name: [*map(unpacked, term["values"])] for name, term in terms.items()} for terms in (before, after)]
    names = [{name: _names(term) for name, term in terms.items()} for terms in (before, after)]
    largest = {name: max(map(_largest, series[0][name] + series[1].get(name, []))) for name in series[0]}
    for term in after:
        if term not in before:
            continue
        if term == "rows":
            yield from _of_rows(names[0][term], names[1][term])
            continue
        kind = next((kind for kind in KINDS if term in kind), (term,))
        scale = max(largest[term], NEGLIGIBLE * max(largest.get(name, 0.0) for name in kind))
        values = zip(series[0][term], series[1][term], names[0][term], names[1][term], strict=True)
        per_element: dict[str, float] = {}
        for a, b, names_a, names_b in values:
            if len(a) == len(b) and Counter(names_a) == Counter(names_b):  # other rows are a change of their own
                for name, size in _of_elements(_in_order(a, names_a), _in_order(b, names_b), sorted(names_a)):
                    per_element[name] = max(per_element.get(name, 0.0), size)
        ordered = sorted(per_element, key=lambda name: -per_element[name])
        if ordered:
            size = per_element[ordered[0]]
            elements = [name for name in ordered[:NAMED] if per_element[name] >= 0.1 * size]
            yield TermChange(term, size / scale if scale and np.isfinite(size) else np.inf, tuple(elements))


def _names(term: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """Names of the elements at each state."""
    names: Sequence[Sequence[str]] = term["names"]
    return list(names) * len(term["values"]) if len(names) == 1 else names


def _in_order(values: Array, names: Sequence[str]) -> Array:
    """Values of a term, shape (names, n), by name: releases may order their contacts differently.

    Args:
        values: Values of all elements in sequence [any unit], shape (names * n,).
        names: Names of the elements.
    """
    order = sorted(range(len(names)), key=names.__getitem__)
    return values.reshape(len(names), -1)[order] if names else values.reshape(0, 0)


def _of_elements(a: Array, b: Array, names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Elements that differ, with the largest absolute change of each."""
    differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):  # infinity less infinity, which does not differ
        sizes = np.where(differs, np.abs(a - b), 0.0).max(axis=1, initial=0.0)
    for k in np.flatnonzero(differs.any(axis=1)):
        yield names[int(k)], float(sizes[k]) if np.isfinite(sizes[k]) else np.inf


def _of_rows(before: Sequence[Sequence[str]], after: Sequence[Sequence[str]]) -> Iterator[TermChange]:
    """Rows that exist in a single release."""
    single: Counter[str] = Counter()
    for a, b in zip(before, after, strict=True):
        single += (Counter(a) - Counter(b)) + (Counter(b) - Counter(a))
    if single:
        total = sum(map(len, (*before, *after)))
        word = "contacts" if all(name.startswith(CONTACT) for name in single) else "rows"
        yield TermChange(word, single.total() / total, tuple(name for name, _ in single.most_common(NAMED)))


def _fields(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Fields of both releases with the same shape and other values."""
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            a, b = unpacked(before[name]), unpacked(after[name])
            if len(a) == len(b) and _relative(a, b) > SIGNIFICANT:
                yield name


def _relative(a: Array, b: Array) -> float:
    """Largest difference over the largest value [-]."""
    if len(a) != len(b):
        return float("inf")
    difference = max((size for _, size in _of_elements(a[:, None], b[:, None], [""] * len(a))), default=0.0)
    scale = max(_largest(a), _largest(b))
    return difference / scale if scale and np.isfinite(difference) else difference


def _largest(values: Array) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=0.0))


def equal_again(dump: Dump, earlier: Iterable[tuple[str, Dump]]) -> str:
    """Newest of some releases with the same terms; empty if there is none.

    Args:
        dump: The terms in a release.
        earlier: Releases before it, the newest first.
    """
    return next((version for version, other in earlier if not compare(other, dump).terms), "")
