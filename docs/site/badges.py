"""A badge for each robot: `loopcheck: 0.3 % as is, mujoco 4.0`."""

import math

from anybadge import Badge

from docs.site.entries import Entry, worst_as_is

ENGINE = "mujoco"
"""The badge shows the error of this engine with the unmodified file."""
LABEL = "loopcheck"
CLOSE = 0.01
"""Largest error with a blue badge [-]."""
BLUE, ORANGE, GREY = "#00629b", "#a84300", "#5c6370"
"""Backgrounds that colour-blind readers can distinguish, with enough contrast to white text."""


def badge_text(entry: Entry) -> str:
    """Text of the badge after its label: the error of the unmodified simulation, or the reason for its absence."""
    version = ".".join(entry.versions.get(ENGINE, "").split(".")[:2])
    error = entry.model["as_is_error"]
    if math.isfinite(error):
        return f"{percent(error)} as is, {ENGINE} {version}"
    finding = worst_as_is(entry, ENGINE)
    if finding is not None and finding.note.startswith("not followed"):
        return f"not followed as is, {ENGINE} {version}"
    return str(entry.model["verdict"])


def badge(entry: Entry) -> str:
    """The badge as SVG."""
    error = entry.model["as_is_error"]
    colour = GREY if not math.isfinite(error) else BLUE if error <= CLOSE else ORANGE
    return str(Badge(LABEL, badge_text(entry), default_color=colour).badge_svg_text)


def percent(error: float) -> str:
    """An error [-] with two significant digits."""
    return f"{float(f'{100 * error:.2g}'):g} %"
