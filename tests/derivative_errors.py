"""Errors of derivatives against 50-digit differences, on the catalogue and on random closed chains, as a table.

python -m tests.derivative_errors            # all robots and 100 chains: takes minutes
python -m tests.derivative_errors 3prr       # some robots
python -m tests.derivative_errors --chains 5 # the first chains
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tabulate import tabulate

from loopcheck.analytic.batch import inverse_dynamics
from loopcheck.analytic.batch.trace import trace
from loopcheck.analytic.kinematics.closures import closure_jacobian_at
from loopcheck.analytic.kinematics.continuation import conditioning
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array, PositionSeries
from loopcheck.robots.catalogue import names
from loopcheck.robots.errors import MechanismError, SingularityError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import MotionSpec, Robot, load, make_case, representative_case
from tests import closed_chains
from tests.closed_chains import states
from tests.fifty_digits import at_rounded_state, slopes

BLOCKS = ("q", "qd", "qdd")
WELL = 0.03
"""Ratio of singular values of the passive closure Jacobian above which errors have a common bound [-]."""
SMALL = 1e-3
"""Size of a block relative to its largest size in the batch, below which that is its scale [-]."""
VANISHING = 1e-9
"""Size of a block relative to the efforts below which all its terms cancel [1/m, s, s² or 1/rad]."""


class Errors(NamedTuple):
    """Errors at a sample."""

    ratio: float
    """Smallest singular value of the passive closure Jacobian relative to the largest [-]."""
    of_blocks: Array
    """Largest error of each block relative to its largest entry [-], shape (3,)."""
    of_rounding: float
    """The part of the largest error that rounding of the positions alone explains [-]; NaN if it is not computed."""

    @property
    def bound(self) -> float:
        """Bound of the error [-]."""
        return 1e-12 if self.ratio > WELL else 1e-15 / self.ratio**2


def errors(
    mechanism: Mechanism, q: PositionSeries, drive: Drive, samples: Sequence[int], *, rounding: bool = False
) -> Iterator[Errors]:
    """Errors at some samples, relative to the largest entry of each block there.

    A block much smaller than at other samples, or than the efforts, takes its scale from these.

    Args:
        rounding: Whether `Errors.of_rounding` is computed.
    """
    traced = trace(mechanism, q[0])
    batch = inverse_dynamics(mechanism, drive, q, traced=traced, evaluator="numpy", derivatives=BLOCKS)
    peak, largest = np.abs(batch.effort).max(), np.array([np.abs(batch.derivatives[name]).max() for name in BLOCKS])
    least = np.where(largest < VANISHING * peak, peak, SMALL * largest)
    for k in samples:
        at = Drive(*(x[k] for x in drive))
        reference = slopes(traced, batch.q[k], at)
        rounded = at_rounded_state(traced, batch.q[k], at) if rounding else None
        found = np.array([batch.derivatives[name][k] for name in BLOCKS])
        scales = np.maximum(np.abs(reference).max(axis=(1, 2)), least)
        part = np.nan if rounded is None else (np.abs(rounded - reference).max(axis=(1, 2)) / scales).max()
        Phi_u = closure_jacobian_at(mechanism, batch.q[[k]])[..., traced.shape.dependent]
        yield Errors(
            ratio=float(conditioning(Phi_u)[0][0]) if traced.shape.dependent else 1.0,
            of_blocks=np.abs(found - reference).max(axis=(1, 2)) / scales,
            of_rounding=float(part),
        )


def of_robots(robots: Sequence[str]) -> list[list[object]]:
    """A row for each robot."""
    rows: list[list[object]] = []
    for name in robots:
        case = representative_case(load(name))
        motion = prescribe(case)
        nt = len(motion.t)
        found = list(errors(case.mechanism, motion.q, motion.law(motion.t), (nt // 3, nt - 1), rounding=True))
        rows.append([name, *_worst(found)])
    return rows


def of_chains(count: int) -> list[list[object]]:
    """Rows of random chains: all above and all below the ratio of a common bound, and each chain above its bound."""
    found: list[tuple[int, Errors]] = []
    seed, folder = 0, Path(tempfile.mkdtemp())
    while len({number for number, _ in found}) < count:
        found += [(seed, one) for one in _chain(seed, folder / f"{seed}.xml")]
        seed += 1
    groups = {
        f"{len({number for number, _ in group})} chains with ratio {sign} {WELL:g}": [one for _, one in group]
        for sign, group in (
            (">", [pair for pair in found if pair[1].ratio > WELL]),
            ("<", [pair for pair in found if pair[1].ratio <= WELL]),
        )
        if group
    }
    for number, one in found:
        if one.of_blocks.max() > one.bound:
            groups[f"chain {number}"] = [one]
    return [[name, *_worst(group)] for name, group in groups.items()]


def _chain(seed: int, path: Path) -> list[Errors]:
    """Errors of a random chain; none if there is no such chain, or if it is near a singularity."""
    rng, floating = np.random.default_rng(seed), seed % 3 == 2
    shape = closed_chains.Shape(planar=seed % 3 == 0, loops=3 if floating else 2, floating=floating)
    if not closed_chains.closed_chain(shape, rng, path):
        return []
    robot = Robot(
        name=path.stem, folder=path.parent, title="", mjcf=path.name, motion=MotionSpec(law="sine"), source="random"
    )
    case = make_case(robot, variant="default", mode="home", configuration="horizontal")
    motion, rates = states(case, rng), case.mechanism.rates_of(case.mechanism.drives).T
    drive = Drive(case.mechanism.values_of(case.mechanism.drives, motion.q), motion.qd @ rates, motion.qdd @ rates)
    try:
        return list(errors(case.mechanism, motion.q, drive, range(len(motion.q)), rounding=True))
    except (MechanismError, SingularityError):
        return []


def _worst(found: Sequence[Errors]) -> list[object]:
    """Smallest ratio, largest errors, largest part of the bound, and the part of the worst that rounding explains."""
    worst = max(found, key=lambda one: one.of_blocks.max() / one.bound)
    largest = np.max([one.of_blocks for one in found], axis=0)
    used = worst.of_blocks.max() / worst.bound
    part = worst.of_rounding / worst.of_blocks.max()
    return [
        f"{min(one.ratio for one in found):.2g}",
        *(f"{error:.0e}" for error in largest),
        f"{used:.2g}",
        "" if np.isnan(part) else f"{part:.0%}",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", metavar="ROBOT")
    parser.add_argument("--chains", type=int, metavar="N")
    wanted = parser.parse_args()
    everything = not wanted.robots and wanted.chains is None
    rows = of_robots(wanted.robots or (names() if everything else ()))
    rows += of_chains(wanted.chains or (100 if everything else 0))
    headers = ["", "smallest ratio", *BLOCKS, "error over bound", "due to rounded positions"]
    sys.stdout.write(tabulate(rows, headers, "pipe", disable_numparse=True) + "\n")


if __name__ == "__main__":
    main()
