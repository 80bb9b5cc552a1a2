"""Errors of a serial model of a closed mechanism, and their repair."""
