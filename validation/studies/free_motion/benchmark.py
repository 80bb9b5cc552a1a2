"""Published free motions: the initial state, a constant effort, and the published results at certain times."""

import tomllib
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.robot import DEFAULT, HOME, Case, Vector, load, make_case
from loopcheck.robots.schema import reason_of

FILE = "benchmark.toml"


class Instant(BaseModel):
    """Published quantities of a free motion at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    t: float
    """Time [s]."""
    origin: str
    """Source of the numbers."""
    joints: Mapping[str, float] = Field(default_factory=dict)
    """Positions of joints [m or rad]."""
    positions: Mapping[str, Vector] = Field(default_factory=dict)
    """Positions of sites, world axes [m]."""
    velocities: Mapping[str, Vector] = Field(default_factory=dict)
    """Velocities of sites, world axes [m/s]."""
    multipliers: Mapping[str, tuple[float, float]] = Field(default_factory=dict)
    """Multipliers of the X and Y rows of closures, with the sign of M q̈ + Φᵀλ = f, as the benchmark has it [N]."""


class Benchmark(BaseModel):
    """A published free motion of a robot of the catalogue."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    robot: str
    """Name of the robot."""
    source: str
    """Source of the problem."""
    configuration: str
    mode: str = HOME
    """The motion begins at the initial guess of this mode."""
    velocities: Mapping[str, float] = Field(default_factory=dict)
    """Initial velocities of actuated joints [m/s or rad/s], by default 0; the passive joints follow."""
    efforts: Mapping[str, float] = Field(default_factory=dict)
    """Constant efforts by actuator [N or N m], by default 0."""
    span: float
    """Length of the motion [s]."""
    instants: tuple[Instant, ...] = ()

    @property
    def case(self) -> Case:
        """The robot in the configuration of the benchmark."""
        return make_case(load(self.robot), variant=DEFAULT, mode=self.mode, configuration=self.configuration)


def benchmark_names() -> tuple[str, ...]:
    """Names of all robots with a published free motion."""
    return tuple(sorted(path.parent.name for path in CATALOGUE.glob(f"*/{FILE}")))


def load_benchmark(name: str) -> Benchmark:
    """The published free motion of a robot.

    Raises:
        NotFoundError: If the robot has no `benchmark.toml`.
        MechanismError: If its `benchmark.toml` is invalid.
    """
    if name not in benchmark_names():
        raise NotFoundError("benchmark", name, benchmark_names())
    path = CATALOGUE / name / FILE
    try:
        return Benchmark(robot=name, **tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
        raise MechanismError(f"{path}: must be a readable TOML file: {error}") from error
    except ValidationError as error:
        raise MechanismError(f"{path}: {reason_of(error, Benchmark)}") from error
