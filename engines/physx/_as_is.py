"""PhysX as its user steps it, driven along a motion by the drives of its joints."""

from loopcheck.engines.as_is import finite
from loopcheck.engines.boundary import silenced
from loopcheck.engines.own_drives import Gains, driven_by_own_drives
from loopcheck.engines.physx._articulation import Built, Stepping, build, guarded
from loopcheck.engines.physx._readings import reading_of
from loopcheck.engines.physx._sapien import physx
from loopcheck.engines.physx._stepping import PhysxDriven
from loopcheck.engines.physx._support import want_carried
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


def efforts(source: str, case: Case, motion: Motion, stepping: Stepping) -> EffortHistory:
    """Result of a route.

    Args:
        stepping: Settings of the stepping.

    Raises:
        NotRepresentableError: If PhysX cannot represent the robot, or has no reading of its efforts.
        EngineError: If PhysX fails.
    """
    mechanism = case.mechanism
    want_carried(mechanism)
    reading = reading_of(mechanism, tgs=stepping.tgs)
    with finite(source):
        gains = Gains.of_velocity(mechanism, motion, stepping.step)

    def start(k: int) -> tuple[PhysxDriven, Gains]:
        return PhysxDriven.from_state(mechanism, stepping, gains, (motion.q[k], motion.qd[k])), gains

    with guarded(source), silenced():
        settings = _settings(build(mechanism, stepping))
        return driven_by_own_drives(source, case, motion, start, reading, settings)


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
