"""Which of PhysX's numbers is the effort.

The force that PhysX says a joint passes on is what its drive did, in all parts of a step and with both solvers, less
what the rotor of the joint took: its inertia times the change of its velocity. It is not where a loop joins two links
of one articulation, whose force it leaves out. The drive's law at the end of the step is what acted only while nothing
changes the velocity after the drive: the small steps of the second solver do, and so does whatever draws many loops
together.
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
    """Which number is the effort.

    Args:
        tgs: With the solver of small steps.

    Raises:
        NotRepresentableError: If none is.
    """
    reasons = "; ".join(_lost(mechanism))
    if not reasons:
        has_rotors = any(mechanism.joints[drive.joints[0]].armature for drive in mechanism.drives)
        return Reading(effort=ON_JOINT, reason=TAKEN) if has_rotors else Reading(effort=REACTION, reason=PASSED_ON)
    if tgs:
        raise NotRepresentableError(f"physx/as_is_tgs: not supported: no reading gives the effort: {reasons}")
    return Reading(effort=APPLIED, reason=f"drive law at the end of the step, because {reasons}")


def _lost(mechanism: Mechanism) -> Iterator[str]:
    """What the force on a joint lacks."""
    branch_of = {b: k for k, branch in enumerate(branches(mechanism)) for b in branch}
    for closure in mechanism.rigid_closures:
        if WORLD not in (closure.body1, closure.body2) and branch_of[closure.body1] == branch_of[closure.body2]:
            yield (
                f"joint forces do not include the force of loop '{closure.name}' between 2 links of the same "
                "articulation"
            )
