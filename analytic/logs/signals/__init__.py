"""Columns of a log as signals: noise, time stamps, filters and rates."""
