"""Efforts of a motion: two models that share no dynamics, powers and energy, and accelerations from efforts."""
