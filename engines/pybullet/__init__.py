"""PyBullet (Bullet's multibody), from a URDF generated from the `Mechanism`."""

from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="pybullet",
    requires="pybullet",
    extra="pybullet",
    distribution="pybullet",
    packages=frozenset({"pybullet"}),
    lineage="Bullet",
    laws=("compensations", "pull", "ball_spring", "joint_spring"),
    simulating=frozenset({"as_is", "forward"}),
    unstated={"<3.2.7": ("numpy<2", "pyarrow<20")},  # later ones of pyarrow refuse that numpy
)
