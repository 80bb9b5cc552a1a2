"""Precisions of an engine's batches, computed in the environment of the engine."""

from loopcheck.validation.studies.throughput.measure import batch_of


def precisions(engine: str) -> tuple[str, ...]:
    """The precisions of the batches of an engine."""
    return tuple(batch_of(engine).PRECISIONS)
