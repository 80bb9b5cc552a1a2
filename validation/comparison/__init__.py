"""Evaluation, comparison, audit, limits and verdicts, independent of pages."""
