"""The engine that is tuned."""

import engines
from engines.tuning import Tuning
from robots.errors import NotFoundError


def tunable() -> list[str]:
    """Installed engines whose settings can be tuned."""
    return [name for name in engines.engine_names() if engines.installed(name) and engines.engine(name).tuning()]


def tuning_of(engine: str) -> Tuning:
    """The module of an engine that tunes.

    Raises:
        NotFoundError: If it has none, or is not installed; the message lists those that can.
    """
    is_there = engine in engines.engine_names() and engines.installed(engine)
    module = engines.engine(engine).tuning() if is_there else None
    if module is None:
        raise NotFoundError("engine that can be tuned", engine, tunable())
    return module
