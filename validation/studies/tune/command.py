"""`loopcheck tune`."""

from pathlib import Path
from typing import Any

import click

from validation.studies.options import RESULTS, Execution, execution_options


@click.command()
@click.argument("model", metavar="MODEL.xml", type=click.Path(path_type=Path))
@click.option("--accuracy", type=float, required=True, help="Largest error of an effort over its peak, as 0.001.")
@click.option(
    "--motion", type=click.Path(path_type=Path), help="CSV with t and NAME.q, NAME.qd, NAME.qdd; default: made."
)
@click.option("--mode", help="Keyframe to start from; default: the first, or qpos0 where there is none.")
@click.option("--configuration", default="", help="Which way gravity points; default: as in the file.")
@click.option("--actuated", default="", help="Actuated joints, as J1,J2, instead of the file's actuators.")
@click.option("--engine", default="mujoco", show_default=True, help="Engine whose settings are tuned.")
@click.option("--budget", type=float, metavar="µs", help="Most that a simulated second may take on this machine.")
@click.option("--include-start", is_flag=True, help="Judge the start of a run too.")
@click.option("--in-place", is_flag=True, help="Write the changes into MODEL.xml as well; it asks first.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="First seed of the random motions."
)
@execution_options(RESULTS / "tune")
def command(model: Path, execution: Execution, in_place: bool, **options: Any) -> int:
    """Find the cheapest settings with which a simulation reaches an accuracy, and prove them.

    Searched are step, integrator, solver, and solref and solimp of the loops. Written are tuned.xml, which differs from
    MODEL.xml in those attributes only, the difference, tune.csv, tune.html and certificate.json, which
    `loopcheck check tuned.xml --certificate certificate.json` verifies again. Exit status: 0 reached and proven;
    1 nothing reaches it, and why; 3 the simulation cannot be judged.

    \b
    Examples:
      loopcheck tune my_robot.xml --accuracy 0.001
      loopcheck tune my_robot.xml --accuracy 1e-4 --motion walk.csv --budget 50000
      loopcheck tune my_robot.xml --accuracy 0.01 --engine pybullet --out tuned
    """
    from validation.studies.judge.study import case_of_file
    from validation.studies.tune.study import Tune

    of_model = {name: options.pop(name) for name in ("motion", "mode", "configuration", "actuated")}
    if (budget := options.pop("budget")) is not None:
        options["budget"] = 1e-6 * budget
    study = Tune(case=case_of_file(model, **of_model), **options)
    result, conclusion = execution.compute(study)
    if in_place and result.record.get("settings"):
        _write_in_place(study, result.record["settings"])
    return execution.end(result, conclusion)


def _write_in_place(study: Any, settings: dict[str, str]) -> None:
    """Replace the user's own files, if they say so."""
    from validation.execution.workers import ALONE, worker_pool
    from validation.studies.tune.engine import AskedTuning
    from validation.studies.tune.writing import replace_files

    with worker_pool(ALONE) as pool:
        changed = AskedTuning(engine=study.engine, pool=pool).files(study.case.mechanism, settings)
    names = ", ".join(str(path) for path in changed)
    if click.confirm(f"write these changes into {names}?", default=False):
        replace_files(changed)
        click.echo(f"changed {names}")
