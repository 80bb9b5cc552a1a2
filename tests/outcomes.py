"""Outcomes of sources that must have efforts."""

from loopcheck.validation.check.efforts.outcome import AsIs, Outcome, Ran


def ran(outcome: Outcome) -> Ran:
    """The outcome, which has efforts."""
    assert isinstance(outcome, Ran), outcome.note
    return outcome


def unmodified(outcome: Outcome) -> AsIs:
    """The outcome, of an unmodified simulation."""
    assert isinstance(outcome, AsIs), outcome.note
    return outcome
