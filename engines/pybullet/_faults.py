"""Faults of `pybullet/forward`, one step of care left out each: the harness must notice them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

from engines.pybullet import forward
from engines.pybullet._bullet import pybullet
from engines.pybullet._world import BASE_LINK, World
from robots.efforts import Fault

DEFAULT_DAMPING = 0.04
"""Linear and angular damping that Bullet gives every link unless told otherwise [1/s]."""
DEFAULT_ERP = 0.2
"""Fraction of the opening of a loop that a step takes back unless told otherwise [-]."""
WEAK = 0.9
"""What a weak motor can do, over the largest effort that is needed [-]."""


@contextmanager
def _loose_loops(peak: float) -> Iterator[None]:
    """Loops that are drawn together as slowly as by default."""
    with patch.object(forward, "ERP", DEFAULT_ERP):
        yield


@contextmanager
def _default_damping(peak: float) -> Iterator[None]:
    """The damping of links left at its default."""
    careful = forward.prepare

    def careless(direct: bool, world: World, loops: tuple[int, ...]) -> None:
        careful(direct, world, loops)
        for link in range(BASE_LINK, pybullet.getNumJoints(world.tree, physicsClientId=world.client)):
            damping = {"linearDamping": DEFAULT_DAMPING, "angularDamping": DEFAULT_DAMPING}
            pybullet.changeDynamics(world.tree, link, **damping, physicsClientId=world.client)

    with patch.object(forward, "prepare", careless):
        yield


@contextmanager
def _weak_motors(peak: float) -> Iterator[None]:
    """Motors that saturate below the largest effort."""
    with patch.object(forward, "STRONGEST", WEAK * peak):
        yield


FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {"loose loops": _loose_loops, "default damping": _default_damping, "weak motors": _weak_motors}
}
"""By route and kind of fault."""
