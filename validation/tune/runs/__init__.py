"""Simulations with the settings that are tried."""
