"""MuJoCo, from the MJCF itself."""

REQUIRES = "mujoco"
EXTRA = "mujoco"
LINEAGE = "MuJoCo"
SHARES = ("loads", "gravity")
