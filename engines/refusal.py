"""What an engine cannot carry of a robot: all of it at once, so that nobody mends one thing after the other."""

from collections.abc import Iterable

from loopcheck.robots.errors import NotRepresentableError


def want_representable(source: str, reasons: Iterable[str]) -> None:
    """Refuse a robot if there are reasons, in one line with all of them.

    Args:
        source: Engine or route that refuses.
        reasons: What would be lost of the robot, and why, a phrase each.

    Raises:
        NotRepresentableError: If there is one.
    """
    phrases = tuple(dict.fromkeys(reasons))
    if phrases:
        raise NotRepresentableError(f"{source}: not supported: {'; '.join(phrases)}")
