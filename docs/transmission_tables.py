"""Compute the figures of all published transmissions: `python -m docs.transmission_tables [NAME ...]`.

Writes `docs/transmissions/figures.csv`: the rows of `loopcheck serial NAME`, the error of the derived serial model with
its transmission in closed form against the closed mechanism along random motions, and the errors with the constants of
each format: `median` is the mean over motors and random motions, `high` the largest over motors and stated motions.
"""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from docs.kept_tables import ROOT
from loopcheck.analytic.transmission.bounds import Domain
from loopcheck.analytic.transmission.fit import sound_box
from loopcheck.analytic.transmission.joint_space import joint_efforts, moved
from loopcheck.analytic.transmission.limits import Box
from loopcheck.analytic.transmission.motions import (
    STATED,
    choosing_motions,
    efforts_along,
    fitting_motions,
    largest_error,
    mean_error,
    random_course,
    stated_motions,
)
from loopcheck.analytic.transmission.recognition import crank_rod_of
from loopcheck.analytic.transmission.terms import joint_terms, motor_efforts
from loopcheck.analytic.transmission.twin import Twin, make_twin, sound_poses
from loopcheck.robots.catalogue import transmission_names
from loopcheck.robots.transmission import LIGHT, load_transmission, without_stand_ins
from loopcheck.validation.common.targets import case_of, passive_case_of
from loopcheck.validation.serial.making import write_closed, write_stand_in
from loopcheck.validation.serial.rows.rows import ARMATURE, CONSTANT, OF_URDF, PLAIN, Row
from loopcheck.validation.serial.rows.transmission_rows import ROUND_OFF, found_rows
from loopcheck.validation.serial.writing import Motions, Repairs, models_of

FILE = ROOT / "docs" / "transmissions" / "figures.csv"
MOTIONS, EACH = 100, 5
"""Random motions, and the distance of their samples that are compared."""


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
    with TemporaryDirectory() as folder:
        return list(_rows(name, Path(folder)))


def _rows(name: str, folder: Path) -> Iterator[Row]:
    transmission, (twin, domain) = load_transmission(name), _seen(name, folder)
    speeds = np.array([transmission.speed_limits.get(motor, np.inf) for motor in twin.motor_names])
    rows = found_rows(twin, domain, Box(low=-speeds, high=speeds), transmission.public_factor)
    if isinstance(rows, str):
        raise SystemExit(f"{name}: {rows}")
    effects = _effects(twin, domain, transmission.public_armature, folder)
    for row in (*rows, *_errors(twin, domain), *effects):
        yield {"transmission": name, **row}


def domain_of(name: str) -> Domain:
    """A published transmission and its poses."""
    with TemporaryDirectory() as folder:
        return _seen(name, Path(folder))[1]


def _seen(name: str, folder: Path) -> tuple[Twin, Domain]:
    """A closed mechanism beside its derived serial model, and the transmission that completes that model."""
    transmission, closed_file = write_closed(name, folder)
    case = case_of(closed_file)
    made = write_stand_in(case, transmission.joint_names, (), folder)
    other = passive_case_of(made.path)
    twin = make_twin(case.mechanism, case.guess, other.mechanism, other.guess, {})
    closed, serial = (
        replace(space, mechanism=without_stand_ins(space.mechanism)) for space in (twin.closed, twin.serial)
    )
    twin = replace(twin, closed=closed, serial=serial)
    own = crank_rod_of(twin.closed, twin.motors, {b: mass for b, mass in made.carried.items() if mass > LIGHT})
    return twin, Domain(transmission=own, low=twin.ranges[:, 0], high=twin.ranges[:, 1])


def _effects(twin: Twin, domain: Domain, public: Sequence[float], folder: Path) -> Iterator[Row]:
    """Errors of the serial model with the constants of each format along the stated motions: mean and largest."""
    box = sound_box(twin, domain.inner_box())
    stated, choice, fit = (
        [efforts_along(side, motion, course) for motion, side, course in make(twin, box)]
        for make in (stated_motions, choosing_motions, fitting_motions)
    )
    motions = Motions(stated=stated, choice=choice, fit=fit)
    repairs = Repairs(twin=twin, box=box, motions=motions, limits=None, closures=(), folder=folder / "repaired")
    settings, repaired, urdf = written = repairs.written()
    kinds = {ARMATURE: settings.kinds, CONSTANT: repaired.kinds, OF_URDF: urdf.kinds}
    models = {PLAIN: twin.serial.mechanism, **models_of(twin, written, stated, public)}
    empty = dict.fromkeys(("at_zero", "low", "bound"), np.nan)
    for way, model in models.items():
        mean, largest = mean_error(stated[:STATED], model), largest_error(stated, model)
        note = ", ".join(kinds.get(way, ()))
        row = {"quantity": f"effort error, {way}", "part": "motors", "unit": "-", **empty, "note": note}
        yield {**row, "median": mean if mean > ROUND_OFF else 0.0, "high": largest if largest > ROUND_OFF else 0.0}


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
