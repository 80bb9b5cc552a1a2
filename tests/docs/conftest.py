"""Fixtures of the tests of documents: commands in this process."""

from tests.validation.conftest import _forking, loopcheck, short_proofs

__all__ = ["_forking", "loopcheck", "short_proofs"]
