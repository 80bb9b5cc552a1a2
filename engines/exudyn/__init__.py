"""Exudyn, as rigid bodies in redundant coordinates with joints between them, built from the `Mechanism`."""

REQUIRES = "exudyn"
EXTRA = "exudyn"
LINEAGE = "Exudyn"
SHARES = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
