"""PhysX on the CPU through SAPIEN, from an articulation built from the `Mechanism`; single precision only."""

from loopcheck.engines.contract import Engine, Variant

ENGINE = Engine(
    name="physx",
    requires="sapien",
    extra="physx",
    distribution="sapien",
    packages=frozenset({"sapien"}),
    lineage="PhysX",
    laws=("compensations",),
    shares=("geometry", "inertia", "gears", "springs", "dampers", "rotors", "gravity"),
    variants={
        "as_is_tgs": Variant(
            "as_is",
            "Efforts that PhysX says its joints passed on while its drives moved the robot, by its solver of small "
            "steps.",
        )
    },
    simulating=frozenset({"as_is", "as_is_tgs"}),
    single_precision=True,
    tells_terms=False,
    on_request=dict.fromkeys(
        ("as_is", "as_is_tgs"),
        "single precision, and PhysX has no model format with drives; the model is built by loopcheck",
    ),
)
