"""MJX's forward dynamics with soft loops, differentiated by JAX in forward mode."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.declarations import ACCELERATION, Differentiated
from loopcheck.engines.mjx._mjx import jax, mjx
from loopcheck.engines.mjx._model import compiled, guarded, joints_of, moved, put
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism


@contextmanager
def functions(mechanism: Mechanism) -> Iterator[list[Differentiated]]:
    """See `loopcheck.engines.contract.Gradients.functions`."""
    if mechanism.wrenches:
        want_representable("mjx", ["derivatives with external wrenches at points other than mass centres"])
    with guarded("mjx", double=True):
        yield [_forward(mechanism)]


def _forward(mechanism: Mechanism) -> Differentiated:
    model, data = put(compiled(mechanism))
    joints, selection = joints_of(mechanism), jax.numpy.asarray(mechanism.selection)

    @jax.jit
    def acceleration(q: Array, displacement: Array, qd: Array, effort: Array) -> Array:
        state = data.replace(qpos=moved(q, displacement, joints), qvel=qd, qfrc_applied=effort @ selection)
        return mjx.forward(model, state).qacc

    slopes = jax.jit(jax.jacfwd(acceleration, argnums=(1, 2, 3)))
    zero = np.zeros(mechanism.nv)

    def value(q: JointPositions, qd: JointVelocities, effort: Array) -> Array:
        return np.asarray(acceleration(q, zero, qd, effort))

    def derivatives(q: JointPositions, qd: JointVelocities, effort: Array) -> Mapping[str, Array]:
        return dict(zip(("q", "qd", "effort"), map(np.asarray, slopes(q, zero, qd, effort)), strict=True))

    return Differentiated(
        name="jax.jacfwd of mjx.forward",
        quantity=ACCELERATION,
        meaning="acceleration with soft loops, without J̇v",
        value=value,
        derivatives=derivatives,
    )
