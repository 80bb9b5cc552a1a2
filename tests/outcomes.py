"""Outcomes of sources that must have efforts."""

from loopcheck.validation.check.efforts.outcome import Outcome, Ran, Unmodified


def ran(outcome: Outcome) -> Ran:
    """The outcome, which has efforts."""
    assert isinstance(outcome, Ran), outcome.note
    return outcome


def unmodified(outcome: Outcome) -> Unmodified:
    """The outcome, of an unmodified simulation."""
    assert isinstance(outcome, Unmodified), outcome.note
    return outcome
