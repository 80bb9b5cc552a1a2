"""Cost of each erratum of the papers."""
