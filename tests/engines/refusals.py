"""What routes cannot carry of the zoo and of our own mechanisms, by route and mechanism: what they must say of it."""

_TENDON = "pinocchio: armature of tendon 'both': its rotors are on single dofs"
_ROTORS = "pybullet: armature of tendon 'both'"
_FRAMES = "of coordinates: its constraints hold points and frames"

REFUSALS = {
    ("exudyn/forward", "floating_rotors"): "exudyn: tendon 'both'",
    ("exudyn/forward", "geared_pair"): "exudyn: equality 'cam'",
    ("exudyn/forward", "spinning_rod"): "exudyn: spring or damper of ball joint 'ball'",
    ("exudyn/forward", "strutted_four_bar"): "exudyn: slack of spring 'cable'",
    ("exudyn/forward", "tendon_hand"): "exudyn: equality 'rack'",
    ("pinocchio/forward", "floating_rotors"): _TENDON,
    ("pinocchio/forward", "geared_pair"): f"pinocchio: equality 'cam' {_FRAMES}",
    ("pinocchio/forward", "tendon_hand"): f"pinocchio: equality 'rack' {_FRAMES}",
    ("pinocchio/kkt", "floating_rotors"): _TENDON,
    ("pybullet/forward", "floating_rotors"): _ROTORS,
    ("pybullet/kkt", "floating_rotors"): _ROTORS,
}
