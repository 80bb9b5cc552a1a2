"""Derivatives of the engines through closed loops."""
