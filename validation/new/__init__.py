"""A folder for a robot of the user."""
