"""What is computed and what follows from it: evaluation, comparison, audit, limits, verdicts. Knows no page."""
