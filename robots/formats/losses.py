"""Losses: elements of a model file that the reference does not take into account.

The tables `names_of_*.toml` list the names of a format with their paths: read, harmless, or a loss of a kind. A name
outside a table is a loss too, unless its value is neutral: 0, false, empty or the default. MuJoCo refuses unknown names
itself; the table of MJCF lists the fields of the compiled model, which are losses by their values.
"""

import fnmatch
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias
from xml.etree.ElementTree import Element

import numpy as np

from loopcheck.robots.arrays import AnyArray
from loopcheck.robots.errors import NotFoundError, listed
from loopcheck.robots.formats.xml_document import XmlDocument

Kind: TypeAlias = Literal["mechanism", "drive", "load", "setting", "unknown"]
KINDS: tuple[Kind, ...] = ("mechanism", "drive", "load", "setting", "unknown")
MEANING: Mapping[Kind, str] = {
    "mechanism": "part of the mechanism",
    "drive": "part of an actuator",
    "load": "load",
    "setting": "setting of a simulation",
    "unknown": "unknown name",
}
TELLING = re.compile("constraint|mimic|gear|rotor|transmission", re.IGNORECASE)
"""Words in the name of an unknown element that belongs to the mechanism."""
NEUTRAL = ("", "false", "none", "no")
IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
"""Rotation by zero, with the real part first or last."""
UNLIMITED = 1e16
"""Absolute value of a number from which it limits nothing."""
NAMED = 3
"""Names of elements in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """An element, or all elements of a name and kind, that the reference does not take into account."""

    kind: Kind
    tag: str
    """Name as `--leave-out` takes it."""
    words: str
    """Meaning of the name."""
    elements: tuple[str, ...] = ()
    """Names of the elements with this loss, as `--leave-out TAG:NAME` takes them."""
    path: str = ""
    """Path of the name in the file; empty for a field of a compiled model."""
    file: str = ""
    line: int = 1
    """The first line."""
    count: int = 1
    is_accepted: bool = False
    """Whether the user leaves it out on purpose."""

    def __str__(self) -> str:
        if not self.path:
            return " ".join(filter(None, (self.words, ", ".join(self.elements))))
        of = f" of {listed(self.elements, NAMED)}" if self.elements else ""
        times = f", {self.count} times" if self.count > 1 else ""
        return f"'{self.tag}'{of} is not read ({self.words}{times})"

    @property
    def place(self) -> str:
        """File and first line."""
        return f"{self.file}:{self.line}"


def grouped(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """One loss for each name, kind and acceptance, with the first line and the count, gravest first."""
    groups: dict[tuple[str, str, str, bool], Loss] = {}
    for loss in losses:
        key = (loss.kind, loss.tag, loss.words, loss.is_accepted)
        first = groups.get(key)
        groups[key] = loss if first is None else _joined(first, loss)
    return tuple(sorted(groups.values(), key=lambda loss: KINDS.index(loss.kind)))


def _joined(first: Loss, other: Loss) -> Loss:
    elements = tuple(dict.fromkeys((*first.elements, *other.elements)))
    return replace(first, elements=elements, count=first.count + other.count, line=min(first.line, other.line))


def with_accepted(losses: Iterable[Loss], leave_out: Sequence[str]) -> tuple[Loss, ...]:
    """The losses in groups; those that the user names are accepted.

    Args:
        leave_out: Names of losses, TAG or TAG:NAME.
    """
    chosen = set(leave_out)
    return grouped(replace(loss, is_accepted=not chosen.isdisjoint(_names(loss))) for loss in losses)


def want_losses(leave_out: Iterable[str], losses: Iterable[Loss]) -> None:
    """Check that each name of `--leave-out` fits a loss.

    Raises:
        NotFoundError: If a name fits none; the message lists the names.
    """
    known = dict.fromkeys(name for loss in losses for name in _names(loss))
    for name in leave_out:
        if name not in known:
            raise NotFoundError("element of --leave-out", name, known)


def unread(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Parts of the mechanism that are not read and that the user has not accepted: results are of another robot."""
    return tuple(loss for loss in losses if loss.kind == "mechanism" and not loss.is_accepted)


def _names(loss: Loss) -> list[str]:
    return [loss.tag, *(f"{loss.tag}:{element}" for element in loss.elements)]


def losses_in(record: Mapping[str, Any]) -> list[Loss]:
    """Losses in the record of a run."""
    return [Loss(**{**loss, "elements": tuple(loss["elements"])}) for loss in record.get("losses", ())]


