"""Closed-loop inverse dynamics of many samples at once: the equations are traced into a tape that runs over blocks."""
