"""Pinocchio, from a tree built through its API from the `Mechanism`."""

REQUIRES = "pinocchio"
DISTRIBUTION = "pin"
EXTRA = "pinocchio"
LINEAGE = "Pinocchio"
SHARES = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
