"""MJX: MuJoCo's port to JAX, which runs on GPUs; here on the CPU, in double and in single precision."""

REQUIRES = "mujoco.mjx"
DISTRIBUTION = "mujoco-mjx"
EXTRA = "mjx"
LINEAGE = "MuJoCo"
ON_REQUEST = "as a port of MuJoCo it is no vote of its own, and to compile it takes some 10 to 30 s a robot"
SHARES = ("loads", "gravity")
