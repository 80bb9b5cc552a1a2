"""Exudyn, as rigid bodies in redundant coordinates with joints between them, built from the `Mechanism`."""

from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="exudyn",
    requires="exudyn",
    extra="exudyn",
    distribution="exudyn",
    packages=frozenset({"exudyn"}),
    lineage="Exudyn",
    simulating=frozenset({"forward"}),
)
