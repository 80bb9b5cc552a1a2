"""`loopcheck tune`."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from loopcheck.validation.frame.options import (
    JUDGEMENT,
    RESULTS,
    Command,
    Execution,
    FiniteRange,
    accuracy_option,
    actuated_option,
    configuration_option,
    execution_options,
    leave_out_option,
    mode_option,
    motion_option,
    names_of,
    option,
    seed_option,
    target_argument,
)


@click.command(cls=Command, short_help="Which settings make my simulation right?")
@target_argument
@mode_option
@configuration_option
@actuated_option
@leave_out_option
@motion_option
@accuracy_option("Largest effort error, relative to the peak effort, as 0.001 or 0.1%.")
@option(
    "--source",
    default="mujoco/as_is",
    show_default=True,
    metavar="ENGINE/as_is",
    group=JUDGEMENT,
    help="Unmodified simulation to tune.",
)
@option(
    "--max-cost",
    metavar="µs",
    type=FiniteRange(min=0, min_open=True),
    group=JUDGEMENT,
    help="Largest computing time in µs per simulated millisecond, on this machine.",
)
@option(
    "--keep-setting",
    "kept",
    metavar="NAME,...",
    default="",
    group=JUDGEMENT,
    help="Settings that must not change, for example timestep,integrator.",
)
@option(
    "--from",
    "start",
    type=click.Choice(["auto", "0"]),
    default="auto",
    show_default=True,
    group=JUDGEMENT,
    help="Start of the judged window: the end of the initial transient (auto), or 0 seconds.",
)
@option(
    "--cpu-limit",
    metavar="S",
    type=FiniteRange(min=0, min_open=True),
    group=JUDGEMENT,
    help="Limit of the CPU time of all runs in seconds. At the limit the best settings so far are written without a "
    "proof.  [default: 12 per body, at least 120]",
)
@option(
    "--verify",
    metavar="CERTIFICATE",
    type=click.Path(path_type=Path),
    help="Verify a certificate instead. The output folder is then results/certificate.",
)
@option("--explain", is_flag=True, help="Show the parts of the error of the unmodified simulation.")
@option("--in-place", is_flag=True, help="Write the changes into the model file as well, after a confirmation.")
@seed_option
@execution_options(RESULTS / "tune")
def command(
    target: str,
    execution: Execution,
    accuracy: float | None,
    source: str,
    verify: Path | None,
    explain: bool,
    in_place: bool,
    max_cost: float | None,
    kept: str,
    cpu_limit: float | None,
    start: str,
    seed: int,
    **of_target: Any,
) -> int:
    """Find the cheapest settings with which a simulation reaches an accuracy, and prove them.

    Searches the time step, integrator, solver, noslip_iterations, and solref and solimp of the loops. Writes tuned.xml
    (only these attributes differ), the difference, tune.csv, tune.html and certificate.json, which --verify checks
    again. --explain splits the error of the unmodified simulation into parts, each with the setting that removes it;
    without --accuracy, no settings are searched.

    The certificate contains the lowest and highest bandwidth of the controller at which the settings hold. If the CPU
    time ends before the proof, unproven/tuned.xml has the best settings so far, without a certificate.

    Exit status: 0 reached and proven; 1 not reachable, with the reason; 3 unproven, or the simulation cannot be judged.

    \b
    Examples:
      loopcheck tune my_robot.xml --accuracy 0.1%
      loopcheck tune my_robot.xml --accuracy 1e-4 --motion walk.csv --max-cost 50
      loopcheck tune my_robot.xml --accuracy 1% --keep-setting timestep
      loopcheck tune 3prr --accuracy 1% --source pybullet/as_is --out tuned
      loopcheck tune my_robot.xml --explain
      loopcheck tune tuned.xml --verify certificate.json
    """
    from loopcheck import engines
    from loopcheck.robots.catalogue import want_files, want_targets
    from loopcheck.robots.formats.losses import want_losses
    from loopcheck.robots.formats.registry import want_mjcf
    from loopcheck.validation.common.targets import case_of

    want_targets([target])
    _want_one_answer(accuracy, verify, explain=explain)
    if verify is not None:
        want_files([verify])
        at = replace(execution, out=RESULTS / "certificate") if execution.out == RESULTS / "tune" else execution
        return at.run(_verification(target, verify))
    from loopcheck.validation.tune.engine import engine_of_source, tuning_of, want_known_settings

    engine, case = engine_of_source(source), case_of(target, **of_target)
    want_mjcf(case.mechanism.model.path)
    want_losses(of_target["leave_out"], case.mechanism.losses)
    settings = names_of(kept)
    if settings and engines.installed(engine):
        want_known_settings(settings, engine, tuning_of(engine).given(case.mechanism))
    execution.prepare()
    from loopcheck.validation.tune.study import Tune

    study = Tune(
        case=case,
        accuracy=accuracy or 0.0,
        explains=explain,
        engine=engine,
        budget=math.inf if max_cost is None else 1e-3 * max_cost,
        kept=settings,
        cpu_limit=cpu_limit,
        include_start=start == "0",
        seed=seed,
    )
    result, conclusion = execution.compute(study)
    if in_place and result.record.get("settings"):
        _write_in_place(study, result.record["settings"])
    return execution.end(study, result, conclusion)


def _want_one_answer(accuracy: float | None, verify: Path | None, *, explain: bool) -> None:
    options = {"--accuracy": accuracy is not None, "--verify": verify is not None, "--explain": explain}
    chosen = [name for name, is_given in options.items() if is_given]
    if not chosen or (verify is not None and len(chosen) > 1):
        got = " and ".join(chosen) or "none"
        raise click.UsageError(f"--accuracy, --explain or both, or only --verify must be given, got {got}.")


def _verification(target: str, certificate: Path) -> Any:
    from loopcheck.validation.common.targets import robot_of
    from loopcheck.validation.tune.certificate import read_certificate

    claimed, robot = read_certificate(certificate), robot_of(target)
    from loopcheck.validation.tune.verify import VerifiedCertificate

    return VerifiedCertificate(
        model=robot.folder / robot.mjcf,
        certificate=claimed,
        folder=certificate.absolute().parent,
    )


def _write_in_place(study: Any, settings: dict[str, str]) -> None:
    """Replace the user's own files, after a confirmation."""
    from loopcheck.validation.execution.workers import ALONE, worker_pool
    from loopcheck.validation.tune.engine import AskedTuning
    from loopcheck.validation.tune.writing import replace_files

    with worker_pool(ALONE) as pool:
        changed = AskedTuning(engine=study.engine, pool=pool).files(study.case.mechanism, settings)
    names = ", ".join(str(path) for path in changed)
    if click.confirm(f"Write these changes into {names}?", default=False):
        replace_files(changed)
        click.echo(f"changed {names}")
