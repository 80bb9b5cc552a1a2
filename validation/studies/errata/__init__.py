"""What each erratum of the papers costs."""
