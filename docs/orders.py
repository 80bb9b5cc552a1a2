"""Tables of the observed orders of convergence, in the reference: `python -m docs.orders`.

One table for the robots of the catalogue, one for models that differ from the first one by a single element, so that a
lower order names it. Prescribed motions with their exact efforts are manufactured solutions.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from docs.marked_parts import with_part
from loopcheck import engines
from loopcheck.engines.declarations import STEP, Ladder, ladders
from loopcheck.robots.catalogue import names
from loopcheck.robots.robot import load, representative_case
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.studies.refinement.analysis import EXPECTED, NOT_RUN, claims
from loopcheck.validation.studies.refinement.levels import PreparedCase, prepared_case, simulate_levels
from loopcheck.validation.studies.refinement.report import targets

PAGE = Path(__file__).parent / "reference/orders.md"
FOUR_BAR = """<mujoco><worldbody>
  <body><joint name="crank" axis="0 1 0"/><inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
    <body name="coupler" pos="0.2 0 0"><joint name="coupler" {coupler}/>
      <inertial pos="0.25 0 0.02" mass="0.8" diaginertia="0.01 0.03 0.03"/><site name="end" pos="0.5 0 0"/>{link}</body>
  </body>
  <body pos="0.6 0 -0.2" euler="0 -60 0"><joint name="rocker" axis="0 1 0" {rocker}/>
    <inertial pos="0.15 0 0" mass="0.9" diaginertia="0.01 0.02 0.02"/>
    <site name="tip" pos="0.3 0 0"/>{cross}</body>
  <site name="ground" pos="0.3 0 0.4"/></worldbody><tendon>{tendon}</tendon>
  <equality>{loop}{coupling}</equality><actuator><motor joint="crank" gear="{gear}"/></actuator></mujoco>"""
PLAIN = {
    **dict.fromkeys(("link", "cross", "rocker", "tendon", "coupling"), ""),
    "coupler": 'axis="0 1 0"',
    "gear": "1",
    "loop": '<connect site1="end" site2="tip"/>',
}
INERTIA = '<inertial pos="0 0 0.1" mass="0.3" diaginertia="0.002 0.002 0.002"/>'
LINK = '<body pos="0.3 0 0.05"><joint name="link" {}/>' + INERTIA + "</body>"
CROSS = '<body pos="0.3 0 0" euler="0 60 0">{}' + INERTIA + '<site name="pin"/></body>'
PINNED = '<weld site1="end" site2="pin"/>'
TERMS: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "spring": {"rocker": 'stiffness="8" springref="20"'},
    "damper": {"rocker": 'damping="0.6"'},
    "armature": {"rocker": 'armature="0.05"'},
    "gear": {"gear": "-3"},
    "slide": {
        "link": LINK.format('type="slide" axis="1 0 0"'),
        "coupling": '<joint joint1="link" joint2="crank" polycoef="0 0.1 0 0 0"/>',
    },
    "coupling": {
        "link": LINK.format('axis="0 1 0"'),
        "coupling": '<joint joint1="link" joint2="crank" polycoef="0 0.5 0.3 0 0"/>',
    },
    "weld": {"cross": CROSS.format('<joint axis="0 1 0"/>'), "loop": PINNED},
    "ball joint": {
        "coupler": 'type="ball"',
        "cross": CROSS.format('<joint axis="0 1 0"/><joint axis="0 0 1"/>'),
        "loop": PINNED,
    },
    "tendon spring": {
        "tendon": '<spatial stiffness="40" springlength="0.2"><site site="ground"/><site site="tip"/></spatial>'
    },
    "tendon coupling": {
        "link": LINK.format('axis="0 1 0"'),
        "tendon": '<fixed name="cord"><joint joint="link" coef="1"/><joint joint="rocker" coef="-0.4"/></fixed>',
        "coupling": '<tendon tendon1="cord"/>',
    },
}
"""Changes of the plain linkage by the term that they add."""


PART = 10
"""Part of a motion that is simulated [-]."""


def methods(prepared: PreparedCase) -> list[Ladder]:
    """Ladders of steps of each method that converges to rigid loops, once per engine and expected order."""
    found = {
        (ladder.route, ladder.order.value): ladder
        for ladder in reversed(ladders(prepared.motion))
        if ladder.refined == STEP and ladder.order and not ladder.order.limit
        if not engines.on_request(ladder.route)
    }
    return list(reversed(found.values()))


def prepared_term(term: str, folder: Path) -> PreparedCase:
    """The model of a term with its motion, upright."""
    path = folder / f"{term.replace(' ', '_')}.xml"
    path.write_text(FOUR_BAR.format(**{**PLAIN, **TERMS[term]}), encoding="utf-8")
    (case,) = cases_of([str(path)], variants=["default"], modes=[], configurations=["vertical"])
    return prepared_case(case)


def shortened(prepared: PreparedCase, part: int) -> PreparedCase:
    """The first part of a motion, at least two steps."""
    motion = prepared.motion.assemble(prepared.motion.t[: max(len(prepared.motion.t) // part, 2) + 1])
    return replace(prepared, motion=motion, reference=prepared.reference[: len(motion.t)])


def observed(prepared: PreparedCase, chosen: Sequence[Ladder]) -> pd.DataFrame:
    """Claims of some ladders without extrapolation."""
    levels = [simulate_levels(prepared, replace(ladder, extrapolated=())) for ladder in chosen]
    return claims(pd.concat(levels, ignore_index=True), targets())


def in_words(claim: Mapping[str, Any]) -> str:
    """Observed order; with the verdict, if it is another one than expected."""
    if claim["verdict"] == NOT_RUN:
        return NOT_RUN
    order = "" if np.isnan(claim["observed"]) else f"{claim['observed']:.2f}"
    return order if claim["verdict"] == EXPECTED else f"{order} ({claim['verdict']})".strip()


def column(prepared: PreparedCase) -> dict[str, str]:
    """Observed order of each method."""
    found = observed(prepared, [one for one in methods(prepared) if one.route not in prepared.case.robot.without])
    rows: list[dict[str, Any]] = found.to_dict("records")  # type: ignore[assignment]
    return {f"{row['route'].split('/')[0]}: {row['ladder']} ({row['expected']:g})": in_words(row) for row in rows}


def page() -> str:
    """The page with present tables."""
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        terms = {term: column(shortened(prepared_term(term, Path(folder)), PART)) for term in TERMS}
    robots = {name: column(shortened(prepared_case(representative_case(load(name))), PART)) for name in names()}
    for name, columns in (("terms", terms), ("robots", robots)):
        made = pd.DataFrame(columns).fillna("-").rename_axis("engine: method (expected order)").T.to_markdown()
        text = with_part(text, name, made)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
