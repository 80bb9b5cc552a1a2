"""Newton, from a model built through its API from the `Mechanism`; in single precision; on a GPU if available."""

from loopcheck.engines.contract import Engine, Variant

ENGINE = Engine(
    name="newton",
    requires="newton",
    extra="newton",
    distribution="newton",
    packages=frozenset({"newton", "warp"}),
    lineage="Newton",
    laws=("compensations",),
    single_precision=True,
    companions=("mujoco-warp>=3.17",),
    taken_apart="as_is_mujoco",
    variants={
        f"as_is_{name.lower()}": Variant(
            "as_is_mujoco",
            f"Efforts of Newton's own drives while they held the robot along the motion, stepped by {name}.",
        )
        for name in ("Kamino", "Steel")
    },
    simulating=frozenset({"as_is_kamino", "as_is_mujoco", "as_is_steel"}),
    on_request={
        "kkt_single": "single precision resolves less than the default routes, and Newton compiles for half a minute",
        **dict.fromkeys(
            ("as_is_kamino", "as_is_mujoco", "as_is_steel"),
            "Newton has no model format with drives; the model is built by loopcheck",
        ),
    },
    untried={"gradients": "gradients by the tape of Warp are not tried with loops"},
)
