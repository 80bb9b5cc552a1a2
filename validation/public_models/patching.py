"""Patches of models: rules with arguments, applied to the text of the MJCF before a computation."""

import re
from pathlib import Path
from typing import Literal
from xml.parsers.expat import ExpatError, ParserCreate

from pydantic import BaseModel, ConfigDict, model_validator

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf_patch import START_TAG, Patch, patched
from loopcheck.robots.formats.model_file import ModelFile

VACUUM, WITHOUT = "vacuum", "without"
STILL = {"density": "0", "viscosity": "0"}
"""Options of a model without a resisting medium."""
MEDIUM = re.compile(rb"<option\b[^>]*\b(density|viscosity)\s*=")
END_TAG = re.compile(rb"</[^>]*>")


class Rule(BaseModel):
    """A change by rule."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: Literal["vacuum", "without"]
    """`vacuum` removes the medium, `without` an element."""
    element: str = ""
    """Tag of the element, for example `adhesion`."""
    name: str = ""
    """Of the element."""

    @model_validator(mode="after")
    def _has_its_arguments(self) -> "Rule":
        if any(bool(argument) != (self.rule == WITHOUT) for argument in (self.element, self.name)):
            raise ValueError(f"'{WITHOUT}' must have an element and its name, '{VACUUM}' must have neither of them")
        return self

    def __str__(self) -> str:
        return f"without {self.element} '{self.name}'" if self.rule == WITHOUT else "in a vacuum"


def patched_text(path: Path, rules: tuple[Rule, ...]) -> bytes:
    """An MJCF after the application of some rules in order.

    Args:
        path: Path of the MJCF; its included files are not changed.
        rules: Rules to apply.

    Raises:
        MechanismError: If the file is no XML, or contains no text for a rule to change.
    """
    text = path.read_bytes()
    if any(rule.rule == VACUUM for rule in rules):
        text = patched(ModelFile(path=path), Patch(option=STILL, equalities={}), 0).get(path.absolute(), text)
        if not MEDIUM.search(path.read_bytes()):
            raise MechanismError(f"{path}: must have a medium in its options to remove it, found no medium")
    for rule in rules:
        if rule.rule == WITHOUT:
            text = _without(path, text, rule)
    return text


def _without(path: Path, text: bytes, rule: Rule) -> bytes:
    """A text without the only element that a rule names."""
    places: list[list[int]] = []
    waiting: list[list[int] | None] = []
    parser = ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        is_it = tag == rule.element and attributes.get("name") == rule.name
        waiting.append([parser.CurrentByteIndex] if is_it else None)

    def end(_: str) -> None:
        place = waiting.pop()
        if place is not None:
            places.append([*place, parser.CurrentByteIndex])

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(text, True)
    except ExpatError as error:
        raise MechanismError(f"{path}: must be a readable XML file: {error}") from error
    if len(places) != 1:
        raise MechanismError(
            f"{path}: must have exactly 1 {rule.element} '{rule.name}' to remove it, got {len(places)}"
        )
    ((begin, last),) = places
    tag = START_TAG.match(text, begin)
    closing = tag if tag is not None and tag[0].endswith(b"/>") else END_TAG.match(text, last)
    assert closing is not None  # expat has read it
    return text[:begin] + text[closing.end() :]
