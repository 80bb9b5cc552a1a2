"""The robots that are controlled, rebuilt in a physics engine with their own parameters."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from loopcheck import engines
from loopcheck.analytic.papers.zubizarreta2010 import PHI, Parameters
from loopcheck.engines import contract
from loopcheck.engines.simulation import Together, together
from loopcheck.robots.arrays import Array, PlanarPoses
from loopcheck.robots.errors import EngineNotInstalledError, NotFoundError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case
from loopcheck.validation.studies.control.perturbation import overrides
from loopcheck.validation.studies.control.plant import ExactPlant

JOINTS = ("qa1", "qa2", "qa3", "qp1", "qp2", "qp3")


class EnginePlant:
    """See `loopcheck.validation.studies.control.plant.Plant`; the engine steps as long as a control action lasts."""

    def __init__(self, robots: Sequence[Parameters], mechanism: Mechanism, simulated: Together) -> None:
        """Read the state of robots in an engine.

        Args:
            mechanism: Mechanism of any of them, for the order of the joints.
        """
        names = [joint.name for joint in mechanism.joints]
        self._columns, self._third = [names.index(name) for name in JOINTS], names.index("qc1")
        self._simulated = simulated
        self._A1 = np.array([robot.OA[0] for robot in robots])
        self._lengths = np.array([[robot.L[0], robot.l[0], robot.d[0]] for robot in robots])

    def pose(self) -> Array:
        """See `Plant.pose`: along leg 1, the leg of the platform in the spanning tree."""
        q, _ = self._simulated.state()
        first = q[:, self._columns[0]]
        theta = first + q[:, self._columns[3]] + q[:, self._third]
        angles = np.stack([first, first + q[:, self._columns[3]], theta + PHI[0]], axis=1)
        P = self._A1 + np.stack([(self._lengths * np.cos(angles)).sum(1), (self._lengths * np.sin(angles)).sum(1)], 1)
        return np.concatenate([P, np.remainder(theta + np.pi, 2 * np.pi)[:, None] - np.pi], axis=1)

    def joints(self) -> tuple[Array, Array]:
        """See `Plant.joints`."""
        q, qd = self._simulated.state()
        return q[:, self._columns], qd[:, self._columns]

    def step(self, tau: Array, dt: float) -> None:
        """See `Plant.step`.

        Args:
            tau: Torques of the motors [N m], shape (n, 3).
            dt: How long [s].
        """
        self._simulated.lengthen(dt)
        self._simulated.step(tau)


@contextmanager
def engine_plant(
    engine: str, case: Case, robots: Sequence[Parameters], x: PlanarPoses, exact: ExactPlant
) -> Iterator[EnginePlant]:
    """Rebuild robots in an engine, in the state of the exact plant.

    Args:
        case: The nominal robot.
        x: Task coordinates at the start [m, m, rad], shape (n, 3).
        exact: The same robots with the exact dynamics, at the start.

    Raises:
        EngineNotInstalledError: If the engine is not installed.
    """
    if not engines.installed(engine):
        raise EngineNotInstalledError(engine, engines.extra(engine))
    mechanisms = [_mechanism(case, robot) for robot in robots]
    names = [joint.name for joint in mechanisms[0].joints]
    (q, qd), spin = exact.joints(), exact.rates()[:, 2]
    order = [names.index(name) for name in JOINTS]
    positions, velocities = np.zeros((len(q), len(names))), np.zeros((len(q), len(names)))
    positions[:, order], velocities[:, order] = q, qd
    third = names.index("qc1")
    positions[:, third], velocities[:, third] = x[:, 2] - q[:, 0] - q[:, 3], spin - qd[:, 0] - qd[:, 3]
    simulation: contract.Simulation | None = engines.part(engine, "simulation")
    if simulation is None:
        known_engines = tuple(name for name in engines.versions() if engines.provides(name, "simulation"))
        raise NotFoundError("engine with a plant", engine, known_engines)
    with together(simulation.simulate, mechanisms, positions, velocities) as simulated:
        yield EnginePlant(robots, mechanisms[0], simulated)


def _mechanism(case: Case, robot: Parameters) -> Mechanism:
    model = ModelFile(path=case.mechanism.model.path, overrides=overrides(robot))
    return read_mechanism(model).with_gravity(case.mechanism.gravity)
