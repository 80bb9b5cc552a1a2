"""Readers of logs: tables, columns, descriptions."""
