"""What DART cannot carry as it gives itself to Python: refused by name, all of it at once."""

from collections.abc import Iterator

from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism


def want_representable(mechanism: Mechanism) -> None:
    """Refuse a mechanism that would lose something.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    reasons = (*_coupled(mechanism), *_rotors(mechanism))
    if reasons:
        raise NotRepresentableError(f"dart: not supported: {'; '.join(reasons)}")


def _coupled(mechanism: Mechanism) -> Iterator[str]:
    """What acts on the coordinates of several joints."""
    for closure in mechanism.coordinate_closures:
        yield f"equality '{closure.name}' (couplers cannot be set from Python)"
    driven = [drive for drive in mechanism.drives if not drive.is_joint]
    loaded = [tendon for tendon in mechanism.tendons if tendon.armature or tendon.damping or tendon.stiffness]
    names = [drive.name for drive in driven] + [tendon.name for tendon in loaded]
    for name in dict.fromkeys(names):
        yield f"tendon '{name}' (motors, springs and rotors only on single joints)"


def _rotors(mechanism: Mechanism) -> Iterator[str]:
    """Inertia of rotors: of what a motion prescribes it is known what a rotor takes, of what follows it is not."""
    driven = mechanism.actuated_joints
    for j, joint in enumerate(mechanism.joints):
        if joint.armature and j not in driven:
            yield f"armature of the unactuated {joint.kind} joint '{joint.name}' (joints have no rotors)"
