"""Cost of each erratum in a case: the paper's model with one printed equation, against the reference."""

from collections.abc import Mapping, Sequence
from typing import Any

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import AS_CORRECTED, paper_model
from loopcheck.robots.errors import HarnessError, NotRepresentableError
from loopcheck.robots.robot import DEFAULT, Case, Robot, configurations, make_case, regular_modes
from loopcheck.validation.check.efforts.compare import relative_error

CORRECTED = "as corrected"


def cases_of(robots: Sequence[Robot]) -> list[Case]:
    """All regular modes and configurations of robots.

    Raises:
        NotRepresentableError: If a robot does not come from a paper.
    """
    for robot in robots:
        if robot.paper is None:
            raise NotRepresentableError(
                f"{robot.name}: robot.toml must have the key 'paper' for errata, got no such key"
            )
    return [
        make_case(robot, variant=DEFAULT, mode=mode, configuration=configuration)
        for robot in robots
        for mode in regular_modes(robot)
        for configuration in configurations(robot, robot.mechanism())
    ]


def not_run(case: Case, reason: str) -> list[Mapping[str, Any]]:
    """The row of a case that was not computed."""
    blank = dict.fromkeys(("equation", "printed", "corrected"), "")
    return [{**_where(case), **blank, "erratum": CORRECTED, "relative_error": float("nan"), "note": reason}]


def _where(case: Case) -> Mapping[str, str]:
    return {"robot": case.robot.name, "mode": case.mode, "configuration": case.configuration}


def costs(case: Case) -> list[Mapping[str, Any]]:
    """A row for the corrected model and a row for each erratum, slips of notation included."""
    model = paper_model(str(case.robot.paper))
    motion = prescribe(case)
    reference = Noc().compute_efforts(case, motion).effort
    scale = effort_scale(case.mechanism, motion).scale
    columns = _where(case)
    error = relative_error(model.efforts(case, motion, AS_CORRECTED), reference, scale)
    blank = {"equation": "", "printed": "", "corrected": "", "note": ""}
    rows: list[Mapping[str, Any]] = [{**columns, **blank, "erratum": CORRECTED, "relative_error": error}]
    for erratum in model.ERRATA:
        cost, note = float("nan"), "error of notation, without an equation to compute"
        if erratum.computes:
            try:
                printed = model.efforts(case, motion, frozenset({erratum.key}))
                cost, note = relative_error(printed, reference, scale), ""
            except HarnessError as failure:
                note = f"the equation as printed gives no effort: {failure}"
        text = {"equation": erratum.equation, "printed": erratum.printed, "corrected": erratum.corrected}
        rows.append({**columns, **text, "erratum": erratum.key, "relative_error": cost, "note": note})
    return rows
