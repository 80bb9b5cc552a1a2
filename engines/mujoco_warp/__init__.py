"""MuJoCo Warp: MuJoCo's port to NVIDIA Warp, in single precision; on the CPU without a GPU."""

from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="mujoco_warp",
    requires="mujoco_warp",
    extra="mujoco-warp",
    distribution="mujoco-warp",
    packages=frozenset({"mujoco", "mujoco_warp", "warp"}),
    lineage="MuJoCo",
    shares=("loads", "gravity"),
    simulating=frozenset({"as_is"}),
    single_precision=True,
    on_request={
        "as_is": "a port of MuJoCo, so not an independent code base; the first run on a CPU compiles for half a minute"
    },
    untried={"gradients": "gradients by the tape of Warp are not tried with loops"},
)