@dataclass(frozen=True)
class NameTable:
    """The names of a format by their paths."""

    format: str
    """With its article, for messages."""
    read: tuple[str, ...]
    harmless: tuple[str, ...]
    loss: Mapping[Kind, Mapping[str, str]]
    """Meaning of each lost name, by kind."""
    default: Mapping[str, Any]
    """Value of a name without effect, in addition to the neutral values."""
    frames: tuple[str, ...]
    """Elements that others name: links, joints and frames."""
    keyed: tuple[str, ...] = ()
    """Elements of which the attribute `name` belongs to the path."""
    refused: tuple[str, ...] = ()
    """Names that the reader refuses where they act."""
    _classes: dict[str, "NameClass"] = field(default_factory=dict)

    @cached_property
    def rules(self) -> list[tuple[str, "NameClass"]]:
        """Endings of paths with their class, the most specific first."""
        every = [(path, NameClass("read")) for text in self.read if (path := text.partition("@")[0])]
        classes = [(text, NameClass("read")) for text in self.read if "@" in text]
        classes += [(text, NameClass("harmless")) for text in self.harmless]
        classes += [(text, NameClass("refused")) for text in self.refused]
        classes += [
            (text, NameClass(kind, words)) for kind, names in self.loss.items() for text, words in names.items()
        ]
        for text, found in classes:
            path, mark, attributes = text.partition("@")
            every += [(f"{path}{mark}{name}", found) for name in attributes.split(",")]
        return sorted(every, key=lambda rule: -len(rule[0].replace("*", "")))

    def class_of(self, path: str) -> "NameClass":
        """The class of a name, by its path `/a/b@attribute`."""
        if path not in self._classes:
            fits = (
                one for ending, one in self.rules if fnmatch.fnmatchcase(path, f"*{'/' * (ending[0] != '@')}{ending}")
            )
            self._classes[path] = next(fits, NameClass(""))
        return self._classes[path]

    def has_elsewhere(self, tag: str) -> bool:
        """Whether the table reads an element of this name in another place."""
        return any(one.kind == "read" and "@" not in path and path.split("/")[-1] == tag for path, one in self.rules)

    def is_neutral(self, name: str, text: str | None) -> bool:
        """Whether a value has no effect."""
        value = (text or "").strip()
        if value.lower() in NEUTRAL or value == self.default.get(name.rpartition("@")[2]):
            return True
        try:
            numbers = np.array([float(part) for part in value.replace(",", " ").split()])
        except ValueError:
            return False
        is_identity = len(numbers) == 4 and any(np.array_equal(numbers, q) for q in (IDENTITY, IDENTITY[::-1]))
        return not numbers.any() or is_identity or bool((np.abs(numbers) >= UNLIMITED).all())


@dataclass(frozen=True, slots=True)
class NameClass:
    """The class of a name: read, harmless, a kind of loss, or empty if no table lists it."""

    kind: str
    words: str = ""


@cache
def table_of(name: str) -> NameTable:
    """The table of a format: `urdf`, `sdf`, `usd` or `mjcf`."""
    path = Path(__file__).parent / f"names_of_{name}.toml"
    content: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    lists = ("read", "harmless", "refused", "frames", "keyed")
    return NameTable(**{**content, **{key: tuple(content.get(key, ())) for key in lists}})


def lost_names(document: XmlDocument, table: NameTable) -> Iterator[Loss]:
    """Losses of an XML file, one for each occurrence."""
    names = {str(element.get("name")) for element in document.root.iter() if element.tag in table.frames}
    yield from _lost_below(document, table, names, document.root, f"/{document.root.tag}")


def _lost_below(
    document: XmlDocument, table: NameTable, names: set[str], element: Element, path: str
) -> Iterator[Loss]:
    """Losses of the attributes of a read element, and of everything below it."""
    for name, text in element.attrib.items():
        if name != "xmlns" and not name.startswith("xmlns:"):
            yield from _lost_attribute(document, table, names, element, f"{path}@{name}", text)
    for child in element:
        key = f":{child.get('name')}" if child.tag in table.keyed else ""
        below = f"{path}/{child.tag}{key}"
        found = table.class_of(below)
        if found.kind == "read":
            yield from _lost_below(document, table, names, child, below)
        elif found.kind != "harmless" and not _is_neutral(table, child):
            kind, words = found.kind, found.words
            if not kind:
                kind, words = kind_of_unknown(table, names, child.tag, _texts(child))
            yield _loss(document, element, child, below, kind, words)


