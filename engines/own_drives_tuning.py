"""Tuning of robots that an engine's own drives hold: what drives them along a motion, whatever is set."""

from collections.abc import Callable
from dataclasses import dataclass

from engines.as_is import Record
from engines.own_drives import Driven, Gains, Reading, own_drives_run
from robots.arrays import Array
from robots.mechanism import Mechanism
from robots.motion import Motion


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivesPlan:
    """See `engines.tuning.Tuning.plan`."""

    mechanism: Mechanism
    motion: Motion
    gains: Gains
    """Of the drives as the user has them."""

    def run(
        self,
        source: str,
        put: Callable[[Gains, tuple[Array, Array]], Driven],
        reading: Reading,
        faster: float,
        start: int | Array,
    ) -> Record:
        """A run along the motion; see `engines.tuning.Tuning.run`.

        Args:
            source: Name of the route.
            put: Puts the robot into a state, with drives of some gains.
            reading: Which number is the effort.
            faster: Bandwidth of the drives over that which the user has [-].
            start: Number of the sample at whose exact state it starts, or joint positions at which it starts at rest
                [m or rad], shape (nq,).

        Raises:
            EngineError: If the engine fails, or its state is not finite any more.
        """
        gains, motion = self.gains.faster(faster), self.motion
        if isinstance(start, int):
            sample, state = start, (motion.q[start], motion.qd[start])
        else:
            sample, state = 0, (start, 0 * motion.qd[0])
        return own_drives_run(source, (put(gains, state), gains), motion, sample, reading)
