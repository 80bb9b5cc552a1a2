"""Checks of a model file that need no simulation: `loopcheck gate`."""
