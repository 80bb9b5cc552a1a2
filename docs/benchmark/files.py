"""Write the files of the benchmark, or score efforts: `python -m docs.benchmark.files write|score FOLDER [ROBOT FILE]`.

`write FOLDER` writes for each robot the model, external loads, the motion of its drives, gravity and a pose near the
first sample, and the efforts that the motion requires. `score FOLDER ROBOT FILE` prints the error of a CSV file with
efforts.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile

import numpy as np

from loopcheck.analytic.batch import inverse_dynamics
from loopcheck.analytic.batch.plain import plain_efforts
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import Case, load, representative_case

ROBOTS = ("3prr", "6spu", "6x6r")
SAMPLES = 25_600
CHUNK = 1000
"""Samples whose efforts are computed at once."""


def problem(name: str) -> tuple[Case, Drive, JointPositions]:
    """Case, motion of the drives [m or rad, per s, per s²], each of shape (SAMPLES, drives), and a first guess."""
    case = representative_case(load(name))
    motion = prescribe(case)
    return case, motion.law(_times(motion.t)), motion.q[0]


def _times(t: Array) -> Array:
    return np.linspace(t[0], t[-1], SAMPLES)


def oracle(case: Case, drive: Drive, guess: JointPositions) -> Array:
    """Efforts by the natural orthogonal complement, at poses closed by the batch [N or N m], shape (SAMPLES, na)."""
    q = inverse_dynamics(case.mechanism, drive, guess).q
    parts = np.split(np.arange(SAMPLES), range(CHUNK, SAMPLES, CHUNK))
    given = (Drive(*(x[part] for x in drive)) for part in parts)
    return np.concatenate(
        [plain_efforts(case.mechanism, q[part], at, part) for part, at in zip(parts, given, strict=True)]
    )


def error(effort: Array, exact: Array) -> float:
    """Largest error of an effort relative to the peak of its actuator [-].

    Args:
        effort: Efforts [N or N m], shape (nt, na).
        exact: Those of the oracle [N or N m], shape (nt, na).
    """
    return float((np.abs(effort - exact) / np.abs(exact).max(axis=0)).max())


def write(folder: Path) -> Iterator[str]:
    """Write all files, and return a line for each robot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ROBOTS:
        case, drive, guess = problem(name)
        mechanism, t = case.mechanism, _times(prescribe(case).t)
        copyfile(mechanism.model.path, folder / f"{name}.xml")
        drives = [drive.name for drive in mechanism.drives]
        header = ["t", *(f"{joint}.{column}" for column in Drive._fields for joint in drives)]
        _save(folder / f"{name}.motion.csv", header, np.column_stack([t, *drive]))
        axes = [f"gravity.{axis}" for axis in "xyz"]
        start = np.concatenate([mechanism.gravity + 0.0, guess])[None]  # no -0
        _save(folder / f"{name}.start.csv", [*axes, *(joint.name for joint in mechanism.joints)], start)
        axes = [f"{part}.{axis}" for part in ("point", "moment", "force") for axis in "xyz"]
        for wrench in mechanism.wrenches:
            row = np.concatenate([wrench.point, wrench.moment, wrench.force])[None]
            _save(folder / f"{name}.load.{mechanism.bodies[wrench.body].name}.csv", axes, row)
        effort = oracle(case, drive, guess)
        _save(folder / f"{name}.efforts.csv", [actuator.name for actuator in mechanism.actuators], effort)
        yield f"{name}: {SAMPLES} samples, efforts of {', '.join(drives)}"


def _save(path: Path, header: list[str], rows: Array) -> None:
    np.savetxt(path, rows, fmt="%.17g", delimiter=",", header=",".join(header), comments="")


def score(folder: Path, robot: str, file: Path) -> str:
    """Error of a file of efforts."""
    effort, exact = (np.loadtxt(path, delimiter=",", skiprows=1) for path in (file, folder / f"{robot}.efforts.csv"))
    if effort.shape != exact.shape:
        return f"{file}: shape must be {exact.shape}, got {effort.shape}"
    return f"{robot}: largest error {error(effort, exact):.2g} of the peak of its actuator"


def main(arguments: list[str]) -> int:
    """Exit status."""
    match arguments:
        case ["write", folder]:
            lines = write(Path(folder))
        case ["score", folder, robot, file]:
            lines = iter([score(Path(folder), robot, Path(file))])
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    for line in lines:
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
