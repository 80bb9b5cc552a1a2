"""Step sizes and solver settings: their cost, their accuracy, and recommended values."""
