"""MJX: MuJoCo's port to JAX, which runs on GPUs; here on the CPU, in double and in single precision."""

from loopcheck.engines.contract import Engine, Variant

ENGINE = Engine(
    name="mjx",
    requires="mujoco.mjx",
    extra="mjx",
    distribution="mujoco-mjx",
    packages=frozenset({"jax", "mujoco"}),
    lineage="MuJoCo",
    shares=("loads", "gravity"),
    variants={
        "as_is_single": Variant(
            "as_is",
            "Efforts that acted, in single precision, while a controller moved the robot through the actuators of its "
            "file.",
        ),
        "forward_single": Variant(
            "forward",
            "Efforts from a simulation of the closed loop in single precision, extrapolated to rigid constraints.",
        ),
        "kkt_single": Variant(
            "kkt",
            "Efforts from MJX's matrices in single precision, projected on the motions that keep its loops closed.",
        ),
    },
    simulating=frozenset({"as_is", "as_is_single", "forward", "forward_single"}),
    on_request=dict.fromkeys(
        ("as_is", "as_is_single", "forward", "forward_single", "kkt", "kkt_single"),
        "a port of MuJoCo, so not an independent code base; compiling takes 10 to 30 s per robot",
    ),
)
