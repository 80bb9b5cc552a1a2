"""Lines of an engine's changelog that fit a change."""

import importlib.util
import math
import re
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from loopcheck import engines
from loopcheck.validation.versions.comparison import CONTACT, TermChange
from loopcheck.validation.versions.releases import Releases

FILES = {"mujoco": "doc/changelog.rst"}
"""Changelogs in wheels, by engine, relative to the folder of the imported package."""
WORDS: Mapping[str, str] = {
    "M": "inertia inertial mass armature urdf balanceinertia fullinertia composite",
    "bias": "gravity coriolis inertia bias gyroscopic centrifugal",
    "tendon length": "tendon wrapping wrap sidesite spatial length pulley",
    "actuator length": "transmission cranksite slidersite crank slider tendon length gear",
    "passive": "damping stiffness spring springs friction fluid gravcomp passive tendon",
    "actuator force": "actuator actuators dampratio muscle gain bias kp kv ctrl force crank slider timeconst",
    "joint force": "actuator gravcomp transmission crank slider gear moment",
    "contacts": "contact contacts collision collisions collider distance ccd native margin mesh box capsule geom",
    "rows": "constraint equality limit friction frictionloss connect weld",
    "J": "constraint connect weld equality jacobian contact collision collisions ccd native convex site sites",
    "aref": "constraint connect weld velocity solref impedance torquescale reference acceleration quaternion",
    "D": "regularization diagapprox diagonal impedance solimp invweight weld mass",
    "solver": "solver pgs cg newton iterations linesearch island islands noslip warmstart convergence",
    "step": "integrator integrators implicit implicitfast euler rk4 midpoint ball free quaternion gyroscopic",
}
"""Words of a changelog by term."""
TERM = 3
"""Weight of a word of the term, beside words of the model file [-]."""
SHORT = 10
"""Number of words below which entries are equally short."""
OTHER = re.compile(r"\bmjx\b|warp|USD|API\b|ABI|bindings|rnePostConstraint|plugin|[Rr]ender|flex")
"""Entries on other programs and on outputs."""


def changelog(releases: Releases, version: str) -> str:
    """Text of the newest changelog that covers a release; empty without one.

    Args:
        releases: Releases of the engine.
        version: A release that the text must cover.
    """
    name = FILES.get(releases.engine)
    if name is None:
        return ""
    module = engines.engine(releases.engine).requires
    spec = importlib.util.find_spec(module)
    path = Path(spec.origin).parent / name if spec and spec.origin else Path()
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if f"Version {version}" in text:
        return text
    program = f"import pathlib, {module}; print((pathlib.Path({module}.__file__).parent / {name!r}).read_text())"
    command = (*releases.command(releases.versions[-1]), "-c", program)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout


def fitting_line(text: str, between: tuple[str, str], changes: Sequence[TermChange], model: Path) -> str:
    """First sentence of the entry with the most rare words of a term, of its elements and the model file.

    Args:
        text: Content of the changelog.
        between: Two releases; entries of the older one do not count.
        changes: Changed terms, the first in the order of the equations first.
        model: The model file.

    Returns:
        Release and sentence; empty if no entry has a word of a term.
    """
    parts = re.split(r"^Version ([\d.]+).*$", text, flags=re.MULTILINE)
    by_version = {Version(name): [*_entries(part)] for name, part in zip(parts[1::2], parts[2::2], strict=True)}
    low, high = sorted(map(Version, between))
    eligible = [(entry, v) for v, entries in by_version.items() if low < v <= high for entry in entries]
    every = [set(_words(entry)) for entries in by_version.values() for entry in entries]
    counts = Counter(word for words in every for word in words)
    of_file = set(_words(model.read_text(encoding="utf-8", errors="replace")))

    def score(entry: str, words: Collection[str]) -> float:
        of_entry = set(_words(entry))
        of_term = of_entry & set(words)
        shared = [*[word for word in of_term for _ in range(TERM)], *(of_entry & of_file - of_term)]
        rarity = sum(math.log(len(every) / counts[word]) for word in shared)
        return rarity / math.sqrt(SHORT + len(of_entry)) if of_term else 0.0

    for change in changes:
        words = {*WORDS.get(change.term, "").split()}
        if change.elements and change.elements[0].startswith(CONTACT):
            words |= {*WORDS["contacts"].split()}
        best = max(((score(entry, words), entry, version) for entry, version in eligible), default=None)
        if best and best[0] > 0:
            sentence = re.split(r"(?<=[.])\s", best[1], maxsplit=1)[0]
            return f"{best[2]}: {sentence}"
    return ""


def _entries(section: str) -> list[str]:
    """First paragraphs of all items of a section, items in items too, without markup."""
    items = re.split(r"^ *(?:\d+\.|-) ", section, flags=re.MULTILINE)[1:]
    texts = (_plain(item.split("\n\n")[0]) for item in items)
    return [text for text in texts if len(text.split()) > 3 and not OTHER.search(text)]


def _words(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Za-z][A-Za-z0-9]{2,}", text)]


def _plain(text: str) -> str:
    text = re.sub(r":commit:`[^`]*`,?\s*", "", " ".join(text.split()))
    text = re.sub(r":[\w:]+:`([^`<]*?)\s*(?:<[^`]*>)?`", r"\1", text)
    return re.sub(r"`([^`<]*?)\s*<[^`]*>`__?", r"\1", text).replace("`", "").replace("**", "")
