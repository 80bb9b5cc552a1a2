"""Drake's `MultibodyPlant`, built through its API from the `Mechanism`."""

from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="drake",
    requires="pydrake",
    extra="drake",
    distribution="drake",
    packages=frozenset({"pydrake"}),
    lineage="Drake",
    laws=("compensations",),
    simulating=frozenset({"as_is", "forward"}),
    on_request={"as_is": "loopcheck reads no model files of Drake; the model is built by loopcheck"},
)
