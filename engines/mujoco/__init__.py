"""MuJoCo, from the MJCF itself."""

from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="mujoco",
    requires="mujoco",
    extra="mujoco",
    distribution="mujoco",
    packages=frozenset({"mujoco"}),
    lineage="MuJoCo",
    shares=("loads", "gravity"),
    simulating=frozenset({"as_is", "forward"}),
)
