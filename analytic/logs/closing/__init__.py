"""Positions of all joints of a log, with closed loops."""
