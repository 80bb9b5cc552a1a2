"""Tuning of robots held by an engine's own drives: drives along a motion with any settings."""

from collections.abc import Callable
from dataclasses import dataclass

from loopcheck.engines.as_is import Record
from loopcheck.engines.own_drives import Driven, Gains, Reading, own_drives_run
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

TIMECONSTS = (2, 3, 5)
"""Time constants of MuJoCo's loops, over the step [-]."""


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
            reading: The reading that is the effort.
            bandwidth: Of the controller [rad/s]; scales the drives relative to the user's gains.
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
