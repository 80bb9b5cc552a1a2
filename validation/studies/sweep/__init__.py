"""Monte-Carlo over robots, motions and poses: how effort errors are distributed, and what efforts hang on."""
