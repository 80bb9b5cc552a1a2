"""`loopcheck check`."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from validation.studies.options import RESULTS
from validation.studies.run.options import Running, run_options

if TYPE_CHECKING:
    from validation.studies.study import Study


@click.command()
@click.argument("model", metavar="MODEL.xml", type=click.Path(path_type=Path))
@click.option(
    "--motion", type=click.Path(path_type=Path), help="CSV with t and NAME.q, NAME.qd, NAME.qdd; default: made."
)
@click.option("--mode", help="Keyframe to start from; default: the first, or qpos0 where there is none.")
@click.option("--actuated", default="", help="Actuated joints, as J1,J2, instead of the file's actuators.")
@click.option(
    "--accuracy",
    type=float,
    help="Judge simulations as they are too, ENGINE/as_is: largest error of an effort over its scale, as 0.05.",
)
@click.option(
    "--certificate",
    type=click.Path(path_type=Path),
    help="Verify every claim of a certificate of `loopcheck tune` again, instead of all else.",
)
@run_options
def command(model: Path, running: Running, accuracy: float | None, certificate: Path | None, **of_file: Any) -> int:
    """Check any MJCF: move it, compute every source, compare them, and write tables and report.

    Without a motion it makes its own: smooth, from rest, inside the joint limits, away from singularities. Of a model
    without loops it says what it loses against the same robot with loops, if that lies in the same folder. With a
    certificate, exit status 1 says that file, engine or a figure no longer fits it.

    \b
    Examples:
      loopcheck check my_robot.xml
      loopcheck check my_robot.xml --mode closed --actuated hip,knee --motion walk.csv --out results
      loopcheck check tuned.xml --certificate certificate.json
      loopcheck check my_robot.xml --accuracy 0.05 --source mujoco/as_is --junit loopcheck.xml
    """
    from validation.studies.check.cases import cases_of_file
    from validation.studies.check.closed_twins import possible_twins

    if accuracy is not None:
        running = replace(running, limits={**_limits(accuracy), **running.limits})
    if certificate is not None:
        execution = running.execution
        if execution.out == RESULTS:  # which may hold the same file's check
            execution = replace(execution, out=RESULTS / "certificate")
        return execution.run(_verified(model, certificate))
    cases = cases_of_file(model, **of_file)
    twins = possible_twins(cases[0].mechanism)
    return running.run(cases, {cases[0].robot.name: twins} if twins else {})


def _limits(accuracy: float) -> Mapping[str, float]:
    """Limits of the error of every simulation as it is, by name of the source [-].

    Raises:
        ToleranceError: If the accuracy is no positive number.
    """
    from robots.errors import ToleranceError
    from validation.judge.sources import is_as_is
    from validation.judge.tolerances import registered

    if not 0 < accuracy < math.inf:
        raise ToleranceError(f"accuracy: want a positive number, as 0.05, got {accuracy:g}")
    return {name: accuracy for name in registered() if is_as_is(name)}


def _verified(model: Path, certificate: Path) -> "Study":
    """The study that holds a certificate against its files."""
    from validation.studies.certificate.study import VerifiedCertificate
    from validation.studies.tune.certificate import read_certificate

    return VerifiedCertificate(
        model=model.absolute(), certificate=read_certificate(certificate), folder=certificate.absolute().parent
    )
