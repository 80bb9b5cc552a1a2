"""PyBullet (Bullet's multibody), from a URDF generated from the `Mechanism`."""

REQUIRES = "pybullet"
EXTRA = "pybullet"
LINEAGE = "Bullet"
SHARES = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
