"""A certificate of tuned settings held against the files that are there: every claim is computed again."""
