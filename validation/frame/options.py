"""Options that commands share: targets, execution, output. An option name means the same in every command."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import click
from click.shell_completion import CompletionItem

from loopcheck.robots.errors import one_line

if TYPE_CHECKING:
    from loopcheck.validation.frame.study import Conclusion, Study, StudyResult

F = TypeVar("F", bound=Callable[..., Any])

RESULTS = Path("results")
PUBLIC = {"atlas": "fetched_robot", "menagerie": "fetched_menagerie_robot"}
"""Collections of public models, and the functions that fetch their models."""
EXECUTION, TARGET, JUDGEMENT = "Execution", "Target", "Judgement"
"""Groups of options in `--help`."""


class Option(click.Option):
    """An option with its group in `--help`; a number is an N there, without its range, which a refusal states."""

    def __init__(self, *args: Any, group: str = "Other", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group
        if self.metavar is None and isinstance(self.type, click.IntRange | click.FloatRange):
            self.metavar = "N"

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Entries behind the text of the help."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


option = partial(click.option, cls=Option)


class Command(click.Command):
    """A command with grouped options in `--help`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of options below its title."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None:
                groups.setdefault(getattr(parameter, "group", "Other"), []).append(record)
        for group in sorted(groups, key=lambda name: (name in (EXECUTION, "Other"), name == "Other")):
            with formatter.section(f"{group} options"):
                formatter.write_dl(groups[group])


class Commands(click.Group):
    """A group of commands in the order of `modules`, each imported on first use."""

    command_class = Command
    modules: ClassVar[Mapping[str, str]] = {}
    """Module of each command; the module has the attribute `command`."""
    removed: ClassVar[Mapping[str, str]] = {}
    """What replaces each removed command, in a sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return [*self.modules, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in self.modules:
            return super().get_command(ctx, cmd_name)
        from importlib import import_module

        command: click.Command = import_module(self.modules[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command named by the arguments; a misspelt name gets the nearest names as an answer."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.list_commands(ctx), n=2)
            hint = f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
            if args[0] in self.removed:
                hint = f" It was removed: {self.removed[args[0]]}."
            known = ", ".join(self.list_commands(ctx))
            message = f"The command must be one of {known}, got '{args[0]}'.{hint}"
            raise click.UsageError(message, ctx) from error


class BesideStored(Protocol):
    """A result held against a stored result."""

    @property
    def verdicts(self) -> list[str]:
        """Verdicts that decide the exit status."""

    @property
    def lines(self) -> Iterator[str]:
        """Terminal output."""

    def as_json(self) -> dict[str, Any]:
        """The comparison for other programs."""


class FiniteRange(click.FloatRange):
    """A range of finite numbers."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert a text; infinity and NaN are refused."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"must be a finite number, got {number:g}", param, ctx)
        return number


class Accuracy(click.ParamType):  # type: ignore[type-arg] # generic only since 8.4
    """A relative error, as 0.05 or 5%; 1 and more only as a percentage, lest 1 mean one percent."""

    name = "accuracy"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert a number or a percentage."""
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            self.fail(f"must be a positive number or percentage, as 0.05 or 5%, got '{text}'", param, ctx)
        if number >= 1 and not text.endswith("%"):
            self.fail(
                f"must be below 1 or have a percent sign, got '{text}': write {text}% or {number:.0%}", param, ctx
            )
        return number


def accuracy_option(help: str, **kwargs: Any) -> Callable[[F], F]:
    """The user's limit of the effort error."""
    return option("--accuracy", type=Accuracy(), metavar="A", group=JUDGEMENT, help=help, **kwargs)


