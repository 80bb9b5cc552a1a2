"""Reads many models, a result line each on stdout. Runs in a process that MuJoCo's parser may crash."""

import sys
from pathlib import Path

import numpy as np

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism


def main(paths: list[str]) -> None:
    """Print `read`, `refused` or the fault of the answer, for each of the models."""
    for path in paths:
        try:
            mechanism = read_mechanism(ModelFile(path=Path(path)))
            answer = "read" if _is_finite(mechanism) else "not finite"
        except HarnessError as error:
            answer = "refused" if str(error).startswith(path) and "\n" not in str(error) else f"unclear: {error!r}"
        except Exception as error:  # what a user would see as a traceback
            answer = f"traceback: {error!r}"
        sys.stdout.write(f"{path}: {answer}\n")
        sys.stdout.flush()


def _is_finite(mechanism: Mechanism) -> bool:
    numbers = [body.mass for body in mechanism.bodies]
    for joint in mechanism.joints:
        numbers += [joint.armature, joint.damping, joint.stiffness]
    numbers += [actuator.gear for actuator in mechanism.actuators]
    return bool(np.isfinite(numbers).all())


if __name__ == "__main__":
    main(sys.argv[1:])
