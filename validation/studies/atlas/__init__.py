"""Public models of closed-loop robots, each held against the equations of motion."""
