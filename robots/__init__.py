"""The tested data: robots, their motions and their effort histories. No physics."""
