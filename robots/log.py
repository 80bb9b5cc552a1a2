"""A log: the recorded motion and efforts of a robot, from an engine, another tool, a script or a test bench.

It contains the motion of some or all joints and the efforts that acted. `loopcheck judge` compares these efforts with
the efforts that the closed loop requires for this motion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from loopcheck.robots.arrays import Array, frozen, has_equal_steps, want_increasing
from loopcheck.robots.errors import ShapeError
from loopcheck.robots.mechanism import DOFS, POSITIONS, JointKind

FEWEST = 15
"""Fewest samples of a log, for filters and differences of high order."""
EQUAL = 1e-3
"""Largest deviation of a step in time from the mean step, relative to that [-]: exporters round their times."""
WHOLE = 0.999
"""Least hold of an effort over the step of the log that lasts for the whole step [-]."""
UNMODELLED = "loopcheck_left_out"
"""Efforts equivalent to contacts, limits and dry friction, from loopcheck's own runs: added to the effort unchecked.

The equations lack these forces. No other tool writes a column of this name by accident.
"""
READINGS = ("commanded", "applied", "reported", "joint", "reaction", "sensor", UNMODELLED)
"""Kinds of readings that a log may hold beside the applied effort.

`commanded`: command to the drive. `applied`: effort of the drive law at the end of the step. `reported`: value reported
by the tool. `joint`: force on the joint behind the gear. `reaction`: joint reaction along its axis. `sensor`: sensor
reading. Last: `UNMODELLED`.
"""


@dataclass(frozen=True, slots=True)
class Held:
    """Each effort acted unchanged from the time of its row on, as that of a controller; or until that time."""

    seconds: float
    """Duration [s]: the step of the controller or simulator, not of the log (perhaps with every tenth step only)."""
    until: bool = False
    """Whether it acted until the time of its row, as in a log written after every step of a simulator."""

    def __post_init__(self) -> None:
        if not 0 < self.seconds < np.inf:
            raise ShapeError(f"hold time of the efforts: must be above 0 s, got {self.seconds:g} s")


@dataclass(frozen=True, slots=True)
class Instantaneous:
    """Each effort is that at the time of its row."""


EffortTime: TypeAlias = Held | Instantaneous
"""Time of action of an effort, relative to the time of its row."""


@dataclass(frozen=True, slots=True)
class Convention:
    """What the readings of a wrench mean."""

    on: Literal["child", "parent"]
    """Body that the wrench acts on: of a closure, body 1 is the child and body 2 the parent."""
    point: Literal["joint", "com", "origin", "tree_com"]
    """Point of the moment: that of the connection; the mass centre of the child; the origin of its frame; the mass
    centre of the whole tree that the child belongs to (MuJoCo's `subtree_com` of the root)."""
    axes: Literal["child", "parent", "world"]
    """Frame whose axes the components have."""

    def __str__(self) -> str:
        return f"on={self.on} point={self.point} axes={self.axes}"


COMMON = Convention("child", "joint", "child")
"""The convention of `loopcheck.robots.connections`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A log; the equations need equal steps in time (`analytic.logs.signals.stamps`)."""

    name: str
    """Name of the log; its results belong to the source `log/NAME`."""
    t: Array
    """Time [s], shape (nt,), increasing."""
    joints: tuple[str, ...]
    """Names of the joints that are logged, in the order of the columns; driven tendons too, by their own names."""
    kinds: tuple[JointKind, ...] = ()
    """Kind of each joint, determines its number of columns; by default hinges or slides, with 1 column each."""
    q: Array
    """Joint positions [m or rad], shape (nt, positions of the joints); quaternions are (w, x, y, z)."""
    qd: Array | None = None
    """Joint velocities [m/s or rad/s], shape (nt, dofs of the joints); balls and free joints as in MuJoCo."""
    qdd: Array | None = None
    """Joint accelerations [m/s² or rad/s²], shape (nt, dofs of the joints)."""
    actuators: tuple[str, ...]
    """Names of the actuators, in the order of the columns."""
    effort: Array
    """Applied effort of each actuator, before its gear, positive along the joint [N or N m], shape (nt, na)."""
    readings: Mapping[str, Array] = field(default_factory=dict)
    """Other readings of the efforts by kind [N or N m], each of shape (nt, na); NaN for missing values."""
    has_efforts: bool = True
    """Whether efforts are logged; otherwise `effort` is 0 and not judged."""
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    """Wrenches by connection, moment first [N m, N], each of shape (nt, 6); NaN in components that are not logged."""
    convention: Convention | None = None
    """Convention of the wrenches; None if unknown."""
    effort_time: EffortTime | None = None
    """Time of action of the efforts; None if unknown."""
    errors: Mapping[str, Array] = field(default_factory=dict)
    """Errors of the columns of `q`, `qd`, `qdd` and `effort` that their noise does not show, as of an interpolation,
    standard deviations [units of the columns], each of shape (columns,)."""
    clock: float = 0.0
    """Relative error of the step in time, standard deviation [-]."""
    unused: Mapping[str, Array] = field(default_factory=dict)
    """Numbers in further columns of a file, each of shape (nt,); absent at other times than those of the file."""
    source: str = ""
    """Tool that wrote the log, and the origin of its columns."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Quantity in each column of a file, as `hip.q`; an empty string for a column that is not used."""

    def __post_init__(self) -> None:
        if not self.kinds:
            object.__setattr__(self, "kinds", ("hinge",) * len(self.joints))
        if len(self.kinds) != len(self.joints):
            raise ShapeError(
                f"{self.name}: must have 1 kind per joint ({len(self.joints)} joints), got {len(self.kinds)}"
            )
        _want_once(self.joints, f"{self.name}, joints")
        _want_once(self.actuators, f"{self.name}, actuators")
        object.__setattr__(self, "t", frozen(self.t, (None,), name=f"{self.name}, t"))
        want_increasing(self.t, name=f"{self.name}, t", fewest=FEWEST)
        nt, na = len(self.t), len(self.actuators)
        positions, dofs = (sum(sizes[kind] for kind in self.kinds) for sizes in (POSITIONS, DOFS))
        for name, columns in (("q", positions), ("qd", dofs), ("qdd", dofs), ("effort", na)):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, frozen(values, (nt, columns), name=f"{self.name}, {name}"))
        readings = {
            kind: _with_gaps(values, (nt, na), f"{self.name}, {kind}") for kind, values in self.readings.items()
        }
        object.__setattr__(self, "readings", readings)
        wrenches = {name: _with_gaps(x, (nt, 6), f"{self.name}, {name}") for name, x in self.wrenches.items()}
        object.__setattr__(self, "wrenches", wrenches)
        errors = {
            name: frozen(values, (getattr(self, name).shape[1],), name=f"{self.name}, errors of {name}")
            for name, values in self.errors.items()
            if getattr(self, name) is not None
        }
        object.__setattr__(self, "errors", errors)

    def from_their_times(self) -> "Log":
        """The same log with efforts that acted from the times of their rows on, if each acted until its time."""
        when = self.effort_time
        if not isinstance(when, Held) or not when.until or when.seconds < WHOLE * self.dt:
            return self
        kept = {name: getattr(self, name) for name in ("q", "qd", "qdd")}
        return replace(
            self,
            t=self.t[:-1],
            effort=self.effort[1:],
            unused={},
            readings={kind: values[1:] for kind, values in self.readings.items()},
            wrenches={name: values[1:] for name, values in self.wrenches.items()},
            effort_time=Held(when.seconds),
            **{name: values[:-1] for name, values in kept.items() if values is not None},
        )

    @property
    def has_equal_steps(self) -> bool:
        """Whether all steps in time are equal up to the rounding of an exporter."""
        return has_equal_steps(self.t, unequal=EQUAL, rounding=4 * float(np.spacing(np.abs(self.t).max())))

    def error_of(self, name: str) -> Array:
        """Standard deviation of columns beyond the noise that they show [unit of the column], shape (columns,).

        Args:
            name: `q`, `qd`, `qdd` or `effort`.
        """
        return self.errors.get(name, np.zeros(getattr(self, name).shape[1]))

    @property
    def unmodelled(self) -> Array:
        """Efforts `UNMODELLED`, zero where the log has none [N or N m], shape (nt, na)."""
        return np.nan_to_num(self.readings.get(UNMODELLED, np.zeros_like(self.effort)))

    @property
    def dt(self) -> float:
        """Mean step of the log [s]."""
        return float(self.t[-1] - self.t[0]) / (len(self.t) - 1)

    def columns_of(self, joint: str) -> tuple[slice, slice]:
        """Position of a joint in q, and in qd and qdd.

        Args:
            joint: Name of a logged joint.
        """
        place = self.joints.index(joint)
        before, kind = self.kinds[:place], self.kinds[place]
        starts = [sum(sizes[other] for other in before) for sizes in (POSITIONS, DOFS)]
        return slice(starts[0], starts[0] + POSITIONS[kind]), slice(starts[1], starts[1] + DOFS[kind])


def _want_once(names: Sequence[str], where: str) -> None:
    if not names:
        raise ShapeError(f"{where}: must have at least 1 name, got 0")
    for name in names:
        if names.count(name) > 1:
            raise ShapeError(f"{where}: names must be unique, got '{name}' {names.count(name)} times")


def _with_gaps(values: ArrayLike, shape: tuple[int, int], where: str) -> Array:
    """A read-only copy in which NaN stands for missing values; infinite numbers are refused."""
    array = np.array(values, dtype=np.float64)
    frozen(np.nan_to_num(array, nan=0.0, posinf=np.inf, neginf=-np.inf), shape, name=where)
    array.flags.writeable = False
    return array
