"""Simbody, as OpenSim brings it: a multibody tree in joint coordinates with hard constraints on accelerations."""

from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="simbody",
    requires="opensim",
    extra="simbody",
    distribution="opensim",
    packages=frozenset({"opensim"}),
    lineage="Simbody",
    laws=("compensations",),
    simulating=frozenset({"as_is", "forward"}),
    on_request={"as_is": "loopcheck reads no model files of Simbody; the model is built by loopcheck"},
)
