"""Logs against the equations of the closed loop: residual efforts, their noise floor, and fits."""
