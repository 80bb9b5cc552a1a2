"""Genesis, from the user's own file through its loader of MJCF; in double precision; on a GPU if available."""

from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="genesis",
    requires="genesis",
    extra="",
    distribution="genesis-world",
    packages=frozenset({"genesis", "torch"}),
    lineage="MuJoCo",
    shares=("loads", "gravity"),
    simulating=frozenset({"as_is"}),
    tells_terms=False,
    companions=("torch>=2.6",),
    without_wheels=("pygltflib",),
    on_request={"as_is": "Genesis needs 8 GB of disk space and compiles for 1 to 2 minutes per robot"},
    untried={"gradients": "gradients of its simulation (requires_grad) are not tried with loops"},
)
