"""The study of step sizes and solver settings: what they cost, what they give, and what to set."""
