"""Changed settings of an MJCF: options, equalities, joints, inertias and sites. All other text stays as written."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers.expat import ExpatError, ParserCreate

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.formats.registry import want_mjcf

EQUALITIES = frozenset({"connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain", "distance"})
START_TAG = re.compile(rb"<(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")
"""A start tag; attribute values may contain `>`."""
JOINED = re.compile(rb"<!--.*?-->|(=\s*(?:\"[^\"]*\"|'[^']*'))(?=[A-Za-z_])", re.DOTALL)
"""An attribute with the next one right behind it: invalid XML, but accepted by MuJoCo. Or a comment."""
COMMENT = re.compile(rb"(?<=<!--)(.*?)(?=-->)|<!\[CDATA\[.*?\]\]>", re.DOTALL)
"""Content of a comment, or a CDATA section (comment marks inside it are plain text)."""
LATE_DECLARATION = re.compile(rb"\A\s+<\?xml.*?\?>", re.DOTALL)
"""A declaration after blanks: invalid XML, but accepted by MuJoCo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Attributes to set, as they are to be written."""

    option: Mapping[str, str]
    """Attributes of the model's options."""
    equalities: Mapping[int, Mapping[str, str]]
    """Attributes of equalities, by their indices in the model."""
    joints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Attributes of joints, by their names."""
    inertials: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Attributes of the inertia of a joint's body, by the joint's name; all its attributes are replaced."""
    sites: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Attributes of sites, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Element:
    """A start tag in a file."""

    tag: str
    parents: tuple[str, ...]
    attributes: Mapping[str, str]
    begin: int
    """Offset of its first byte [bytes]."""
    parent: int
    """Offset of its parent, −1 without a parent [bytes]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The change of an element."""

    element: _Element
    attributes: Mapping[str, str]
    """Attributes to set."""
    dropped: frozenset[str] = frozenset()
    """Attributes to remove."""
    child: str = ""
    """Name of a new child element that gets the attributes; empty to change the element itself."""


def patched(model: ModelFile, patch: Patch, equalities: int) -> dict[Path, bytes]:
    """The changed files of a model.

    Args:
        model: The MJCF; its included files are changed if they contain changed elements.
        equalities: Number of equalities of the compiled model; all must be written in the files, or no equality is
            changed.

    Raises:
        MechanismError: If the model is a URDF, or a changed equality or joint is not written in the files.
    """
    want_mjcf(model.path)
    elements = list(_elements(model.path.absolute(), model.path.absolute().parent, ()))
    standing = [
        (file, element)
        for file, element in elements
        if element.tag in EQUALITIES and element.parents[-1:] == ("equality",)
    ]
    if patch.equalities and len(standing) != equalities:
        raise MechanismError(
            f"{model.path}: all {equalities} equalities must be separate XML elements so that their attributes can be "
            f"set, got {len(standing)}; attached or replicated equalities cannot be edited"
        )
    changes: dict[Path, list[_Change]] = {}
    for k, attributes in patch.equalities.items():
        file, element = standing[k]
        changes.setdefault(file, []).append(_Change(element=element, attributes=attributes))
    for tag, named in (("joint", patch.joints), ("site", patch.sites)):
        for file, element, attributes in _named(model, elements, tag, named):
            changes.setdefault(file, []).append(_Change(element=element, attributes=attributes))
    for file, joint, attributes in _named(model, elements, "joint", patch.inertials):
        changes.setdefault(file, []).append(_inertia(file, joint, attributes, elements))
    if patch.option:
        for file, element, attributes in _options(elements, patch.option):
            child = "" if element.tag == "option" else "option"
            changes.setdefault(file, []).append(_Change(element=element, attributes=attributes, child=child))
    return {file: _rewritten(_text_of(file), of_file) for file, of_file in changes.items()}


def uses_of_site(model: ModelFile, name: str) -> int:
    """Number of attributes of a model that name a site, apart from its own name."""
    return sum(
        attribute != "name" and value == name
        for _, element in _elements(model.path.absolute(), model.path.absolute().parent, ())
        for attribute, value in element.attributes.items()
    )


