"""PhysX's reading of the effort.

The force passed on by a joint, in PhysX's reading, is its drive's effort, in all parts of a step and with both solvers,
less the torque of the joint's rotor: its inertia times the change of its velocity. This fails for a loop between two
links of the same articulation: the reading leaves its force out. The drive's law at the end of the step equals the
acting effort only if no other impulse follows the drive: the small steps of the second solver violate this, and so does
the simultaneous correction of many loops.
"""

from collections.abc import Iterator

from loopcheck.engines.own_drives import APPLIED, REACTION, Reading
from loopcheck.engines.physx._support import branches
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import WORLD, Mechanism

ON_JOINT = "joint"
"""Reading: the reaction of a joint along its axis, plus the effort that accelerates its rotor over the step."""
PASSED_ON = "joint force along the axis, equal to the effort applied over the step"
TAKEN = "joint force along the axis, plus the effort that accelerates the rotor over the step"


def reading_of(mechanism: Mechanism, *, tgs: bool) -> Reading:
    """The reading that is the effort.

    Args:
        tgs: With the solver of small steps.

    Raises:
        NotRepresentableError: If no reading is.
    """
    reasons = "; ".join(_lost(mechanism))
    if not reasons:
        has_rotors = any(mechanism.joints[drive.joints[0]].armature for drive in mechanism.drives)
        return Reading(effort=ON_JOINT, reason=TAKEN) if has_rotors else Reading(effort=REACTION, reason=PASSED_ON)
    if tgs:
        raise NotRepresentableError(f"physx/as_is_tgs: not supported: no reading gives the effort: {reasons}")
    return Reading(effort=APPLIED, reason=f"drive law at the end of the step, because {reasons}")


def _lost(mechanism: Mechanism) -> Iterator[str]:
    """Missing parts of the force on a joint."""
    branch_of = {b: k for k, branch in enumerate(branches(mechanism)) for b in branch}
    for closure in mechanism.rigid_closures:
        if WORLD not in (closure.body1, closure.body2) and branch_of[closure.body1] == branch_of[closure.body2]:
            yield (
                f"joint forces do not include the force of loop '{closure.name}' between 2 links of the same "
                "articulation"
            )
