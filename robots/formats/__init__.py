"""Model files: a reader and a writer per format, and what is lost."""
