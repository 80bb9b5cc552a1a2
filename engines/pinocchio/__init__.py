"""Pinocchio, from a tree built through its API from the `Mechanism`."""

from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="pinocchio",
    requires="pinocchio",
    extra="pinocchio",
    distribution="pin",
    packages=frozenset({"pinocchio"}),
    lineage="Pinocchio",
    laws=("compensations", "pull", "ball_spring", "joint_spring"),
    on_request={"lcaba": "another algorithm on the model of pinocchio/kkt, so not an independent code base"},
    simulating=frozenset({"forward"}),
    unstated={
        ">=2.6.18,<2.6.19": ("cmeel-boost<1.83",),
        ">=3.4,<4": ("cmeel-urdfdom<5", "cmeel-tinyxml2<11"),  # shared libraries of the release date
    },
)
