"""`loopcheck list`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from loopcheck.validation.frame.options import Command, format_option, targets_argument

if TYPE_CHECKING:
    from loopcheck.robots.arrays import JointPositions
    from loopcheck.robots.mechanism import Mechanism


@click.command(cls=Command, short_help="List robots, modes, variants, sources and engines.")
@targets_argument
@format_option
def command(targets: tuple[str, ...], format: str) -> int:
    """List robots with their variants, modes, configurations, actuators and sources, and the installed engines.

    Without a TARGET: all catalogue robots, and the published transmissions that `loopcheck serial` takes.

    \b
    Examples:
      loopcheck list
      loopcheck list my_robot.xml
    """
    from loopcheck.robots.catalogue import transmission_names
    from loopcheck.robots.errors import one_line
    from loopcheck.robots.transmission import load_transmission

    robots, engines = dict(_robots(targets)), dict(_engines())
    transmissions = {name: load_transmission(name).title for name in transmission_names() if not targets}
    if format == "json":
        tables = {"robots": robots, "transmissions": transmissions, "engines": engines}
        click.echo(json.dumps({"schema": "loopcheck.list/1", **tables}))
        return 0
    click.echo("\n".join(map(one_line, _lines(robots, transmissions, engines))))
    return 0


def _lines(
    robots: Mapping[str, Any], transmissions: Mapping[str, str], engines: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """The lists as text."""
    for name, entries in robots.items():
        yield f"{name}: {entries['title']}"
        lists = {kind: values for kind, values in entries.items() if kind not in ("title", "loops")}
        if not entries["loops"]:
            lists["loops"] = ["no loop (tree)"]
        yield from (f"  {kind + ':':16}{', '.join(values)}" for kind, values in lists.items())
    if transmissions:
        yield "transmissions:"
        yield from (f"  {name + ':':26}{title}" for name, title in transmissions.items())
    yield "engines:"
    for name, lines in engines.items():
        yield from (f"  {name + ':' if k == 0 else '':16}{line}" for k, line in enumerate(lines))


def _robots(targets: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and properties of each robot."""
    from loopcheck.robots.catalogue import names, want_targets
    from loopcheck.robots.robot import configurations, modes
    from loopcheck.validation.common import sources
    from loopcheck.validation.common.targets import robot_of

    want_targets(targets)
    for target in targets or names():
        robot = robot_of(target)
        mechanism = robot.mechanism()
        poses = modes(mechanism)
        units = zip(mechanism.actuators, mechanism.actuator_units, strict=True)
        yield (
            robot.name,
            {
                "title": robot.title,
                "mechanism": [_mechanism(mechanism, next(iter(poses.values())))],
                "variants": list(robot.variant_names),
                "modes": list(poses),
                "configurations": list(configurations(robot, mechanism)),
                "loops": len(mechanism.closures),
                "actuators": [f"{actuator.name} [{unit}]" for actuator, unit in units],
                **({} if mechanism.actuators else {"joints": [joint.name for joint in mechanism.joints]}),
                "sources": list(sources.names(robot)),
            },
        )


def _mechanism(mechanism: "Mechanism", guess: "JointPositions") -> str:
    """Loops, closure equations and freedoms in a closed pose near another, (nq,)."""
    from loopcheck.analytic.kinematics.mobility import in_words, mobility
    from loopcheck.analytic.motion.start import closed_pose
    from loopcheck.robots.errors import LoopClosureError

    try:
        return in_words(mobility(mechanism, closed_pose(mechanism, guess)))
    except LoopClosureError as error:
        return str(error)


def _engines() -> Iterator[tuple[str, list[str]]]:
    """Each engine with its version, its environment or the command that installs it, and its routes on request."""
    from loopcheck import engines
    from loopcheck.validation.execution.environments import used_environments
    from loopcheck.validation.execution.invocation import pasted

    versions, environments = engines.versions(), used_environments()
    for engine in engines.engine_names():
        state = versions.get(engine) or f"not installed: {pasted('engines', 'add', engine)}"
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
