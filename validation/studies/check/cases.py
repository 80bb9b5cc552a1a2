"""Cases of an MJCF that is not in the catalogue."""

from importlib import import_module
from pathlib import Path

from analytic.motion.configurations import with_configurations
from analytic.motion.laws import AUTOMATIC, RECORDED
from robots.errors import MechanismError, NotFoundError
from robots.mechanism import ModelFile
from robots.probe import want_readable
from robots.robot import DEFAULT, Case, MotionSpec, Robot, configurations, make_case, modes
from validation.execution.forkserver import worker_context
from validation.studies.preload import PRELOAD

NEEDED = "validation.studies.run.study"
"""What runs the cases."""


def cases_of_file(path: Path, *, mode: str | None = None, actuated: str = "", motion: Path | None = None) -> list[Case]:
    """The cases of an MJCF: one mode, all configurations.

    Args:
        path: The MJCF.
        mode: Keyframe to start from; by default the first, or qpos0 where there is none.
        actuated: Names of joints to put motors on, as J1,J2, instead of the file's actuators.
        motion: CSV with the motion of the actuated joints; by default one is made.

    Raises:
        NotFoundError: If the mode or a joint is unknown; the message lists the known ones.
        MechanismError: If the MJCF is bad.
    """
    joints = tuple(name.strip() for name in actuated.split(",") if name.strip())
    if actuated and not joints:
        raise MechanismError(f"{path.name}: actuated joints: want names, as J1,J2, got '{actuated}'")
    recorded = {} if motion is None else {"file": str(motion.absolute())}
    spec = MotionSpec(law=RECORDED if recorded else AUTOMATIC, parameters=recorded)
    robot = Robot(
        name=path.stem,
        folder=path.absolute().parent,  # a worker stands elsewhere
        title=path.name,
        mjcf=path.name,
        motion=spec,
        source=f"the file {path.name}",
        actuated=joints,
    )
    context = worker_context(PRELOAD)
    import_module(NEEDED)  # which takes as long as the imports of the process that reads it first
    want_readable(ModelFile(path=path), context)
    robot = with_configurations(robot)
    mechanism = robot.mechanism()
    known = modes(mechanism)
    if mode is not None and mode not in known:
        raise NotFoundError(f"mode of {path.name}", mode, known)
    return [
        make_case(robot, variant=DEFAULT, mode=mode or next(iter(known)), configuration=configuration)
        for configuration in configurations(robot, mechanism)
    ]
