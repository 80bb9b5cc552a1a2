"""The same dynamics in another format, proven."""
