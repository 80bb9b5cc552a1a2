"""`loopcheck list`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from validation.studies.options import folders_option


@click.command()
@folders_option
def command(folders: tuple[Path, ...]) -> int:
    """List robots, modes, variants and sources, and which engines are installed.

    \b
    Examples:
      loopcheck list
      loopcheck list --robots my_robots
    """
    for line in (*_robots(folders), *_engines()):
        click.echo(line)
    return 0


def _robots(folders: Sequence[Path]) -> Iterator[str]:
    """Each robot with its variants, modes, configurations, actuators and sources."""
    from analytic.motion.configurations import load_configured
    from robots.robot import configurations, modes, names
    from validation.judge import sources

    for name in names(folders):
        robot = load_configured(name, folders)
        mechanism = robot.mechanism()
        yield f"{name}: {robot.title}"
        units = zip(mechanism.actuators, mechanism.actuator_units, strict=True)
        for kind, known in {
            "variants": robot.variant_names,
            "modes": modes(mechanism),
            "configurations": configurations(robot, mechanism),
            "actuators": [f"{actuator.name} [{unit}]" for actuator, unit in units],
            "sources": sources.names(robot),
        }.items():
            yield f"  {kind + ':':16}{', '.join(known)}"


def _engines() -> Iterator[str]:
    """Each engine with its version, and its environment where it has one, or what brings it."""
    import engines
    from robots.errors import EngineNotInstalledError
    from validation.execution.environments import used_environments

    yield "engines:"
    versions, environments = engines.versions(), used_environments()
    for engine in engines.engine_names():
        state = versions.get(engine) or str(EngineNotInstalledError(engine, engines.extra(engine))).split("is ", 1)[1]
        if environment := environments.get(engine):
            state = f"{environment.version} in the environment {environment.name}, Python {environment.python}"
        yield f"  {engine + ':':16}{state}"
        reasons: dict[str, list[str]] = {}
        for name in engines.names():
            if name.startswith(f"{engine}/") and (reason := engines.on_request(name)):
                reasons.setdefault(reason, []).append(f"--source {name}")
        for reason, routes in reasons.items():
            yield f"  {'':16}on request ({' '.join(routes)}): {reason}"
