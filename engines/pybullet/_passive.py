"""What acts on a mechanism that Bullet knows nothing of, sorted out once for all steps."""

from dataclasses import dataclass

from loopcheck.engines.pybullet._angles import Turn
from loopcheck.engines.wrenches import wrenches
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Joint, Mechanism, PointSpring, Tendon, Wrench


@dataclass(frozen=True, slots=True, kw_only=True)
class Passive:
    """Springs, dampers but those of joints, and loads."""

    springs: tuple[tuple[int, Joint], ...]
    """Joints with a spring of their own, with their indices."""
    tendons: tuple[tuple[Tendon, Array], ...]
    """Tendons, each with the rates of its length per joint velocity [-, or m per rad], shape (nv,)."""
    point_springs: tuple[PointSpring, ...]
    turns: tuple[Turn, ...]
    """Springs and dampers that act on the hinges of a ball together."""
    wrenches: tuple[Wrench, ...]
    """External wrenches, and the force at the mass centre of each body with gravity compensation."""

    @property
    def by_state(self) -> bool:
        """Whether any of it depends on the positions or velocities of the joints."""
        return bool(self.springs or self.tendons or self.turns or self.point_springs)


def passive(mechanism: Mechanism, turns: tuple[Turn, ...]) -> Passive:
    """What acts on a mechanism with hinges and slides only, and on the hinges of the balls it had."""
    return Passive(
        springs=tuple((j, joint) for j, joint in enumerate(mechanism.joints) if joint.stiffness),
        tendons=tuple((tendon, mechanism.rates_of((tendon.length,))[0]) for tendon in mechanism.tendons),
        point_springs=mechanism.point_springs,
        turns=turns,
        wrenches=tuple(wrenches(mechanism)),
    )