def ends_of_equality(model: ModelFile, index: int) -> tuple[str, str]:
    """Names of the sites of an equality, empty without sites, by its index among the equalities of the files."""
    elements = _elements(model.path.absolute(), model.path.absolute().parent, ())
    standing = [e for _, e in elements if e.tag in EQUALITIES and e.parents[-1:] == ("equality",)]
    attributes = standing[index].attributes if index < len(standing) else {}
    return attributes.get("site1", ""), attributes.get("site2", "")


FOLDERS = ("meshdir", "texturedir")
"""Attributes of the compiler with folders of assets."""


def moved(model: ModelFile, folder: Path) -> bytes:
    """The text of an MJCF for another folder: paths of included files, and of folders of assets, lead to the old one.

    Raises:
        MechanismError: If an included file includes a file by a path relative to the model.
    """
    path, home = model.path.absolute(), model.path.absolute().parent
    if folder.resolve() == home.resolve():
        return path.read_bytes()
    elements = [element for file, element in _elements(path, home, ()) if file == path]
    for file, element in _elements(path, home, ()):
        name = element.attributes.get("file", "")
        if file != path and element.tag == "include" and not (file.parent / name).is_file():
            raise MechanismError(
                f"{file}: includes '{name}' relative to the folder of the model. Write the output into {home}"
            )
    changes = [
        _Change(element=element, attributes={"file": _relative(home / element.attributes["file"], folder)})
        for element in elements
        if element.tag == "include" and "file" in element.attributes
    ]
    if _names_assets(elements) or changes:
        compilers = [element for element in elements if element.tag == "compiler" and len(element.parents) == 1]
        stated = {name: value for element in compilers for name, value in element.attributes.items()}
        usual = stated.get("assetdir", "")
        attributes = {name: _relative(home / stated.get(name, usual), folder) for name in FOLDERS}
        element, child = (compilers[-1], "") if compilers else (elements[0], "compiler")
        changes.append(_Change(element=element, attributes=attributes, child=child))
    return _rewritten(_text_of(path), changes) if changes else path.read_bytes()


def _names_assets(elements: Sequence[_Element]) -> bool:
    return any("asset" in element.parents and {"file", "fileup"} & set(element.attributes) for element in elements)


def _relative(path: Path, folder: Path) -> str:
    """A path from a folder; an absolute path stays."""
    return Path(os.path.relpath(path, folder.resolve())).as_posix()


def _named(
    model: ModelFile, elements: Sequence[tuple[Path, _Element]], tag: str, named: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[Path, _Element, Mapping[str, str]]]:
    """Places of joints or sites, and their new attributes."""
    for name, attributes in named.items():
        standing = [
            (file, element)
            for file, element in elements
            if element.tag == tag
            and element.attributes.get("name") == name
            and {"body", "worldbody"} & set(element.parents)
        ]
        if len(standing) != 1:
            raise MechanismError(
                f"{model.path}: {tag} '{name}' must be a single XML element so that its attributes can be set, "
                f"got {len(standing)}"
            )
        yield (*standing[0], attributes)


def _inertia(
    file: Path, joint: _Element, attributes: Mapping[str, str], elements: Sequence[tuple[Path, _Element]]
) -> _Change:
    """The inertia of a joint's body, as an element that is there or is to be put into the body."""
    body = next(element for other, element in elements if other == file and element.begin == joint.parent)
    if body.tag != "body":
        raise MechanismError(f"{file}: the parent element of a joint must be 'body', got '{body.tag}'")
    for other, element in elements:
        if other == file and element.tag == "inertial" and element.parent == body.begin:
            return _Change(element=element, attributes=attributes, dropped=frozenset(element.attributes))
    return _Change(element=body, attributes=attributes, child="inertial")


