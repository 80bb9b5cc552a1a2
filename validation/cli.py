"""The command line. Everything heavy is imported inside a command, so that `--help` answers at once."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from robots.errors import HarnessError, NoResultError
from validation.statuses import BAD_INPUT, INCOMPLETE, OWN_ERROR, internal_error

if TYPE_CHECKING:
    from robots.robot import Case
    from validation.workers import Workers


def main() -> None:
    """Entry point: bad input is one line on stderr and exit status 2, an error of our own one line and status 70."""
    try:
        status = cli(standalone_mode=False)
    except NoResultError as error:
        click.echo(f"loopcheck: not run: {' '.join(str(error).split())}", err=True)
        status = INCOMPLETE
    except (HarnessError, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"loopcheck: {' '.join(message.split())}", err=True)
        status = BAD_INPUT
    except click.exceptions.Abort:
        click.echo("loopcheck: interrupted", err=True)
        status = 130
    except Exception as error:
        click.echo(f"loopcheck: {internal_error(error)}", err=True)
        status = OWN_ERROR
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}, no_args_is_help=True)
@click.version_option(package_name="loopcheck")
def cli() -> None:
    """Say whether a physics engine gets the actuator efforts of a closed-loop robot right.

    \b
    Examples:
      loopcheck list
      loopcheck run 3prr
      loopcheck run 3prr --configuration vertical --mode plus --source mujoco/forward --out results
      loopcheck check my_robot.xml
      loopcheck new my_robot my_robot.xml
      loopcheck report results

    Exit status of all commands: 0 every judged comparison agrees; 1 at least one disagrees; 3 none disagrees but
    something was not comparable or did not run; 2 bad input; 70 an error of our own, which is before 1 and 3.
    """


_sources = click.option(
    "--source",
    "sources",
    multiple=True,
    help="Source, as mujoco/forward; default: all. The reference always runs.",
)
_dt = click.option(
    "--dt", type=float, help="Step of the report grid in s; default: 0.01 for up to 2 s, 0.02 up to 4 s, 0.05 above."
)
_out = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder of the results.",
)
_jobs = click.option("--jobs", type=click.IntRange(min=1), help="Worker processes; default: one for each core.")
_time_limit = click.option(
    "--time-limit",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop a source that takes longer on a case, it reads not run; default: 1800.",
)
_resume = click.option(
    "--resume", is_flag=True, help="Go on with what was interrupted in the folder: compute only what is missing."
)
_junit = click.option(
    "--junit", type=click.Path(path_type=Path), help="JUnit file to write: a test case for each case and source."
)
_tolerances = click.option(
    "--tolerance",
    "limits",
    metavar="SOURCE=VALUE",
    multiple=True,
    callback=lambda _, __, values: dict(map(_limit, values)),
    help="Your own limit of a source's relative error, instead of the registered one; may repeat.",
)
_folders = click.option(
    "--robots",
    "folders",
    metavar="DIR",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Folder of your own robots, DIR/NAME/robot.toml; may repeat.",
)


def _limit(text: str) -> tuple[str, float]:
    source, _, value = text.rpartition("=")
    try:
        return source, float(value)
    except ValueError:
        raise click.BadParameter(f"want SOURCE=VALUE, as mujoco/forward=1e-3, got '{text}'") from None


class HowToRun(NamedTuple):
    """Options that all commands share which run cases."""

    sources: tuple[str, ...]
    dt: float | None
    junit: Path | None
    limits: Mapping[str, float]


def _how_to_run(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that say how to run cases, as its argument `how`."""

    @wraps(command)
    def with_options(**given: Any) -> int:
        how = HowToRun(**{name: given.pop(name) for name in HowToRun._fields})
        return command(how=how, **given)

    for option in (_dt, _tolerances, _junit, _sources):
        with_options = option(with_options)
    return _resume(_in_folder(with_options))


