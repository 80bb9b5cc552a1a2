"""Installed releases of the packages that loopcheck requires, compared before any of them is imported."""

import re
from collections.abc import Iterator
from importlib import metadata


def too_old(*extras: str) -> str:
    """One line on installed packages older than loopcheck declares, with the remedy; empty if there are none.

    Packages without metadata are not judged. `packaging` parses every form of a requirement, but its import takes
    a third of the time of `loopcheck --help`; a test compares both.

    Args:
        extras: Extras to judge; by default the packages of every installation.
    """
    found = [
        (name, needed, release)
        for name, needed in _required(extras)
        if (release := _installed(name)) and _numbers(release) < _numbers(needed)
    ]
    if not found:
        return ""
    texts = [f"{name} must be of release {needed} or later, got {release}" for name, needed, release in found]
    remedy = " ".join(f"'{name}>={needed}'" for name, needed, _ in found)
    return f"{'; '.join(texts)}. Run: pip install {remedy}"


def extras() -> tuple[str, ...]:
    """Names of all extras."""
    return tuple(metadata.metadata("loopcheck").get_all("Provides-Extra") or ())


def _required(extras: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Names of required packages with their lowest releases, for this Python or not."""
    try:
        lines = metadata.requires("loopcheck") or []
    except metadata.PackageNotFoundError:  # run from a folder of its files
        lines = []
    for line in lines:
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"](.+?)['\"]", marker)
        lowest = re.match(r"([\w.-]+).*>=\s*([\d.]+)", requirement)
        if lowest and (extra[1] in extras if extra else not extras):
            yield lowest[1], lowest[2]


def _installed(name: str) -> str:
    """Release of a package, empty if it is not installed."""
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return ""
    found = re.search(r"^Version: *(\S+)", distribution.read_text("METADATA") or "", re.MULTILINE)
    return found[1] if found else distribution.version  # which parses all of the file, five times as long


def _numbers(release: str) -> tuple[int, ...]:
    """Numbers of a release without zeros at the end: 4.0 is 4."""
    numbers = [int(part) for part in re.split(r"[^\d.]", release)[0].split(".") if part]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
