"""An XML file of a model, with the line of each element for messages."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.parsers.expat import ExpatError, ParserCreate

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError

DIALECTS = {"drake.mit.edu": "drake"}
"""Namespaces of dialects without scheme and slashes, and the prefix by which this project names their elements."""
HEAD = 4096
"""Length of the beginning of a file in which its root element is looked for [byte]."""


@dataclass(frozen=True, slots=True)
class XmlDocument:
    """An XML file with the line of each element."""

    path: Path
    root: ET.Element
    lines: Mapping[ET.Element, int]

    def where(self, element: ET.Element) -> str:
        """File, line, kind and name of an element."""
        return f"{self.path}:{self.lines[element]}: {element.tag} '{element.get('name', '')}'"

    def text_of(self, element: ET.Element, child: str, attribute: str) -> str:
        """An attribute of a child element.

        Raises:
            MechanismError: If it is missing.
        """
        found = element.find(child)
        if found is None or not found.get(attribute):
            raise MechanismError(f"{self.where(element)}: must have <{child} {attribute}=...>")
        return str(found.get(attribute))

    def numbers(self, element: ET.Element, name: str, text: str | None, default: Array) -> Array:
        """Finite numbers in a text, as many as by default.

        Args:
            element: The element with the text, for the message.
            name: Name of the numbers in the message.
            default: The numbers of a missing text [any unit], shape (n,).

        Raises:
            MechanismError: If the text has something else.
        """
        try:
            values = np.array([float(part) for part in text.split()]) if text and text.strip() else default
        except ValueError:
            values = np.zeros(0)
        if values.shape != default.shape or not np.isfinite(values).all():
            count = "a finite number" if len(default) == 1 else f"{len(default)} finite numbers"
            raise MechanismError(f"{self.where(element)}: {name} must have {count}, got '{text}'")
        return values


def has_root(path: Path, root: str) -> bool:
    """Whether an XML file begins with a root element of some name."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f"<{root}".encode() in file.read(HEAD)


def without_dashes(text: bytes) -> bytes:
    """The text of an XML file with blanks for the dashes inside comments, which other readers accept in pairs."""
    return re.sub(rb"(?<=<!--).*?(?=-->)", lambda comment: comment[0].replace(b"-", b" "), text, flags=re.DOTALL)


def read_xml(path: Path, root: str, format: str) -> XmlDocument:
    """Read an XML file.

    Args:
        root: Name of its root element.
        format: Name of the format, for messages.

    Raises:
        MechanismError: If it is not XML, has another root element, or is not expanded from xacro.
    """
    builder, parser = ET.TreeBuilder(), ParserCreate()
    lines: dict[ET.Element, int] = {}
    prefixes: dict[str, str] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        prefixes.update(_dialects(attributes))
        names = {_in_dialect(name, prefixes): text for name, text in attributes.items()}
        lines[builder.start(_in_dialect(tag, prefixes), names)] = parser.CurrentLineNumber

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: builder.end(_in_dialect(tag, prefixes))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(without_dashes(path.read_bytes()), True)
    except (OSError, ExpatError) as error:
        raise MechanismError(f"{path}: must be a readable XML file: {error}") from error
    element = builder.close()
    if element.tag != root:
        raise MechanismError(f"{path}: the root element of {format} must be <{root}>, got <{element.tag}>")
    for part in element.iter():
        macros = [f"<{part.tag}>"] if part.tag.startswith("xacro:") else [x for x in part.attrib.values() if "${" in x]
        if macros:
            raise MechanismError(
                f"{path}:{lines[part]}: xacro must be expanded, got {macros[0]}. Run: xacro {path.name} > "
                f"expanded{path.suffix}"
            )
    return XmlDocument(path, element, lines)


def _dialects(attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Prefixes of an element that stand for a dialect, each with the prefix by which this project names it."""
    for name, address in attributes.items():
        usual = DIALECTS.get(address.partition("://")[2].strip("/"))
        if name.startswith("xmlns:") and usual is not None:
            yield name.removeprefix("xmlns:"), usual


def _in_dialect(name: str, prefixes: Mapping[str, str]) -> str:
    """A name with the usual prefix of its dialect."""
    prefix, mark, local = name.partition(":")
    return f"{prefixes[prefix]}:{local}" if mark and prefix in prefixes else name
