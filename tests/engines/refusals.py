"""Refusals of test mechanisms, by route and mechanism, with the required message."""

_TENDON = "pinocchio: not supported: armature of tendon 'both' .rotors only on single degrees of freedom"
_ROTORS = "pybullet: not supported: armature of tendon 'both'"
_WHEELS = "simbody: not supported: armature of .*free joint 'base'.*; armature of .*ball joint 'neck'"
_BALL = "simbody: not supported: spring or damper of ball joint 'ball'"
_ROTOR = "dart: not supported: armature of the unactuated hinge joint 'right2'"
_DART_ROTORS = (
    "dart: not supported: tendon 'both'.*; armature of .*free joint 'base'.*; armature of .*ball joint 'neck'"
)
_DART_TENDONS = "dart: not supported: equality 'rack'.*; tendon 'pull'.*; tendon 'elastic'"
_DRAKE = {
    "floating_rotors": (
        "drake: not supported: tendon 'both'.*; armature of .*free joint 'base'.*; armature of .*ball joint 'neck'"
    ),
    "geared_pair": "drake: not supported: equality 'cam'",
    "spinning_rod": "drake: not supported: spring of ball joint 'ball'",
    "strutted_four_bar": "drake: not supported: slack of spring 'cable'",
    "tendon_hand": "drake: not supported: equality 'rack'.*; tendon 'pull'.*; tendon 'elastic'",
}
_NEWTON = {
    "floating_rotors": "newton: not supported: rotor, damper or spring of free joint 'base'.*; tendon 'both'",
    "geared_pair": "newton: not supported: equality 'cam'",
    "pendulum_tree": "newton: not supported: body 'b' with a hinge before a slide",
    "strutted_four_bar": "newton: not supported: spring 'strut'.*; spring 'cable'",
    "to_world": "newton: not supported: body 'b' with a hinge before a slide",
    "tendon_hand": "newton: not supported: equality 'rack'.*; tendon 'pull'.*; tendon 'elastic'",
    "spatial": "newton: not supported: body 'frame' without mass.*; hinges of body 'coupler' through different points",
}
_FRAMES = "of coordinates .constraints only on points and frames"

REFUSALS = {
    **{(f"dart/{route}", "five_bar"): _ROTOR for route in ("kkt", "forward")},
    **{(f"dart/{route}", "floating_rotors"): _DART_ROTORS for route in ("kkt", "forward")},
    **{(f"dart/{route}", "geared_pair"): "dart: not supported: equality 'cam'" for route in ("kkt", "forward")},
    **{(f"dart/{route}", "tendon_hand"): _DART_TENDONS for route in ("kkt", "forward")},
    **{(f"drake/{route}", name): says for route in ("kkt", "forward") for name, says in _DRAKE.items()},
    ("exudyn/forward", "floating_rotors"): "exudyn: not supported: tendon 'both'",
    ("exudyn/forward", "geared_pair"): "exudyn: not supported: equality 'cam'",
    ("exudyn/forward", "spinning_rod"): "exudyn: not supported: spring or damper of ball joint 'ball'",
    ("exudyn/forward", "strutted_four_bar"): "exudyn: not supported: slack of spring 'cable'",
    ("exudyn/forward", "tendon_hand"): "exudyn: not supported: equality 'rack'",
    **{("newton/kkt_single", name): says for name, says in _NEWTON.items()},
    ("pinocchio/forward", "floating_rotors"): _TENDON,
    ("pinocchio/forward", "geared_pair"): f"pinocchio: not supported: equality 'cam' {_FRAMES}",
    ("pinocchio/forward", "tendon_hand"): f"pinocchio: not supported: equality 'rack' {_FRAMES}",
    ("pinocchio/kkt", "floating_rotors"): _TENDON,
    ("pinocchio/lcaba", "floating_rotors"): _TENDON,
    ("pinocchio/lcaba", "geared_pair"): f"pinocchio: not supported: equality 'cam' {_FRAMES}",
    ("pinocchio/lcaba", "tendon_hand"): f"pinocchio: not supported: equality 'rack' {_FRAMES}",
    ("pybullet/forward", "floating_rotors"): _ROTORS,
    ("pybullet/kkt", "floating_rotors"): _ROTORS,
    **{(f"simbody/{route}", "floating_rotors"): _WHEELS for route in ("kkt", "forward")},
    **{(f"simbody/{route}", "spinning_rod"): _BALL for route in ("kkt", "forward")},
}
