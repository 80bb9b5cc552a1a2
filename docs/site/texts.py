"""Words and addresses in pages and files, and positions of marks on their logarithmic axis."""

import math
import re
from collections.abc import Mapping
from urllib.parse import quote

from docs.site.entries import COUNTS, Entry, worst_as_is
from loopcheck.validation.common.verdicts import WORST_FIRST, CaseVerdict
from loopcheck.validation.report.blocks import digits

LOWEST, HIGHEST = -16, 2
"""Ends of the error axis, as powers of ten; errors beyond are drawn at the end."""
DECADES = range(LOWEST, HIGHEST, 4)
"""Powers of ten with a label on the axis."""
LONG = 400
"""Maximum length of a note on the page of a robot [characters]."""
MARKS: Mapping[str, str] = {
    "agree": "●",
    "disagree": "✖",
    "not comparable": "◆",
    "not run": "■",
    "as expected": "◇",
    "informational": "○",
}
"""Mark of each verdict; its shape differs without colour."""
CLASSES: Mapping[str, str] = {
    "loops": "closed by connect or weld",
    "couplings": "coupled by joint or tendon alone",
    "none": "without loops",
}
"""Meaning of the model classes."""


def place(error: float) -> float:
    """Position of an error on the axis, from 0 to 100 [%]; NaN without an error."""
    if math.isnan(error):
        return math.nan
    decade = math.log10(max(error, 1e-300)) if math.isfinite(error) else HIGHEST
    return round(100 * (min(max(decade, LOWEST), HIGHEST) - LOWEST) / (HIGHEST - LOWEST), 2)


def shortened(note: str, length: int = LONG) -> str:
    """A note that is no longer than there is room for."""
    return note if len(note) <= length else f"{note[:length]} …"


def literal(line: str) -> str:
    """A line without markup of Markdown."""
    return re.sub(r"([\\`*_{}\[\]()#+.!|~$@-])", r"\\\1", line)


def source_address(entry: Entry) -> str:
    """Address of the model, at the computed commit; empty for our robots."""
    model = entry.model
    if not model["repository"]:
        return ""
    return f"https://github.com/{quote(model['repository'])}/blob/{quote(model['commit'])}/{quote(model['path'])}"


def answer(entry: Entry) -> str:
    """Results of a robot, in a few sentences."""
    model = entry.model
    if model["copies_of"]:
        return f"The same mechanism as {model['copies_of']}; see its page for the results."
    sentences = [f"{shortly(entry).capitalize()}."]
    if math.isfinite(model["as_is_error"]):
        version, error = entry.versions.get("mujoco", ""), percent(model["as_is_error"])
        sentences = [
            f"With the unmodified file{_but(model['patches'])}, the efforts of MuJoCo {version} have an error of up to "
            f"{error} of the actuator's scale."
        ]
    if math.isfinite(model["tuned_accuracy"]):
        cost = model["tuned_cost"]
        times = f", at {digits(cost)} times the solver iterations" if math.isfinite(cost) else ""
        sentences.append(f"With tuned settings, the error is {percent(model['tuned_accuracy'])}{times}.")
    judged = [finding for finding in entry.of_sources.values() if finding.verdict not in ("informational", "reference")]
    if judged:
        counts = {verdict: sum(finding.verdict == verdict for finding in judged) for verdict in WORST_FIRST}
        sentences.append(
            f"Of {len(judged)} judged sources "
            + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
            + f"; their largest error is {digits(_largest(judged))} of the actuator's scale."
        )
    return " ".join(sentences)


def shortly(entry: Entry) -> str:
    """The error of the unmodified simulation in MuJoCo, or the reason for its absence."""
    version = ".".join(entry.versions.get("mujoco", "").split(".")[:2])
    error = entry.model["as_is_error"]
    if math.isfinite(error):
        return f"{percent(error)} as is, mujoco {version}"
    finding = worst_as_is(entry, "mujoco")
    if finding is not None and finding.note.startswith("not followed"):
        return f"not followed as is, mujoco {version}"
    return str(entry.model["verdict"])


def percent(error: float) -> str:
    """An error [-] with two significant digits."""
    return f"{float(f'{100 * error:.2g}'):g} %"


def what_it_is(entry: Entry) -> str:
    """The mechanism in a line."""
    model = entry.model
    counts = [f"{model[name]:.0f} {name}" for name in COUNTS if math.isfinite(model[name])]
    in_words = entry.about.get("in_words") or ", ".join(counts)
    return "; ".join(text for text in (in_words, CLASSES.get(model["class"], "")) if text)


def worst_first(finding: CaseVerdict) -> tuple[int, float]:
    """Sort key of verdicts: the worst verdict first, and within it the largest error."""
    return WORST_FIRST.index(finding.verdict), -finding.error if math.isfinite(finding.error) else math.inf


def _but(patches: str) -> str:
    """Difference between the computed model and its file, if any."""
    return f", but {patches}" if patches else ""


def _largest(findings: list[CaseVerdict]) -> float:
    return max((finding.error for finding in findings if math.isfinite(finding.error)), default=math.nan)
