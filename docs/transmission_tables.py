"""Compute the figures of all published transmissions: `python -m docs.transmission_tables [NAME ...]`.

Writes `docs/transmissions/figures.csv`: the rows of `loopcheck serial NAME`, and the error of the derived serial model
with its transmission in closed form against the closed mechanism, along random motions.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from docs.kept_tables import ROOT
from loopcheck.analytic.transmission.bounds import Domain
from loopcheck.analytic.transmission.joint_space import joint_efforts, moved
from loopcheck.analytic.transmission.limits import Box
from loopcheck.analytic.transmission.recognition import crank_rod_of
from loopcheck.analytic.transmission.terms import joint_terms, motor_efforts
from loopcheck.analytic.transmission.twin import Twin, make_twin, sound_poses
from loopcheck.robots.catalogue import transmission_names
from loopcheck.robots.transmission import load_transmission
from loopcheck.validation.comparison.targets import case_of, passive_case_of
from loopcheck.validation.studies.serial.comparison import random_course
from loopcheck.validation.studies.serial.making import write_closed, write_stand_in
from loopcheck.validation.studies.serial.rows import Row
from loopcheck.validation.studies.serial.transmission_rows import found_rows

FILE = ROOT / "docs" / "transmissions" / "figures.csv"
MOTIONS, EACH = 100, 5
"""Random motions, and the distance of their samples that are compared."""
COMMON = {1: 1.0, 2: 2.0, 3: 1.0}
"""Armature factor of most public configurations by the number of joints, where a file names none [-]."""


def main() -> None:
    """Compute the transmissions named on the command line, by default all, and keep the rows of the others."""
    names = sys.argv[1:] or transmission_names()
    with ProcessPoolExecutor(2) as pool:
        rows = [row for found in pool.map(figures, names) for row in found]
    others = pd.read_csv(FILE) if FILE.is_file() else pd.DataFrame({"transmission": []})
    kept = others[~others["transmission"].isin(names) & others["transmission"].isin(transmission_names())]
    table = pd.concat([kept, pd.DataFrame(rows)], ignore_index=True)
    FILE.parent.mkdir(exist_ok=True)
    table.sort_values("transmission", kind="stable").to_csv(FILE, index=False, float_format="%.6g", lineterminator="\n")


def figures(name: str) -> list[Row]:
    """Rows of a transmission."""
    transmission, (twin, domain) = load_transmission(name), _seen(name)
    speeds = np.array([transmission.speed_limits.get(motor, np.inf) for motor in twin.motor_names])
    n = len(transmission.joint)
    turning = all(leg.kind == "hinge" for leg in transmission.leg)
    usual = transmission.usual_factor or ((COMMON[n],) * n if turning else ())
    rows = found_rows(twin, domain, Box(low=-speeds, high=speeds), usual)
    if isinstance(rows, str):
        raise SystemExit(f"{name}: {rows}")
    return [{"transmission": name, **row} for row in (*rows, *_errors(twin, domain))]


def domain_of(name: str) -> Domain:
    """A published transmission and its poses."""
    return _seen(name)[1]


def _seen(name: str) -> tuple[Twin, Domain]:
    """A closed mechanism beside its derived serial model, and the transmission that completes that model."""
    with TemporaryDirectory() as folder:
        transmission, closed = write_closed(name, Path(folder))
        case = case_of(closed)
        made = write_stand_in(case, transmission.joint_names, (), Path(folder))
        serial = passive_case_of(made.path)
        twin = make_twin(case.mechanism, case.guess, serial.mechanism, serial.guess, {})
    own = crank_rod_of(twin.closed, twin.motors, made.carried)
    return twin, Domain(transmission=own, low=twin.ranges[:, 0], high=twin.ranges[:, 1])


def _errors(twin: Twin, domain: Domain) -> Iterator[Row]:
    """Error of the motors' efforts of the serial model with `transmission.py`, over their peak."""
    box = domain.inner_box()
    courses = [random_course(box, seed) for seed in range(MOTIONS)]
    x, xd, xdd = (np.concatenate([course[k][::EACH] for course in courses]) for k in range(3))
    efforts = []
    for space in (twin.closed, twin.serial):
        q, sound = sound_poses(space, x)
        x, xd, xdd, q = x[sound], xd[sound], xdd[sound], q[sound]
        efforts.append((sound, joint_efforts(space, q, *moved(space, q, xd, xdd)), q))
    (_, closed, q), (still, serial, _) = efforts
    T = joint_terms(twin.closed, q[still]).transmission[:, list(twin.motors)]
    wanted = motor_efforts(T, closed[still])
    error = domain.transmission.motor_state(x, xd, xdd, serial).efforts - wanted
    for k, (motor, unit) in enumerate(zip(twin.motor_names, twin.closed.mechanism.actuator_units, strict=False)):
        peak = np.abs(wanted[:, k]).max()
        rms, most = np.sqrt(np.mean(error[:, k] ** 2)) / peak, np.abs(error[:, k]).max() / peak
        empty = dict.fromkeys(("at_zero", "low", "bound"), np.nan)
        row = {"quantity": "error of the serial model with the transmission", "part": motor, "unit": f"peak {unit}"}
        yield {**row, **empty, "median": rms, "high": most, "note": f"{len(x)} samples of {MOTIONS} random motions"}


if __name__ == "__main__":
    main()
