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
)
