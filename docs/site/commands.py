"""Reference of commands in Markdown, from the parser of the command line."""

from collections.abc import Iterator

import click

from loopcheck.validation.cli import cli

WIDTH = 88


def reference() -> str:
    """Help of all commands, a chapter each; the commands of a group follow it."""
    return "\n".join(_chapters(click.Context(cli, info_name="loopcheck", max_content_width=WIDTH), depth=2))


def _chapters(context: click.Context, depth: int) -> Iterator[str]:
    command = context.command
    context.terminal_width = WIDTH
    yield f"\n{'#' * depth} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _chapters(click.Context(inner, info_name=name, parent=context), min(depth + 1, 3))
