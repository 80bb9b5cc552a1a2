"""Every source on the cases of a selection of robots, held against the reference."""
