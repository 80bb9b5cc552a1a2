"""The judge: runs all sources on all cases, compares them, and reports."""
