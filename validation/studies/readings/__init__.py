"""Readings of the engines against the effort that acted."""
