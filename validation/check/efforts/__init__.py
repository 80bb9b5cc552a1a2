"""The efforts of each source in a case, held against those of the reference."""
