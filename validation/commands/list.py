"""`loopcheck list`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from loopcheck.validation.studies.options import Command, format_option, targets_argument


@click.command(cls=Command, short_help="List robots, modes, variants, sources and engines.")
@targets_argument
@format_option
def command(targets: tuple[str, ...], format: str) -> int:
    """List robots with their variants, modes, configurations, actuators and sources, and the installed engines.

    Without a TARGET: all catalogue robots.

    \b
    Examples:
      loopcheck list
      loopcheck list my_robot.xml
    """
    robots, engines = dict(_robots(targets)), dict(_engines())
    if format == "json":
        click.echo(json.dumps({"schema": "loopcheck.list/1", "robots": robots, "engines": engines}))
        return 0
    for name, entries in robots.items():
        click.echo(f"{name}: {entries['title']}")
        for kind, values in entries.items():
            if kind != "title":
                click.echo(f"  {kind + ':':16}{', '.join(values)}")
    click.echo("engines:")
    for name, lines in engines.items():
        for k, line in enumerate(lines):
            click.echo(f"  {name + ':' if k == 0 else '':16}{line}")
    return 0


def _robots(targets: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and properties of each robot."""
    from loopcheck.robots.catalogue import names, want_targets
    from loopcheck.robots.robot import configurations, modes
    from loopcheck.validation.comparison import sources
    from loopcheck.validation.comparison.targets import robot_of

    want_targets(targets)
    for target in targets or names():
        robot = robot_of(target)
        mechanism = robot.mechanism()
        units = zip(mechanism.actuators, mechanism.actuator_units, strict=True)
        yield (
            robot.name,
            {
                "title": robot.title,
                "variants": list(robot.variant_names),
                "modes": list(modes(mechanism)),
                "configurations": list(configurations(robot, mechanism)),
                "actuators": [f"{actuator.name} [{unit}]" for actuator, unit in units],
                **({} if mechanism.actuators else {"joints": [joint.name for joint in mechanism.joints]}),
                "sources": list(sources.names(robot)),
            },
        )


def _engines() -> Iterator[tuple[str, list[str]]]:
    """Each engine with its version, its environment or the command that installs it, and its routes on request."""
    from loopcheck import engines
    from loopcheck.validation.execution.environments import used_environments

    versions, environments = engines.versions(), used_environments()
    for engine in engines.engine_names():
        state = versions.get(engine) or f"not installed: loopcheck engines add {engine}"
        if environment := environments.get(engine):
            state = f"{environment.version} in the environment {environment.name}, Python {environment.python}"
        reasons: dict[str, list[str]] = {}
        for name in engines.names():
            if name.startswith(f"{engine}/") and (reason := engines.on_request(name)):
                reasons.setdefault(reason, []).append(f"--source {name}")
        yield (
            engine,
            [state, *(f"on request ({' '.join(routes)}): {reason}" for reason, routes in reasons.items())],
        )
