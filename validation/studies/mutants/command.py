"""`loopcheck study mutants`."""

import click

from loopcheck.validation.studies.options import (
    RESULTS,
    Command,
    Execution,
    execution_options,
    representative_cases,
    sources_option,
    targets_argument,
)


@click.command(cls=Command, short_help="Are seeded faults detected in every route?")
@targets_argument
@sources_option("Route, as mjx/as_is; may repeat.  [default: all judged routes and the fast as_is routes]")
@execution_options(RESULTS / "mutants")
def command(targets: tuple[str, ...], sources: tuple[str, ...], execution: Execution) -> int:
    """Seed faults in every route of each TARGET and check that the comparison detects them.

    A fault in an input that the route shares with the reference is seeded in both; the audit of the robot's files
    must detect it. In as_is routes, a wrong reading is taken for the effort. Each robot has one case:
    first variant, first mode, vertical. Without a TARGET: the whole catalogue, about fifteen minutes on two cores.

    Exit status: 0 every fault with an effect above the tolerance of its route is detected; 1 a fault is not detected;
    3 no fault had such an effect, or a route did not run.

    \b
    Examples:
      loopcheck study mutants 3prr --out mutants
      loopcheck study mutants 6spu --source mujoco_warp/as_is
    """
    cases = representative_cases(targets)
    from loopcheck.validation.studies.mutants.study import Mutants

    return execution.run(Mutants(cases=cases, routes=sources))
