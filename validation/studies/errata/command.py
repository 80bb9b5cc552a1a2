"""`loopcheck study errata`."""

import click

from loopcheck.validation.frame.options import RESULTS, Command, Execution, execution_options, targets_argument


@click.command(cls=Command, short_help="What does each misprint in a paper cost?")
@targets_argument
@execution_options(RESULTS / "errata")
def command(targets: tuple[str, ...], execution: Execution) -> int:
    """Measure the effort error that each erratum of the papers causes, in every configuration.

    A TARGET is a robot from a paper. Without a TARGET: all robots from papers.

    \b
    Example:
      loopcheck study errata 3prr
    """
    from loopcheck.robots.catalogue import names, want_targets
    from loopcheck.robots.robot import load
    from loopcheck.validation.common.targets import robot_of

    want_targets(targets)
    robots = [robot_of(target) for target in targets or (name for name in names() if load(name).paper)]
    from loopcheck.validation.studies.errata.costs import cases_of
    from loopcheck.validation.studies.errata.study import Errata

    return execution.run(Errata(cases=cases_of(robots)))
