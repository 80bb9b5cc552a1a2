"""DART, from a skeleton built through its API from the `Mechanism`."""

from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="dart",
    requires="dartpy",
    extra="dart",
    distribution="dartpy",
    packages=frozenset({"dartpy"}),
    lineage="DART",
    laws=("compensations", "pull", "ball_spring"),
    simulating=frozenset({"as_is", "forward"}),
    on_request={"as_is": "DART has no model format with actuators; the model is built by loopcheck"},
)
