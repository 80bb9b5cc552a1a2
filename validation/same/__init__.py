"""Comparison of two model files of a robot."""
