"""Every source on an MJCF that is not in the catalogue."""
