"""The user's own file in a scene of Genesis, and the state of its robot."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.boundary import converted
from loopcheck.engines.genesis._genesis import genesis, start
from loopcheck.engines.genesis._support import want_carried
from loopcheck.engines.loads import wrenches
from loopcheck.engines.mechanics import opening
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.formats.mjcf import load_spec
from loopcheck.robots.mechanism import Mechanism

STEP = 2e-3
"""Step [s]; with Genesis' default of 10 ms, most motions have too few steps."""
guarded = partial(converted, errors=(genesis.GenesisException, ValueError, RuntimeError, TypeError))
"""Converts the exceptions of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """Settings of the stepping of a scene."""

    step: float = STEP
    """Length of a step [s]."""
    iterations: int = 25
    """Of its solver in a step, at most [-]; 25 are Genesis' own."""

    def rigid_options(self, **others: Any) -> Any:
        """Options of the solver of rigid bodies: Genesis' own, except the iterations and given options.

        Args:
            others: Given options, by name.
        """
        return genesis.options.RigidOptions(iterations=self.iterations, **others)

    def apply(self, entity: Any) -> None:
        """Apply the settings of a built scene: none.

        Args:
            entity: The robot in Genesis.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A mechanism in Genesis."""

    mechanism: Mechanism
    scene: Any
    entity: Any
    links: tuple[Any, ...]
    """Genesis' link of each body."""
    armature_as_loaded: Array
    """Of each dof, before it was reset to that of the file [kg or kg m²], shape (nv,)."""

    def put(self, q: JointPositions, qd: JointVelocities) -> None:
        """Set the state."""
        self.entity.set_qpos(q.copy())  # PyTorch warns of arrays that are read-only
        self.entity.set_dofs_velocity(qd.copy())

    def state(self) -> tuple[Array, Array]:
        """Joint positions [m or rad], shape (nq,), and velocities [m/s or rad/s], shape (nv,)."""
        return numbers(self.entity.get_qpos()), numbers(self.entity.get_dofs_velocity())

    def poses(self) -> tuple[Array, Array]:
        """Origins of the bodies [m], shape (..., nb, 3), and their axes [-], shape (..., nb, 3, 3)."""
        places = [link.idx_local for link in self.links]
        quaternions = numbers(self.entity.get_links_quat())[..., places, :]
        p = numbers(self.entity.get_links_pos())[..., places, :]
        return p, Rotation.from_quat(np.roll(quaternions, -1, axis=-1)).as_matrix()

    def load(self) -> None:
        """Let external wrenches act in the next step."""
        loads = list(wrenches(self.mechanism))
        if not loads:
            return
        R = self.poses()[1]
        for load in loads:
            lever = R[..., load.body, :, :] @ (load.point - self.mechanism.bodies[load.body].center)
            moment = load.moment + np.cross(lever, load.force)
            self.scene.rigid_solver.apply_links_external_wrench(
                force=np.broadcast_to(load.force, moment.shape)[..., None, :].copy(),
                torque=moment[..., None, :],
                links_idx=[self.links[load.body].idx],
                ref=genesis.link_ref_frame.link_COM,
            )

    def opening(self) -> Deviation:
        """Gap of the widest loop."""
        return opening(self.mechanism, self.poses())


def build(mechanism: Mechanism, stepping: Stepping | None = None, *, as_loaded: bool = False) -> Built:
    """The robot's file in Genesis, in the gravity of the mechanism.

    Args:
        stepping: Settings of the stepping; by default with Genesis' own iterations, in steps of `STEP`.
        as_loaded: Whether rotors keep the defaults of the loader; otherwise they are reset to those of the file.

    Raises:
        NotRepresentableError: If an element of the mechanism would be lost.
    """
    want_carried(mechanism)
    start()
    options, stepping = genesis.options, stepping or Stepping()
    step = stepping.step
    scene = genesis.Scene(
        show_viewer=False,
        sim_options=options.SimOptions(dt=step, gravity=tuple(mechanism.gravity.tolist())),
        rigid_options=stepping.rigid_options(dt=step, enable_collision=False),
    )
    with _file(mechanism) as path:
        entity = scene.add_entity(genesis.morphs.MJCF(file=str(path)))
        scene.build()
    filled_in = np.atleast_2d(numbers(entity.get_dofs_armature()))[0]
    if not as_loaded:
        entity.set_dofs_armature(np.concatenate([np.zeros(0), *([joint.armature] for joint in mechanism.joints)]))
    stepping.apply(entity)
    return Built(
        mechanism=mechanism,
        scene=scene,
        entity=entity,
        links=tuple(entity.get_link(body.name) for body in mechanism.bodies),
        armature_as_loaded=filled_in,
    )


def numbers(tensor: Any) -> Array:
    """Content of a tensor, in double precision."""
    return np.array(tensor.cpu().numpy() if hasattr(tensor, "cpu") else tensor, dtype=float)


@contextmanager
def _file(mechanism: Mechanism) -> Iterator[Path]:
    """The unmodified file, or a copy with the changes of a variant."""
    model = mechanism.model
    if not (model.overrides or model.actuated):
        yield model.path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / model.path.name
        copy.write_text(load_spec(model).to_xml(), encoding="utf-8")
        yield copy
