"""The checks of a file, by subject."""
