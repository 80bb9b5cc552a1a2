"""What routes cannot carry of the zoo and of our own mechanisms, by route and mechanism: what they must say of it."""

_TENDON = "pinocchio: armature of tendon 'both': its rotors are on single dofs"
_ROTORS = "pybullet: armature of tendon 'both'"
_WHEELS = "simbody: armature of free joint 'base'.*; armature of ball joint 'neck'"
_BALL = "simbody: spring or damper of ball joint 'ball'"
_ROTOR = "dart: armature of hinge joint 'right2', which nothing drives"
_DART_ROTORS = "dart: tendon 'both'.*; armature of free joint 'base'.*; armature of ball joint 'neck'"
_DART_TENDONS = "dart: equality 'rack'.*; tendon 'pull'.*; tendon 'elastic'"
_DRAKE = {
    "floating_rotors": "drake: tendon 'both'.*; armature of free joint 'base'.*; armature of ball joint 'neck'",
    "geared_pair": "drake: equality 'cam'",
    "spinning_rod": "drake: spring of ball joint 'ball'",
    "strutted_four_bar": "drake: slack of spring 'cable'",
    "tendon_hand": "drake: equality 'rack'.*; tendon 'pull'.*; tendon 'elastic'",
}
_NEWTON = {
    "floating_rotors": "newton: rotor, damper or spring of free joint 'base'.*; tendon 'both'",
    "geared_pair": "newton: equality 'cam'",
    "pendulum_tree": "newton: body 'b' with a hinge before a slide",
    "strutted_four_bar": "newton: spring 'strut'.*; spring 'cable'",
    "to_world": "newton: body 'b' with a hinge before a slide",
    "tendon_hand": "newton: equality 'rack'.*; tendon 'pull'.*; tendon 'elastic'",
    "spatial": "newton: body 'frame' without mass.*; hinges of body 'coupler' through different points",
}
_FRAMES = "of coordinates: its constraints hold points and frames"

REFUSALS = {
    **{(f"dart/{route}", "five_bar"): _ROTOR for route in ("kkt", "forward")},
    **{(f"dart/{route}", "floating_rotors"): _DART_ROTORS for route in ("kkt", "forward")},
    **{(f"dart/{route}", "geared_pair"): "dart: equality 'cam'" for route in ("kkt", "forward")},
    **{(f"dart/{route}", "tendon_hand"): _DART_TENDONS for route in ("kkt", "forward")},
    **{(f"drake/{route}", name): says for route in ("kkt", "forward") for name, says in _DRAKE.items()},
    ("exudyn/forward", "floating_rotors"): "exudyn: tendon 'both'",
    ("exudyn/forward", "geared_pair"): "exudyn: equality 'cam'",
    ("exudyn/forward", "spinning_rod"): "exudyn: spring or damper of ball joint 'ball'",
    ("exudyn/forward", "strutted_four_bar"): "exudyn: slack of spring 'cable'",
    ("exudyn/forward", "tendon_hand"): "exudyn: equality 'rack'",
    **{("newton/kkt_single", name): says for name, says in _NEWTON.items()},
    ("pinocchio/forward", "floating_rotors"): _TENDON,
    ("pinocchio/forward", "geared_pair"): f"pinocchio: equality 'cam' {_FRAMES}",
    ("pinocchio/forward", "tendon_hand"): f"pinocchio: equality 'rack' {_FRAMES}",
    ("pinocchio/kkt", "floating_rotors"): _TENDON,
    ("pybullet/forward", "floating_rotors"): _ROTORS,
    ("pybullet/kkt", "floating_rotors"): _ROTORS,
    **{(f"simbody/{route}", "floating_rotors"): _WHEELS for route in ("kkt", "forward")},
    **{(f"simbody/{route}", "spinning_rod"): _BALL for route in ("kkt", "forward")},
}
