"""Forces in the joints as DART reports them: forces that bodies get from their joints. Loops have no reading."""

from collections.abc import Mapping

import numpy as np

from loopcheck.engines.dart._skeleton import Tree
from loopcheck.engines.declarations import WrenchReading
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import connections

NAME = "getBodyForce"
READINGS = (
    WrenchReading(
        name=NAME,
        carriers="bodies",
        point="origin of the body",
        axes="body; moment first",
        sign="on the child",
        code="""
world.step(False)  # the reading contains the impulses of loops and servos in the step
moment, force = np.split(body.getBodyForce(), 2)
moment = moment - np.cross(anchor, force)
""",
        time="mean over the step",
    ),
)
"""See `loopcheck.engines.contract.Wrenches`."""


def wrenches(tree: Tree) -> Mapping[str, Array]:
    """Wrenches of the connections by reading [N m, N], shape (connections, 6), in the last step."""
    carriers = connections(tree.mechanism)
    found = np.full((len(carriers), 6), np.nan)
    for k, (_, body, point, closure) in enumerate(carriers):
        if closure is None:
            moment, force = np.split(np.array(tree.bodies[body].getBodyForce()).ravel(), 2)
            found[k] = np.concatenate([moment - np.cross(point, force), force])
    return {NAME: found}
