"""Rows of the tables of a serial model."""
