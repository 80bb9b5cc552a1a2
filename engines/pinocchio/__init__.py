"""Pinocchio, from a tree built through its API from the `Mechanism`."""

REQUIRES = "pinocchio"
DISTRIBUTION = "pin"
EXTRA = "pinocchio"
LINEAGE = "Pinocchio"
