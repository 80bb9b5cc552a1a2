"""Computation of tasks and storage of their results, independent of physics and studies."""