def _complete_target(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Catalogue robots, then files."""
    from loopcheck.robots.catalogue import names

    robots = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
    return [*robots, CompletionItem(incomplete, type="file")]


class Target(click.ParamType):  # type: ignore[type-arg]
    """A TARGET; `atlas:NAME` and `menagerie:NAME` become the folder of a public model, fetched at its commit."""

    name = "target"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a name or a path; raises a `HarnessError` for a model that is unknown or cannot be fetched."""
        text = str(value)
        collection, _, name = text.partition(":")
        if collection not in PUBLIC or not name:
            return text
        from loopcheck.validation.public_models import fetching

        return str(getattr(fetching, PUBLIC[collection])(name))


def _complete_source(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from loopcheck.validation.common.sources import every_name

    return [CompletionItem(name) for name in every_name() if name.startswith(incomplete)]


target_argument = click.argument("target", metavar="TARGET", type=Target(), shell_complete=_complete_target)
targets_argument = click.argument(
    "targets", metavar="[TARGET]...", nargs=-1, type=Target(), shell_complete=_complete_target
)
"""One target, or several: a catalogue robot, a model file, a folder with `robot.toml`, or a public model by name."""

mode_option = option(
    "--mode",
    default="",
    metavar="M",
    group=TARGET,
    help="Working mode: the name of a keyframe.  [default: the first regular mode]",
)
variant_option = option(
    "--variant",
    default="default",
    metavar="V",
    show_default=True,
    group=TARGET,
    help="Parameter variant of robot.toml.",
)
modes_option = option(
    "--mode",
    "modes",
    metavar="M",
    multiple=True,
    group=TARGET,
    help="Working mode: the name of a keyframe; may repeat.  [default: all; of a model file the first]",
)
variants_option = option(
    "--variant",
    "variants",
    metavar="V",
    multiple=True,
    group=TARGET,
    help="Parameter variant of robot.toml; may repeat.  [default: all]",
)
configuration_option = option(
    "--configuration",
    default="",
    metavar="C",
    group=TARGET,
    help="Direction of gravity: horizontal, vertical, given or turned.  [default: gravity of the file]",
)
loaded_configuration_option = option(
    "--configuration",
    default="",
    metavar="C",
    group=TARGET,
    help="Direction of gravity: horizontal, vertical, given or turned.  [default: vertical, or the last]",
)
configurations_option = option(
    "--configuration",
    "configurations",
    metavar="C",
    multiple=True,
    group=TARGET,
    help="Direction of gravity: horizontal, vertical, given or turned; may repeat.  [default: all]",
)
actuated_option = option(
    "--actuated",
    default="",
    metavar="J1,J2",
    group=TARGET,
    help="Actuated joints, instead of the actuators of the model; or those of its actuators that act.",
)
leave_out_option = option(
    "--leave-out",
    metavar="TAG[:NAME]",
    multiple=True,
    group=TARGET,
    help="Accept that an element of the model file is not read, for example drake:weld_constraint; may repeat.",
)
motion_option = option(
    "--motion",
    metavar="FILE",
    type=click.Path(path_type=Path),
    group=TARGET,
    help="CSV file with the columns t [s] and, per actuated joint, NAME.q, NAME.qd, NAME.qdd [rad or m, per s, per s²]."
    "  [default: a generated motion]",
)
seed_option = option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all random numbers."
)


def sources_option(help: str) -> Callable[[F], F]:
    """The sources to compute; may repeat."""
    return option(
        "--source",
        "sources",
        metavar="S",
        multiple=True,
        group=JUDGEMENT,
        shell_complete=_complete_source,
        help=help,
    )


def representative_cases(
    targets: Sequence[str], *, modes: Sequence[str] = (), configurations: Sequence[str] = ()
) -> list[Any]:
    """One case of each target: first variant, first regular mode, loaded by gravity; without targets, all robots.

    Args:
        targets: See `loopcheck.validation.common.targets.robot_of`.
        modes: Mode, instead of the first regular mode.
        configurations: Configuration, instead of the vertical configuration.
    """
    from loopcheck.robots.catalogue import names, want_targets
    from loopcheck.robots.robot import representative_case
    from loopcheck.validation.common.targets import robot_of

    want_targets(targets)
    mode, configuration = next(iter(modes), ""), next(iter(configurations), "")
    return [
        representative_case(robot_of(target), mode=mode, configuration=configuration) for target in targets or names()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Output folder, worker processes and output format of a command."""

    out: Path
    jobs: int | None
    time_limit: float | None
    format: str = "text"

    def prepare(self) -> None:
        """Start the process that workers are forked from; it imports in parallel to this process."""
        from loopcheck.validation.execution.forkserver import worker_context
        from loopcheck.validation.frame.preload import PRELOAD

        worker_context(PRELOAD)

    def compute(self, study: "Study", *, all_figures: bool = False) -> "tuple[StudyResult, Conclusion]":
        """Compute a study, print its summary and write its folder."""
        from loopcheck.validation.execution.workers import TIME_LIMIT, Workers
        from loopcheck.validation.frame.study import run_study, say_nothing
        from loopcheck.validation.report.terminal import show

        workers = Workers(self.jobs, self.time_limit or TIME_LIMIT)
        say = show if self.format == "text" else say_nothing
        command = ["loopcheck", *sys.argv[1:]]
        return run_study(study, self.out, workers=workers, command=command, say=say, all_figures=all_figures)

    def end(
        self,
        study: "Study",
        result: "StudyResult",
        conclusion: "Conclusion",
        baseline: BesideStored | None = None,
    ) -> int:
        """Print the tasks that did not run, or the JSON object of the result; returns the exit status.

        Args:
            study: Of the result.
            result: Content of the output folder.
            conclusion: Verdicts of the study.
            baseline: Comparison with a baseline; its rows decide the exit status.
        """
        from loopcheck.validation.frame.study import exit_status, json_object

        status = exit_status(conclusion.verdicts, result.record)
        if baseline is not None:
            status = exit_status(baseline.verdicts, {**result.record, "not_run": []})  # their rows are in the baseline
        if self.format == "json":
            more = {} if baseline is None else {"baseline": baseline.as_json()}
            done = {"exit_status": status, **json_object(study, result, conclusion), **more}
            click.echo(json.dumps(done, allow_nan=False))
        else:
            if baseline is not None:
                from loopcheck.validation.report.terminal import show

                show(list(baseline.lines))
            shown = "\n".join(map(str, conclusion.summary))
            for reason in dict.fromkeys(result.record["not_run"]):
                if reason not in shown:
                    click.echo(f"Not run: {one_line(reason)}")
        for line in [*result.record.get("journal", ()), *result.record["internal_errors"]]:
            click.echo(f"loopcheck: {one_line(line)}", err=True)
        return status

    def run(self, study: "Study", *, all_figures: bool = False) -> int:
        """Compute a study and print its result; returns the exit status."""
        return self.end(study, *self.compute(study, all_figures=all_figures))


def execution_options(folder: Path, *, time_limit: str = "1800") -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the options of output and execution, as its argument `execution`.

    Args:
        folder: Default output folder.
        time_limit: Default time limit in words [s].
    """
    limit = time_limit_option(time_limit)  # below, the name is that of the option

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def with_options(*, out: Path, jobs: int | None, time_limit: float | None, format: str, **options: Any) -> int:
            from loopcheck.validation.execution.files import want_writable

            want_writable(out)
            return command(execution=Execution(out=out, jobs=jobs, time_limit=time_limit, format=format), **options)

        return out_option(folder)(jobs_option(limit(format_option(with_options))))

    return decorate


def out_option(folder: Path | str) -> Callable[[F], F]:
    """The output folder of a command."""
    return option(
        "--out",
        metavar="DIR",
        type=click.Path(path_type=Path),
        default=folder,
        show_default=True,
        group=EXECUTION,
        help="Output folder. Run the same command again to resume.",
    )


all_figures_option = option(
    "--all-figures",
    is_flag=True,
    group=EXECUTION,
    help="Draw the figures of every case, motion and step-size study, not only the most important figures.",
)
format_option = option(
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    group=EXECUTION,
    help="Format of the output on the terminal; json prints a single object.",
)
jobs_option = option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    group=EXECUTION,
    help="Worker processes.  [default: one per core]",
)


def time_limit_option(default: str) -> Callable[[F], F]:
    """The time limit of a task."""
    return option(
        "--time-limit",
        metavar="S",
        type=FiniteRange(min=0, min_open=True),
        group=EXECUTION,
        help=f'Time limit per task in seconds. A task that exceeds it is reported as "not run".  [default: {default}]',
    )


baseline_option = option(
    "--baseline",
    metavar="FILE",
    type=click.Path(path_type=Path),
    group=JUDGEMENT,
    help="Stored result. Only findings that are worse than stored count for the exit status.",
)
write_baseline_option = option(
    "--write-baseline",
    metavar="FILE",
    type=click.Path(path_type=Path),
    group=EXECUTION,
    help="Store this result for --baseline.",
)


def want_one_baseline(baseline: Path | None, write_baseline: Path | None) -> None:
    """Refuse a baseline to compare with beside a baseline to write."""
    if baseline and write_baseline:
        raise click.UsageError("One of --baseline and --write-baseline must be given, got both.")


scheduler_option = option(
    "--scheduler",
    metavar="ADDRESS",
    group=EXECUTION,
    help="Address of the Dask scheduler of a cluster, for example tcp://10.0.0.1:8786.",
)


def numbers_of(texts: Iterable[str], option_name: str) -> dict[str, float]:
    """Numbers by name, from texts NAME=NUMBER."""
    numbers = {}
    for text in texts:
        name, separator, value = text.rpartition("=")
        try:
            numbers[name] = float(value)
        except ValueError:
            separator = ""
        if not (name and separator):
            raise click.BadParameter(f"must be NAME=NUMBER, got '{text}'", param_hint=option_name)
    return numbers


def names_of(text: str) -> tuple[str, ...]:
    """Names in a list, as J1,J2."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
