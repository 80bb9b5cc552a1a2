"""Seeded faults: the faults, their detection by the judge, and the page."""
