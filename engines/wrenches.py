"""What acts on the bodies of a mechanism from outside, for engines that are told of it force by force."""

from collections.abc import Iterator

import numpy as np

from loopcheck.robots.mechanism import WORLD, Mechanism, Wrench


def wrenches(mechanism: Mechanism) -> Iterator[Wrench]:
    """External wrenches on bodies, and the force at the mass centre of each body with gravity compensation."""
    yield from (wrench for wrench in mechanism.wrenches if wrench.body != WORLD)
    for b, body in enumerate(mechanism.bodies):
        if body.gravity_compensation:
            compensation = -body.gravity_compensation * body.mass * mechanism.gravity
            yield Wrench(body=b, point=body.center, moment=np.zeros(3), force=compensation)
