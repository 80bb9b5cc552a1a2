"""Which of PhysX's numbers is the effort.

The force that PhysX says a joint passes on is what its drive did, in all parts of a step and with both solvers. It is
not where a loop joins two links of one articulation, whose force it leaves out, nor of a joint with a rotor, which
takes a part of the drive. The drive's law at the end of the step is what acted only while nothing changes the velocity
after the drive: the small steps of the second solver do, and so does whatever draws many loops together.
"""

from collections.abc import Iterator

from engines.own_drives import APPLIED, REACTION, Reading
from engines.physx._support import branches
from robots.errors import NotRepresentableError
from robots.mechanism import WORLD, Mechanism

PASSED_ON = "the force that the joint passes on along its axis, which is what acted over the step"


def reading_of(mechanism: Mechanism, *, tgs: bool) -> Reading:
    """Which number is the effort.

    Args:
        mechanism: Robot.
        tgs: With the solver of small steps.

    Raises:
        NotRepresentableError: If none is.
    """
    reasons = "; ".join(_lost(mechanism))
    if not reasons:
        return Reading(effort=REACTION, reason=PASSED_ON)
    if tgs:
        raise NotRepresentableError(f"physx/as_is_tgs: no reading is the effort: {reasons}")
    return Reading(effort=APPLIED, reason=f"the law of the drive at the end of the step, as {reasons}")


def _lost(mechanism: Mechanism) -> Iterator[str]:
    """What the force on a joint lacks."""
    for j in mechanism.actuated_joints:
        if mechanism.joints[j].armature:
            yield f"the force on joint '{mechanism.joints[j].name}' lacks what its rotor takes"
    branch_of = {b: k for k, branch in enumerate(branches(mechanism)) for b in branch}
    for closure in mechanism.rigid_closures:
        if WORLD not in (closure.body1, closure.body2) and branch_of[closure.body1] == branch_of[closure.body2]:
            yield f"forces on joints lack that of loop '{closure.name}', which joins two links of one articulation"
