"""How tasks are computed and their results kept; knows no physics and no study."""
