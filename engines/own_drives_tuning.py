"""Tuning of robots that an engine's own drives hold: what drives them along a motion, whatever is set."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from loopcheck.engines.as_is import Record, log_of
from loopcheck.engines.own_drives import Driven, Gains, Reading, own_drives_run
from loopcheck.engines.tuning import HARD, Tuning
from loopcheck.robots.arrays import Array
from loopcheck.robots.log import Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

TIMECONSTS = (2, 3, 5)
"""Time constants of MuJoCo's loops, over the step [-]."""
FINER = 16
"""Number of steps that replace a single step when the step is removed from the causes of an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivesPlan:
    """See `loopcheck.engines.tuning.Tuning.plan`."""

    mechanism: Mechanism
    motion: Motion
    gains: Gains
    """Of the drives as the user has them."""
    bandwidth: float
    """Of the controller then [rad/s]."""

    def run(
        self,
        source: str,
        put: Callable[[Gains, tuple[Array, Array]], Driven],
        reading: Reading,
        bandwidth: float,
        start: int | Array,
    ) -> Record:
        """A run along the motion; see `loopcheck.engines.tuning.Tuning.run`.

        Args:
            put: Puts the robot into a state, with drives of some gains.
            reading: Which number is the effort.
            bandwidth: Of the controller [rad/s], by which the drives are stronger or weaker than the user has them.
            start: Number of the sample at whose exact state it starts, or joint positions at which it starts at rest
                [m or rad], shape (nq,).

        Raises:
            EngineError: If the engine fails, or its state is not finite any more.
        """
        gains, motion = self.gains.faster(bandwidth / self.bandwidth), self.motion
        if isinstance(start, int):
            sample, state = start, (motion.q[start], motion.qd[start])
        else:
            sample, state = 0, (start, 0 * motion.qd[0])
        return own_drives_run(source, (put(gains, state), gains), motion, sample, reading)


def log_without(source: str, tuning: Tuning, case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """A run with some causes of its error removed, as `loopcheck.engines.contract.Causes.log` returns it.

    Args:
        tuning: Of its engine, which has MuJoCo's loops.
        removed: Names of the causes: `step` and `softness`.
    """
    mechanism, given = case.mechanism, tuning.given(case.mechanism)
    step = given.step / FINER if "step" in removed else given.step
    hard = {"solref": f"{TIMECONSTS[0] * step:.6g} 1", "solimp": HARD} if "softness" in removed else {}
    prepared = tuning.prepared(mechanism, {"timestep": f"{step:.6g}", **hard})
    return log_of(source, case, tuning.run(tuning.plan(mechanism, motion), prepared, given.bandwidth))
