"""`loopcheck study refinement`."""

import click

from loopcheck.validation.frame.options import (
    RESULTS,
    Command,
    Execution,
    configurations_option,
    execution_options,
    option,
    sources_option,
    targets_argument,
)


@click.command(cls=Command, short_help="Expected and observed orders of convergence.")
@targets_argument
@option(
    "--mode",
    "modes",
    metavar="M",
    multiple=True,
    group="Target",
    help="Working mode: the name of a keyframe; may repeat.  [default: the first regular mode]",
)
@configurations_option
@sources_option("Route, as mujoco/forward; may repeat.  [default: all forward routes]")
@execution_options(RESULTS / "refinement")
def command(
    targets: tuple[str, ...],
    modes: tuple[str, ...],
    configurations: tuple[str, ...],
    sources: tuple[str, ...],
    execution: Execution,
) -> int:
    """Compare the order of convergence of each engine and integrator with the expected order.

    Refines the step and the solver settings of every forward route of each TARGET: expected and observed order, range
    in which the order holds, error at the default step, and its numerical uncertainty (grid-convergence index).
    Status 1 if an order is lower than expected, or if efforts converge to other values without a stated reason.

    Without a TARGET: the whole catalogue.

    \b
    Examples:
      loopcheck study refinement 3prr
      loopcheck study refinement 6spu --configuration vertical --out refinement
    """
    from loopcheck.robots.catalogue import names, want_targets
    from loopcheck.robots.robot import DEFAULT, regular_modes
    from loopcheck.validation.common.targets import cases_of, robot_of

    want_targets(targets)
    cases = [
        case
        for target in targets or names()
        for case in cases_of(
            [target],
            variants=[DEFAULT],
            modes=modes or regular_modes(robot_of(target))[:1],
            configurations=configurations,
        )
    ]
    from loopcheck.validation.studies.refinement.study import Refinement

    return execution.run(Refinement(cases=cases, sources=sources))
