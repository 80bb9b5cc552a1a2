"""Draw the linkage of each robot, `robots/<name>/linkage.svg`: `python docs/linkages.py [ROBOT ...]`."""

import sys

import pandas as pd

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.catalogue import names
from loopcheck.robots.robot import DEFAULT, Case, configurations, load, make_case, modes
from loopcheck.validation.report.geometry import point_rows
from loopcheck.validation.report.schematic import linkage_figure


def main() -> None:
    """Draw the robots named on the command line, by default all."""
    for name in sys.argv[1:] or names():
        case = _first_case(name)
        rows = point_rows(case.mechanism, prescribe(case), case.robot.trace)
        svg = linkage_figure(pd.DataFrame(list(rows)))
        (case.robot.folder / "linkage.svg").write_text(f"{svg}\n", encoding="utf-8")


def _first_case(name: str) -> Case:
    """A robot in its first mode."""
    robot = load(name)
    mechanism = robot.mechanism()
    mode, configuration = next(iter(modes(mechanism))), next(iter(configurations(robot, mechanism)))
    return make_case(robot, variant=DEFAULT, mode=mode, configuration=configuration)


if __name__ == "__main__":
    main()