def _options(
    elements: Sequence[tuple[Path, _Element]], attributes: Mapping[str, str]
) -> Iterator[tuple[Path, _Element, Mapping[str, str]]]:
    """Places of options to be set: the last place with each, else the last element of options, else a new element."""
    options = [(file, element) for file, element in elements if element.tag == "option" and len(element.parents) == 1]
    rest = dict(attributes)
    for file, element in reversed(options):
        if own := {name: rest.pop(name) for name in list(rest) if name in element.attributes}:
            yield file, element, own
    if rest:
        yield (*(options[-1] if options else elements[0]), rest)


def _elements(file: Path, home: Path, including: tuple[Path, ...]) -> Iterator[tuple[Path, _Element]]:
    """All elements of a file and of its included files, in the order in which MuJoCo reads them."""
    if file in including:
        raise MechanismError(f"{file}: the file must not include itself")
    for element in _read(file):
        yield file, element
        if element.tag == "include" and "file" in element.attributes:
            name = element.attributes["file"]
            place = next((folder / name for folder in (home, file.parent) if (folder / name).is_file()), home / name)
            yield from _elements(place.absolute(), home, (*including, file))


def _read(file: Path) -> list[_Element]:
    elements: list[_Element] = []
    parents: list[_Element] = []
    parser = ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        place = parser.CurrentByteIndex
        tags, parent = tuple(element.tag for element in parents), parents[-1].begin if parents else -1
        elements.append(_Element(tag=tag, parents=tags, attributes=attributes, begin=place, parent=parent))
        parents.append(elements[-1])

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: parents.pop()
    try:
        parser.Parse(_as_xml(_text_of(file)), True)
    except (OSError, ExpatError) as error:
        raise MechanismError(f"{file}: must be a readable XML file: {error}") from error
    return elements


def _text_of(file: Path) -> bytes:
    """A file with blanks between all attributes."""
    return JOINED.sub(lambda match: match[0] + b" " * bool(match[1]), file.read_bytes())


def _as_xml(text: bytes) -> bytes:
    """A file of the same length without syntax of MuJoCo alone: two hyphens in comments, late declarations."""
    text = LATE_DECLARATION.sub(lambda match: b" " * len(match[0]), text)
    return COMMENT.sub(lambda match: match[0] if match[1] is None else b" " * len(match[0]), text)


def _rewritten(text: bytes, changes: Sequence[_Change]) -> bytes:
    """A file with the attributes of some elements set, from its end to its beginning."""
    for change in sorted(changes, key=lambda change: -change.element.begin):
        match = START_TAG.match(text, change.element.begin)
        assert match is not None  # expat has read it
        tag = match[0]
        if change.child:
            child = _with_attributes(f"<{change.child}/>".encode(), change.attributes)
            tag += _indent(text, match.end()) + child
        else:
            for name in change.dropped - set(change.attributes):
                tag = re.sub(rb"\s+" + name.encode() + rb"\s*=\s*(\"[^\"]*\"|'[^']*')", b"", tag)
            tag = _with_attributes(tag, change.attributes)
        text = text[: match.start()] + tag + text[match.end() :]
    return text


def _with_attributes(tag: bytes, attributes: Mapping[str, str]) -> bytes:
    for name, value in attributes.items():
        tag = _with_attribute(tag, name, value)
    return tag


def _with_attribute(tag: bytes, name: str, value: str) -> bytes:
    """A start tag with an attribute: another value in its quotes, or a new attribute after the last."""
    pattern = re.compile(rb"(\s" + name.encode() + rb"\s*=\s*)(\"[^\"]*\"|'[^']*')")
    match = pattern.search(tag)
    if match:
        quote = match[2][:1]
        return tag[: match.start(2)] + quote + value.encode() + quote + tag[match.end(2) :]
    end = re.search(rb"\s*/?>\Z", tag)
    assert end is not None
    return tag[: end.start()] + f' {name}="{value}"'.encode() + tag[end.start() :]


def _indent(text: bytes, place: int) -> bytes:
    """The line break and the blanks before the next element."""
    match = re.compile(rb"\s*").match(text, place)
    blanks = match[0] if match else b""
    return blanks[blanks.rfind(b"\n") :] if b"\n" in blanks else b"\n  "
