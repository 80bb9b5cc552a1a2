"""Logs from anywhere, held against the equations of the closed loop."""
