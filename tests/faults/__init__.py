"""Faults of robots, engines and readings, and the table of the parts of the harness that find them."""