def _in_folder(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command its arguments `out`, a folder held while it runs, and `workers`, with the options for both.

    Workers have a journal where the command can be told to resume.
    """

    @wraps(command)
    def with_options(
        *, out: Path, jobs: int | None, time_limit: float | None, resume: bool | None = None, **given: Any
    ) -> int:
        from validation.journal import claimed, held
        from validation.workers import TIME_LIMIT, Workers

        with held(out) if resume is None else claimed(out, resume=resume) as journal:
            return command(out=out, workers=Workers(jobs, time_limit or TIME_LIMIT, journal), **given)

    for option in (_time_limit, _jobs, _out):
        with_options = option(with_options)
    return with_options


@cli.command("list")
@_folders
def list_(folders: tuple[Path, ...]) -> None:
    """List robots, modes, variants and sources, and which engines are installed.

    \b
    Examples:
      loopcheck list
      loopcheck list --robots my_robots
    """
    from validation.console import print_catalogue

    print_catalogue(folders)


@cli.command()
@click.argument("robots", metavar="[ROBOT]...", nargs=-1)
@click.option("--configuration", "configurations", multiple=True, help="horizontal or vertical; default: both.")
@click.option("--mode", "modes", multiple=True, help="Working mode, a keyframe of the MJCF; default: all.")
@click.option("--variant", "variants", multiple=True, help="Variant of the parameters; default: all.")
@_folders
@_how_to_run
def run(how: HowToRun, out: Path, workers: "Workers", **selection: Any) -> int:
    """Compute every source of the ROBOTs, compare them, and write tables and report.

    Without a ROBOT: all of the catalogue, or of your own folders where --robots names some.

    \b
    Examples:
      loopcheck run 3prr
      loopcheck run 3prr --configuration vertical --source mujoco/kkt --source pybullet/kkt
      loopcheck run --robots my_robots --junit loopcheck.xml --tolerance mujoco/forward=1e-4
    """
    from validation.run import Selection, plan

    return _run_and_report(plan(Selection(**selection)), how, out, workers)


@cli.command()
@click.argument("model", metavar="MODEL.xml", type=click.Path(path_type=Path))
@click.option(
    "--motion", type=click.Path(path_type=Path), help="CSV with t and NAME.q, NAME.qd, NAME.qdd; default: made."
)
@click.option("--mode", help="Keyframe to start from; default: the first, or qpos0 where there is none.")
@click.option("--actuated", default="", help="Actuated joints, as J1,J2, instead of the file's actuators.")
@_how_to_run
def check(model: Path, how: HowToRun, out: Path, workers: "Workers", **of_file: Any) -> int:
    """Check any MJCF: move it, compute every source, compare them, and write tables and report.

    Without a motion it makes its own: smooth, from rest, inside the joint limits, away from singularities.

    \b
    Examples:
      loopcheck check my_robot.xml
      loopcheck check my_robot.xml --mode closed --actuated hip,knee --motion walk.csv --out results
      loopcheck check my_robot.xml --junit loopcheck.xml --tolerance mujoco/default=0.05
    """
    from validation.check import cases_of_file

    return _run_and_report(cases_of_file(model, **of_file), how, out, workers)


@cli.command()
@click.argument("name", metavar="NAME")
@click.argument("model", metavar="MODEL.xml", type=click.Path(path_type=Path))
@click.option("--actuated", default="", help="Actuated joints, as J1,J2, instead of the file's actuators.")
@click.option("--robots", type=click.Path(path_type=Path), help="Folder of the robots; default: the catalogue.")
def new(name: str, model: Path, actuated: str, robots: Path | None) -> int:
    """Add MODEL.xml to the robots as NAME: from then on it is part of list, run and the test suite.

    The model is copied with the parts it includes; source and licence are left to fill in.

    \b
    Examples:
      loopcheck new gripper my_gripper.xml
      loopcheck new leg leg.xml --actuated hip,knee --robots my_robots
    """
    from robots import robot
    from validation.new_robot import add_robot

    joints = tuple(joint.strip() for joint in actuated.split(",") if joint.strip())
    folder = add_robot(name, model, catalogue=robots or robot.CATALOGUE, actuated=joints)
    click.echo(f"{folder}: added; fill in title and source in robot.toml, and source and licence in README.md")
    return 0


@cli.command()
@click.argument("robots", metavar="[ROBOT]...", nargs=-1)
@_resume
@_in_folder
def errata(robots: tuple[str, ...], out: Path, workers: "Workers") -> int:
    """Measure what each erratum of the papers costs, and write errata.csv and errata.html.

    \b
    Example:
      loopcheck errata 3prr
    """
    from validation.console import print_errata
    from validation.errata import errata_table, exit_status, write_errata

    costs = errata_table(robots, workers=workers)
    write_errata(costs, out)
    print_errata(costs, out)
    return exit_status(costs)


@cli.command()
@click.argument("robots", metavar="[ROBOT]...", nargs=-1)
@_resume
@_in_folder
def mutants(robots: tuple[str, ...], out: Path, workers: "Workers") -> int:
    """Seed faults in every route of the ROBOTs, see whether the comparison notices, and write mutants.csv and .html.

    Faults of the model that the reference shares are seeded in both; those that a route shares as well are for the
    robot's files, read past our own reading, to catch. Each robot runs in one case: first variant, first mode, upright.
    Without a ROBOT: all of them, about fifteen minutes on two cores. Exit status: 0 every fault with an effect above
    the tolerance of its route is caught; 1 one is not; 3 none was there, or a route did not run.

    \b
    Example:
      loopcheck mutants 3prr --out mutants
    """
    from validation.console import print_mutants
    from validation.mutants.report import write_mutants
    from validation.mutants.study import exit_status, mutants_table

    found = mutants_table(robots, workers=workers)
    write_mutants(found, out)
    print_mutants(found, out)
    return exit_status(found)


@cli.command()
@click.argument("robots", metavar="[ROBOT]...", nargs=-1)
@click.option("--configuration", "configurations", multiple=True, help="horizontal or vertical; default: both.")
@click.option("--mode", "modes", multiple=True, help="Working mode; default: the first that meets no singularity.")
@click.option("--source", "sources", multiple=True, help="Route, as mujoco/forward; default: all forward routes.")
@_in_folder
def ladder(out: Path, workers: "Workers", **selection: Any) -> int:
    """Measure what steps and solver settings cost and give, and say what to set for 1 %, 0.1 % and 1e-6.

    Every forward route of the ROBOTs, by default of all, over ladders of steps and of the settings of its solver:
    observed orders, floors, and work-precision diagrams. Finished ladders in the folder are not climbed again.

    \b
    Examples:
      loopcheck ladder 3prr
      loopcheck ladder 6spu --configuration vertical --source mujoco/forward --out ladders
    """
    from validation.console import print_advice
    from validation.ladder.report import write_report
    from validation.ladder.study import Study, exit_status, run_study

    found = run_study(Study(**selection), out, workers=workers, command=["loopcheck", *sys.argv[1:]])
    write_report(found, out)
    print_advice(found.rungs, out)
    return exit_status(found)


@cli.command()
@click.argument("robot", metavar="ROBOT")
@click.option(
    "--cases", type=click.IntRange(min=1), default=1000, show_default=True, help="How many robots and motions."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all that is random.")
@click.option(
    "--spread",
    type=click.FloatRange(0, 50),
    default=1.0,
    show_default=True,
    help="How far masses, inertias and lengths may be off, in %.",
)
@click.option(
    "--vary",
    type=click.Choice(["all", "geometry", "inertia"]),
    default="all",
    show_default=True,
    help="What is off; lengths of an overconstrained robot, as 2t1r, do not fit each other then.",
)
@click.option(
    "--motion",
    "motions",
    multiple=True,
    default=("own", "random", "pose"),
    show_default=True,
    help="Kind of motion; may repeat, they are taken in turn.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    default=("analytic/lagrange", "mujoco/kkt"),
    show_default=True,
    help="Source to hold against analytic/noc; may repeat.",
)
@click.option("--configuration", default="", help="horizontal or vertical; default: vertical.")
@click.option("--mode", default="", help="Working mode; default: the first that meets no singularity.")
@click.option("--variant", default="default", show_default=True, help="Variant of the parameters.")
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers compute, as tcp://10.0.0.1:8786.")
@click.option("--case", type=click.IntRange(min=0), help="Compute the case of this number alone, and print it.")
@_out
@_jobs
@_time_limit
def sweep(
    out: Path, jobs: int | None, time_limit: float | None, scheduler: str | None, case: int | None, **varied: Any
) -> int:
    """Compute thousands of cases of a ROBOT: wrong parameters, random motions, random poses.

    Gives the distribution of the effort error of each source, and how the effort of each actuator hangs on each
    parameter. Motions have 11 samples. Finished cases in the folder are not computed again; what is random depends on
    the seed and the number of a case alone. --scheduler needs `pip install 'loopcheck[dask]'` here and on the cluster.
    --time-limit holds for a case, and for the cases that are computed together, which are tried one by one where they
    take longer. Exit status: 0 no error beyond the tolerance of its source; 1 one is; 3 a source failed or nothing was
    compared.

    \b
    Examples:
      loopcheck sweep 3prr --cases 10000 --out sweep
      loopcheck sweep 3rrr --spread 5 --motion own --source mujoco/kkt --source pybullet/kkt
      loopcheck sweep 3prr --case 421
    """
    from validation.console import print_case, print_sweep
    from validation.journal import held
    from validation.sweep.cases import Study
    from validation.sweep.report import exit_status, write_report
    from validation.sweep.study import run_study
    from validation.workers import TIME_LIMIT, Workers

    study = Study(**varied)
    if case is not None:
        print_case(study, case)
        return 0
    workers = Workers(jobs, time_limit or TIME_LIMIT)
    with held(out):
        found = run_study(study, out, workers=workers, scheduler=scheduler, command=["loopcheck", *sys.argv[1:]])
        write_report(found, out)
    print_sweep(found, out)
    return exit_status(found)


@cli.command()
@click.argument("robots", metavar="[ROBOT]...", nargs=-1)
@click.option("--samples", type=click.IntRange(min=1000), default=100_000, show_default=True, help="Of a batch.")
@click.option("--chain", type=click.IntRange(min=1), default=50, show_default=True, help="Most four-bars in a chain.")
@_out
def bench(robots: tuple[str, ...], samples: int, chain: int, out: Path) -> int:
    """Measure batches of inverse dynamics beside Pinocchio, the plain sources and the engines, on one core.

    Every ratio comes from one run, with its spread. Writes bench.csv and bench.json. The rows of Pinocchio need
    `pip install 'loopcheck[bench]'`.

    \b
    Example:
      loopcheck bench 3prr
    """
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[threads] = "1"  # before numpy is imported
    from validation.bench.study import bench_table, write_bench
    from validation.console import print_bench
    from validation.journal import held

    with held(out):
        figures = bench_table(robots, samples=samples, chain=chain)
        write_bench(figures, out)
    print_bench(figures, out)
    return 0


@cli.command()
@click.argument("robots", metavar="[ROBOT]...", nargs=-1)
@_resume
@_in_folder
def benchmarks(robots: tuple[str, ...], out: Path, workers: "Workers") -> int:
    """Measure forward dynamics against published free motions, and write benchmarks.csv and benchmarks.html.

    \b
    Example:
      loopcheck benchmarks andrews
    """
    from validation.benchmarks import benchmarks_table, exit_status, write_benchmarks
    from validation.console import print_benchmarks

    found = benchmarks_table(robots, workers=workers)
    write_benchmarks(found, out)
    print_benchmarks(found, out)
    return exit_status(found)


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("wanted", metavar="[ROBOT]...|MODEL.xml", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--mujoco", "versions", metavar="VERSION", multiple=True, help="Version to run; default: 3.6.0 and 3.7.0."
)
@click.option(
    "--python",
    "interpreters",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Interpreter of an environment that you have, with another MuJoCo; may repeat.",
)
@_out
def versions(wanted: tuple[str, ...], versions: tuple[str, ...], interpreters: tuple[Path, ...], out: Path) -> int:
    """See what an upgrade of MuJoCo does to ROBOTs, or to a MODEL.xml: the same run in several versions, side by side.

    The version installed here always runs. Others get environments of their own, made by uv, or are those of
    interpreters that you name. All other options are those of run or, for a MODEL.xml, of check; by default the
    sources are mujoco/kkt, mujoco/forward and mujoco/default. Writes versions.csv, versions.html, and the results of
    each version.

    \b
    Examples:
      loopcheck versions 3prr
      loopcheck versions 3prr --mujoco 3.6.0 --mode plus --source mujoco/forward --out upgrade
      loopcheck versions my_robot.xml --python old_environment/bin/python

    Exit status as of run, over all versions: 3 also where a version did not run and none disagrees.
    """
    from validation.console import print_versions
    from validation.journal import held
    from validation.versions.report import write_report
    from validation.versions.study import OLDER, environments, exit_status, run_study, write_tables

    arguments = _arguments_of_version(wanted)
    with held(out):
        where = environments(versions or (() if interpreters else OLDER), interpreters)
        found = run_study(where, arguments, out, command=["loopcheck", *sys.argv[1:]])
        write_tables(found, out)
        write_report(found, out)
    print_versions(found, out)
    return exit_status(found)


def _arguments_of_version(wanted: tuple[str, ...]) -> list[str]:
    """The command line of `run` or `check`, seen to be good, that is run in every version."""
    from validation.run import Selection, plan
    from validation.versions.study import ROUTES

    name = "check" if any(word.endswith(".xml") for word in wanted) else "run"
    given = cli.commands[name].make_context(f"loopcheck {name}", list(wanted)).params
    if given["junit"] is not None:
        raise click.UsageError("--junit is for one version: use it with run or check")
    others = [source for source in given["sources"] if source.split("/")[0] not in ("mujoco", "analytic")]
    if others:
        raise click.UsageError(f"want sources of MuJoCo, got {', '.join(others)}")
    if name == "check" and not given["model"].is_file():
        raise click.UsageError(f"{given['model']}: no such file, want an MJCF")
    if name == "run":
        plan(Selection(**{field: given[field] for field in Selection.__dataclass_fields__}))
    defaults = () if given["sources"] else ROUTES
    return [name, *wanted, *(f"--source={source}" for source in defaults)]


@cli.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def report(folder: Path) -> int:
    """Rebuild report.html and report.md from the tables in DIR.

    \b
    Example:
      loopcheck report results
    """
    from validation.console import print_summary
    from validation.report import write_report
    from validation.tables import read
    from validation.workers import ALL_CORES

    results = read(folder)
    write_report(results, folder, ALL_CORES)
    print_summary(results, folder)
    return 0


@cli.command()
@click.option(
    "--plant", "plants", multiple=True, default=("exact",), show_default=True, help="exact, mujoco, pybullet."
)
@click.option("--mode", "modes", multiple=True, default=("pmp",), show_default=True, help="Working mode; may repeat.")
@click.option(
    "--seed", "seeds", type=int, multiple=True, default=(0,), show_default=True, help="Seed of the templates."
)
@click.option("--templates", type=click.IntRange(min=2), default=10, show_default=True, help="Robots for each level.")
@_in_folder
def ctc(out: Path, workers: "Workers", **varied: Any) -> int:
    """Study computed-torque control of the 3rrr with wrong parameters: classical, Extended, and task-space CTC.

    Finished runs in the folder are not computed again.

    \b
    Examples:
      loopcheck ctc --out ctc
      loopcheck ctc --out ctc --mode pmp --mode mpm --seed 0 --seed 1
    """
    from validation.ctc.report import write_report
    from validation.ctc.study import Study, run_study

    found = run_study(Study(**varied), out, workers=workers, command=["loopcheck", *sys.argv[1:]])
    write_report(found, out)
    click.echo(
        f"{len(found.runs)} runs, {found.runs['diverged_at'].notna().sum()} diverged; report: {out / 'ctc.html'}"
    )
    return 0


def _run_and_report(cases: "list[Case]", how: HowToRun, out: Path, workers: "Workers") -> int:
    """Run cases, write tables and report, print the summary; returns the exit status."""
    from validation.console import print_summary
    from validation.findings import exit_status, internal_errors
    from validation.junit import write_junit
    from validation.report import write_report
    from validation.run import run as run_cases
    from validation.tables import want_writable, write

    if how.junit:
        want_writable(how.junit.parent)
    results = run_cases(
        cases,
        wanted=how.sources,
        dt=how.dt,
        workers=workers,
        command=["loopcheck", *sys.argv[1:]],
        own_limits=how.limits,
    )
    write(results, out)
    write_report(results, out, workers)
    if how.junit:
        write_junit(results, how.junit)
    print_summary(results, out)
    for line in internal_errors(results):
        click.echo(f"loopcheck: {line}", err=True)
    return exit_status(results)