def _lost_attribute(
    document: XmlDocument, table: NameTable, names: set[str], element: Element, path: str, text: str
) -> Iterator[Loss]:
    found = table.class_of(path)
    if found.kind in ("read", "harmless") or table.is_neutral(path, text):
        return
    kind, words = found.kind, found.words
    if not kind:
        kind, words = kind_of_unknown(table, names, path.rpartition("@")[2], [text])
    yield _loss(document, element, element, path, kind, words)


def _loss(document: XmlDocument, parent: Element, element: Element, path: str, kind: str, words: str) -> Loss:
    name = element.get("name") or (parent.get("name") if parent is not document.root else "") or ""
    return Loss(
        kind=next(one for one in KINDS if one == kind),
        tag=re.split("[/@]", path)[-1],
        words=words,
        elements=(name,) if name else (),
        path=path,
        file=str(document.path),
        line=document.lines[element],
    )


def kind_of_unknown(table: NameTable, names: set[str], tag: str, texts: Iterable[str]) -> tuple[Kind, str]:
    """Kind and meaning of a name outside the table.

    Args:
        names: Links, joints and frames of the file.
        texts: Values of the element and below it.
    """
    named = {part for text in texts for part in re.split(r"[\s,;]+|::", text)} & names
    if len(named) > 1:
        return "mechanism", f"unknown name that connects {', '.join(sorted(named))}"
    if TELLING.search(tag):
        return "mechanism", "unknown name"
    if table.has_elsewhere(tag):
        return "mechanism", f"{table.format} has it in another place"
    return "unknown", "unknown name"


def _texts(element: Element) -> Iterator[str]:
    for part in element.iter():
        yield from part.attrib.values()
        yield part.text or ""


def _is_neutral(table: NameTable, element: Element) -> bool:
    """Whether no value of an element, or below it, has an effect; the name alone has none."""
    values = [(name, text) for part in element.iter() for name, text in part.attrib.items()]
    values += [(part.tag, part.text or "") for part in element.iter()]
    return all(table.is_neutral(name, text) for name, text in values)


OWNERS = {
    "jnt": "joint",
    "dof": "joint",
    "tendon": "tendon",
    "actuator": "actuator",
    "eq": "equality",
    "body": "body",
    "key": "key",
}
"""Elements with names, by the first part of the field."""


def lost_values(m: Any, options: Any) -> Iterator[Loss]:
    """Losses of a compiled model, one for each meaning of fields with a value that is not neutral.

    Args:
        m: The `MjModel`.
        options: An `MjOption` with MuJoCo's defaults.
    """
    table = table_of("mjcf")
    found: dict[tuple[Kind, str], tuple[str, dict[str, None]]] = {}
    for kind, words, name in _fields_of_losses((*dir(m), *(f"opt.{name}" for name in dir(options)))):
        rows = _acting_rows(m, table, name, options)
        if len(rows) and table.class_of(f"@{name}").words == words:
            found.setdefault((kind, words), (name, {}))[1].update(dict.fromkeys(_owners(m, name, rows)))
    for (kind, words), (name, elements) in found.items():
        yield Loss(kind=kind, tag=name, words=words, elements=tuple(elements), count=len(elements) or 1)


@cache
def _fields_of_losses(fields: tuple[str, ...]) -> Sequence[tuple[Kind, str, str]]:
    """Kind and meaning of the losses in compiled models, each with a field of them."""
    return [
        (kind, words, name)
        for kind, names in table_of("mjcf").loss.items()
        for ending, words in names.items()
        for name in fnmatch.filter(fields, ending.removeprefix("@"))
    ]


def _acting_rows(m: Any, table: NameTable, name: str, options: Any) -> AnyArray:
    """Numbers of the elements for which a field has a value with effect."""
    option = name.removeprefix("opt.")
    if option != name:
        changed = not np.array_equal(getattr(m.opt, option), getattr(options, option))
        return np.zeros(1, dtype=int) if changed else np.zeros(0, dtype=int)
    values = np.asarray(getattr(m, name))
    if not values.size:
        return np.zeros(0, dtype=int)
    values = values.reshape(len(values), -1)
    stated: Sequence[float] = next(
        (value for key, value in table.default.items() if fnmatch.fnmatchcase(name, key)), []
    )
    neutral = np.zeros(values.shape[1])
    neutral[: len(stated)] = stated[: len(neutral)]
    return np.flatnonzero((values != neutral).any(axis=1))


def _owners(m: Any, name: str, rows: AnyArray) -> Iterator[str]:
    kind = OWNERS.get(name.partition("_")[0], "")
    for row in rows if kind else ():
        number = int(m.dof_jntid[row]) if name.startswith("dof_") else int(row)
        yield getattr(m, kind)(number).name or f"{kind}{number}"
