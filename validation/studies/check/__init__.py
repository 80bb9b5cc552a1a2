"""Every source on the cases of a selection of robots, compared with the reference."""
