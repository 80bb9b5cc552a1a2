"""The cost of each erratum in a case: the paper's model with one equation as printed, against the reference."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analytic.dynamics.noc import Noc
from analytic.dynamics.powers import effort_scale
from analytic.motion.prescribe import prescribe
from analytic.papers import AS_CORRECTED, paper_model
from robots.errors import HarnessError
from robots.robot import DEFAULT, Case, configurations, load, make_case, names, regular_modes
from validation.judge.compare import relative_error

CORRECTED = "as corrected"


def cases_of(robots: Sequence[str]) -> list[Case]:
    """All modes and configurations of the robots that come from a paper, of those named or of all.

    Raises:
        HarnessError: If a robot is unknown or its model is bad.
    """
    return [case for name in robots or names() for case in _cases(name)]


def _cases(name: str) -> Iterable[Case]:
    robot = load(name)
    if robot.paper is None:
        return
    for mode in regular_modes(robot):
        for configuration in configurations(robot, robot.mechanism()):
            yield make_case(robot, variant=DEFAULT, mode=mode, configuration=configuration)


def not_run(case: Case, reason: str) -> list[Mapping[str, Any]]:
    """The row of a case that was not computed."""
    blank = dict.fromkeys(("equation", "printed", "corrected"), "")
    return [{**_where(case), **blank, "erratum": CORRECTED, "relative_error": float("nan"), "note": reason}]


def _where(case: Case) -> Mapping[str, str]:
    return {"robot": case.robot.name, "mode": case.mode, "configuration": case.configuration}


def costs(case: Case) -> list[Mapping[str, Any]]:
    """A row for the corrected model and one for each erratum, slips of notation included."""
    model = paper_model(str(case.robot.paper))
    motion = prescribe(case)
    reference = Noc().compute_efforts(case, motion).effort
    scale = effort_scale(case.mechanism, motion).scale
    columns = _where(case)
    error = relative_error(model.efforts(case, motion, AS_CORRECTED), reference, scale)
    blank = {"equation": "", "printed": "", "corrected": "", "note": ""}
    rows: list[Mapping[str, Any]] = [{**columns, **blank, "erratum": CORRECTED, "relative_error": error}]
    for erratum in model.ERRATA:
        cost, note = float("nan"), "a slip of notation, nothing to compute"
        if erratum.computes:
            try:
                printed = model.efforts(case, motion, frozenset({erratum.key}))
                cost, note = relative_error(printed, reference, scale), ""
            except HarnessError as failure:
                note = f"no effort as printed: {failure}"
        text = {"equation": erratum.equation, "printed": erratum.printed, "corrected": erratum.corrected}
        rows.append({**columns, **text, "erratum": erratum.key, "relative_error": cost, "note": note})
    return rows
