"""Monte-Carlo over robots, motions and poses: distributions of effort errors, and sensitivities to each parameter."""
