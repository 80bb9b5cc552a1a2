"""Seeded faults: what is wrong, whether the judge sees it, and the page that says so."""
