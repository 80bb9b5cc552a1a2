"""The boundary of an engine: its output is silenced, its exceptions are converted, unsupported robots are refused."""

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext

from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.mechanism import Mechanism

STREAMS = (1, 2)
"""File descriptors of standard output and standard error; engines write to both."""


@contextmanager
def silenced() -> Iterator[None]:
    """Send the output of the process to the null device, below Python, with the buffers of C."""
    c_library = ctypes.CDLL(None)
    _flush(c_library)
    saved = [os.dup(stream) for stream in STREAMS]
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream in STREAMS:
            os.dup2(null, stream)
        yield
    finally:
        _flush(c_library)
        for stream, copy in zip(STREAMS, saved, strict=True):
            os.dup2(copy, stream)
        for descriptor in (null, *saved):
            os.close(descriptor)


def _flush(c_library: ctypes.CDLL) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    c_library.fflush(None)


@contextmanager
def converted(route: str, *, errors: tuple[type[BaseException], ...], quiet: bool = False) -> Iterator[None]:
    """Convert exceptions of an engine to an `EngineError` with a message in one line.

    Args:
        quiet: Also keep its output out of the terminal.
    """
    try:
        with silenced() if quiet else nullcontext():
            yield
    except errors as error:
        raise EngineError(f"{route}: {' '.join(str(error).split())[:300]}") from error


def want_representable(source: str, reasons: Iterable[str]) -> None:
    """Refuse a robot if there are reasons, in one line with all of them.

    Args:
        source: Engine or route.
        reasons: Unsupported elements of the robot, each with its reason.

    Raises:
        NotRepresentableError: If there is a reason.
    """
    phrases = tuple(dict.fromkeys(reasons))
    if phrases:
        raise NotRepresentableError(f"{source}: not supported: {'; '.join(phrases)}")


def of_paths(mechanism: Mechanism, *, only_slides: bool = False) -> Iterator[str]:
    """Spatial tendons that are closures or coordinates, for engines and functions without them.

    Args:
        only_slides: Only those that are coordinates.
    """
    for closure in mechanism.path_closures:
        if closure.slide is not None:
            yield f"spatial tendon '{mechanism.joints[closure.slide].name}' as a drive, spring or coordinate"
        elif not only_slides:
            yield f"equality '{closure.name}' of a spatial tendon"


def coupled(mechanism: Mechanism, *, equality: str = "", tendon: str = "", spring: str = "") -> Iterator[str]:
    """Elements that couple joints or points, each with the reason why the engine lacks its kind; '' if it has it."""
    yield from of_paths(mechanism)
    if equality:
        for closure in mechanism.coordinate_closures:
            yield f"equality '{closure.name}' ({equality})"
    if tendon:
        names = [drive.name for drive in mechanism.drives if not drive.is_joint]
        names += [item.name for item in mechanism.tendons if item.armature or item.damping or item.stiffness]
        for name in dict.fromkeys(names):
            yield f"tendon '{name}' ({tendon})"
    if spring:
        for item in mechanism.point_springs:
            yield f"spring '{item.name}' ({spring})"
