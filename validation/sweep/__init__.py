"""Monte-Carlo: thousands of robots, motions and poses, the effort errors that come of them, and what efforts hang on."""
