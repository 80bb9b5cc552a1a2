"""PhysX as its user runs it, by both of its solvers: the drives of its joints, without friction."""

from loopcheck.engines.as_is import finite
from loopcheck.engines.boundary import silenced
from loopcheck.engines.own_drives import Gains, driven_by_own_drives
from loopcheck.engines.physx._articulation import Built, Stepping, build, guarded, physx
from loopcheck.engines.physx._readings import reading_of
from loopcheck.engines.physx._stepping import PhysxDriven
from loopcheck.engines.physx._support import want_carried
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

OWN = Stepping(tgs=False)
"""The settings of the route."""


class PhysxAsIs(Source):
    """Efforts by PhysX's joint forces while its drives move the robot, by projected Gauss-Seidel."""

    name = "physx/as_is"

    def __init__(self, stepping: Stepping = OWN) -> None:
        """By projected Gauss-Seidel, with other settings, or by the solver of small steps, TGS."""
        self.stepping = stepping
        self.name = "physx/as_is_tgs" if stepping.tgs else "physx/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism, stepping = case.mechanism, self.stepping
        want_carried(mechanism)
        reading = reading_of(mechanism, tgs=stepping.tgs)
        with finite(self.name):
            gains = Gains.of_velocity(mechanism, motion, stepping.step)

        def start(k: int) -> tuple[PhysxDriven, Gains]:
            return PhysxDriven.from_state(mechanism, stepping, gains, (motion.q[k], motion.qd[k])), gains

        with guarded(self.name), silenced():
            settings = _settings(build(mechanism, stepping))
            return driven_by_own_drives(self.name, case, motion, start, reading, settings)


TGS = PhysxAsIs(Stepping(tgs=True))
"""The route `as_is_tgs`, as users of Isaac run PhysX."""


def _settings(built: Built) -> dict[str, str]:
    """Every setting that matters, as PhysX has it."""
    part, config = built.articulations[0], built.scene.physx_system.config
    iterations = part.get_solver_position_iterations(), part.get_solver_velocity_iterations()
    friction = " and ".join(sorted({f"{joint.friction:g}" for joint in built.joints.values()}))
    is_set = built.stepping.friction is not None
    return {
        "solver": f"{'TGS' if config.enable_tgs else 'PGS'}, {iterations[0]} position and {iterations[1]} velocity "
        "iterations",
        "PhysX": physx.version(),
        "precision": "single, on CPU",
        "friction": f"{friction} of every joint, {'set after building' if is_set else 'as PhysX fills it in'}",
        "loops": "create_drive with limits 0, 0; each branch is a separate articulation",
        "damping": "of links 0",
    }
