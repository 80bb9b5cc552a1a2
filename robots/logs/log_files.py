"""Logs as files: named columns of any format of `log_tables`, with a description beside the numbers.

Columns: `t`; `JOINT.q`, `JOINT.qd` and `JOINT.qdd`, or a whole state `qpos.0 …`, `qvel.0 …`, `qacc.0 …` in MuJoCo's
order; `ACTUATOR.effort`, the effort that acted; and perhaps other readings of it, `ACTUATOR.commanded`, `.reported` and
`.sensor`; wrenches in connections, `CONNECTION.force.x` and `CONNECTION.moment.x`. Velocities and accelerations may be
missing. A unit may stand behind a name, as in `hip.q [deg]`. Names of other tools are in `exporters.toml`; they are
used as far as the robot has their joints.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import COMPONENTS, connections
from loopcheck.robots.errors import MechanismError, listed
from loopcheck.robots.formats.mjcf import MotorForce, motor_forces
from loopcheck.robots.log import READINGS, EffortTime, Log
from loopcheck.robots.logs.log_description import (
    Description,
    Side,
    convention_of,
    effort_time_of,
    in_text,
    read_description,
    unit_factor,
)
from loopcheck.robots.logs.log_names import STATES, named_columns, of_actuator
from loopcheck.robots.logs.log_tables import KEY, PARQUET, pyarrow, read_table
from loopcheck.robots.logs.text_table import ENCODING, numbers, text_of
from loopcheck.robots.mechanism import WORLD, Coordinate, Mechanism

if TYPE_CHECKING:
    import pandas as pd

EPOCH = 1e8
"""Times above this are counted from the first row [s]: they are dates, whose fractions a number does not hold."""
EPOCHS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Numbers above which a date counts ns, µs and ms, not s, with the unit [s]."""
MOST_NAMES = 12
"""Names in a message."""
MOST_LINES = 4
"""Columns in the example of a description."""
MOTION_OR_EFFORT = re.compile(r".*\.(q|qd|qdd|effort)|q(pos|vel|acc)\.\d+")
WRENCH = re.compile(r"(?P<connection>.+)\.(force|moment)\.(?P<axis>[^.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Content of a log file."""

    path: Path
    frame: "pd.DataFrame"
    description: Description
    names: Mapping[str, str]
    """Columns of the frame by our names."""
    units: Mapping[str, str]
    """Units in column names, by our names."""
    signs: Mapping[str, int]
    """-1 for columns of opposite sign, by our names."""
    forces: Mapping[str, MotorForce] = field(default_factory=dict)
    """Forces of motors by their commands, by our names of columns that hold commands."""
    used: set[str] = field(default_factory=set)
    """Names of the columns that were read."""

    def want(self, needed: Sequence[str], instead: str = "") -> None:
        """Check that there are columns, all of them at once.

        Args:
            needed: Their names.
            instead: Other columns that would do, as a clause.

        Raises:
            MechanismError: If some are missing; its example declares them.
        """
        missing = [name for name in needed if name not in self.names]
        if not missing:
            return
        known = [name for name in self.names if name == "t" or MOTION_OR_EFFORT.fullmatch(name)]
        unknown = [file for name, file in self.names.items() if name not in known]
        columns = ", ".join(map(_in_quotes, missing))
        understood, other = (listed(names, MOST_NAMES) or "none" for names in (known, unknown))
        error = MechanismError(
            f"{self.path}: must have the columns {columns}{instead}; understood: {understood}; not understood: {other}"
            f". Declare them in {self.path.with_suffix('.toml').name}"
        )
        guesses = [*unknown, *["NAME"] * len(missing)]
        lines = [f'"{name}" = "{file}"  # the name in the file' for name, file in zip(missing, guesses, strict=False)]
        error.example = "\n".join(["[columns]", *lines[:MOST_LINES], *["..."] * (len(lines) > MOST_LINES)])
        raise error

    def column(self, name: str, quantity: str) -> Array:
        """A column in our units, counted our way; without a quantity it has no unit."""
        self.want([name])
        values = self._numbers(name, quantity)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            got = self.frame[self.names[name]][row]
            raise MechanismError(f"{self._where(name)}: numbers must be finite, got '{got}' in row {row + 1}")
        return values

    def times(self) -> Array:
        """Times of the rows [s]; those of dates from the first row on."""
        values = self.column("t", "time")
        if np.abs(values).max(initial=0.0) < EPOCH:
            return values
        exact = [Decimal(str(cell)) for cell in self.frame[self.names["t"]]]
        is_stated = "t" in self.units or self.description.units.time != "s"
        factor = self._factor("t", "time") if is_stated else _unit_of_epoch(float(exact[0]))
        return np.array([float(cell - exact[0]) for cell in exact]) * factor

    def gappy(self, name: str, quantity: str) -> Array:
        """The same, with NaN for missing numbers and columns."""
        return self._numbers(name, quantity) if name in self.names else np.full(len(self.frame), np.nan)

    def unused(self) -> dict[str, Array]:
        """Further columns of numbers, as they are, by their names in the file."""
        columns = {column: numbers(self.frame[column]) for name, column in self.names.items() if name not in self.used}
        return {column: values for column, values in columns.items() if np.isfinite(values).all()}

    def _where(self, name: str) -> str:
        return f"{self.path}: column '{self.names[name]}'"

    def _numbers(self, name: str, quantity: str) -> Array:
        self.used.add(name)
        values = numbers(self.frame[self.names[name]]) * self.signs.get(name, 1)
        if name in self.forces:
            return self.forces[name](values)
        if not quantity:
            return values
        return values * self._factor(name, quantity)

    def _factor(self, name: str, quantity: str) -> float:
        unit = self.units.get(name) or getattr(self.description.units, quantity)
        return unit_factor(quantity, unit, self._where(name))


def read_log(
    path: Path,
    mechanism: Mechanism,
    *,
    name: str = "",
    effort_time: EffortTime | None = None,
    side: Side | None = None,
) -> Log:
    """Read a log of a robot.

    Args:
        path: File in any format of `log_tables`, or the folder of a bag.
        mechanism: The robot; its joints determine the columns of angles and of lengths.
        name: Name of the log; by default that of the file.
        effort_time: Time at which its efforts acted, instead of the declaration in the file.
        side: Side of the gear on which its efforts are, instead of the declaration in the file.

    Raises:
        MechanismError: If the file or its description cannot be read, or columns are missing or not numbers.
        ShapeError: If its times do not increase in equal steps, or a value is not finite.
    """
    return _log_of(_read_table(path, mechanism), mechanism, name or path.stem, effort_time, side)


def log_of_frame(
    frame: "pd.DataFrame",
    mechanism: Mechanism,
    *,
    name: str,
    effort_time: EffortTime | None = None,
    side: Side | None = None,
) -> Log:
    """A log of a robot from a table with the columns of a file, including units behind the names.

    Args:
        effort_time: Time at which its efforts acted, if it is documented.
        side: Side of the gear on which its efforts are; by default that of the motor.

    Raises:
        MechanismError: If columns are missing or not numbers.
        ShapeError: If its times do not increase in equal steps, or a value is not finite.
    """
    table = _table_of(frame.reset_index(drop=True), Description(), mechanism, Path(name))
    return _log_of(table, mechanism, name, effort_time, side)


def _log_of(table: _Table, mechanism: Mechanism, name: str, effort_time: EffortTime | None, side: Side | None) -> Log:
    table = _with_commands(table, mechanism)
    actuators = mechanism.actuators
    wrenches, convention = _wrenches(table, mechanism), convention_of(table.description.reactions, str(table.path))
    has_efforts = not wrenches or any(f"{a.name}.effort" in table.names for a in actuators)
    _want_all(table, mechanism, has_efforts=has_efforts)
    motion = _whole_state(table, mechanism) if "qpos.0" in table.names else _named_joints(table, mechanism)
    kinds = {a.name: _effort_quantity(mechanism, k) for k, a in enumerate(mechanism.actuators)}
    readings = {
        kind: np.stack([table.gappy(f"{a.name}.{kind}", kinds[a.name]) for a in actuators], axis=1)
        for kind in READINGS
        if any(f"{a.name}.{kind}" in table.names for a in actuators)
    }
    effort = np.zeros((len(table.frame), len(actuators)))
    if has_efforts:
        effort = np.stack([table.column(f"{a.name}.effort", kinds[a.name]) for a in actuators], axis=1)
    if (side or table.description.side) == "joint":
        effort /= [a.gear for a in actuators]
    return Log(
        name=name,
        t=table.times(),
        actuators=tuple(a.name for a in actuators),
        effort=effort,
        readings=readings,
        has_efforts=has_efforts,
        wrenches=wrenches,
        convention=convention,
        effort_time=effort_time or effort_time_of(table.description.effort_time, str(table.path)),
        source=table.description.source,
        **motion,
        columns={column: name if name in table.used else "" for name, column in table.names.items()},
        unused=table.unused(),
    )


def _wrenches(table: _Table, mechanism: Mechanism) -> dict[str, Array]:
    """Wrenches by connection, moment first, NaN in components without a number; columns of other tools are left out.

    Raises:
        MechanismError: If wrenches are declared and a column names no connection or component, or no column has one.
    """
    known = [connection.name for connection in connections(mechanism)]
    columns = {name: match for name in table.names if (match := WRENCH.fullmatch(name))}
    is_declared = bool(table.description.reactions)
    for name, match in columns.items():
        if is_declared and (match["connection"] not in known or match["axis"] not in tuple("xyz")):
            raise MechanismError(
                f"{table._where(name)}: wrenches must be named CONNECTION.force.x, .y, .z or CONNECTION.moment.x, .y, "
                f".z with a connection among {', '.join(known)}"
            )
    found = {match["connection"] for match in columns.values() if match["axis"] in tuple("xyz")}
    if is_declared and not found:
        raise MechanismError(f"{table.path}: declares reactions, and must have columns such as '{known[0]}.force.x'")
    return {
        name: np.stack([_component(table, f"{name}.{component}") for component in COMPONENTS], axis=1)
        for name in known
        if name in found
    }


def _component(table: _Table, name: str) -> Array:
    """A component of a wrench; NaN throughout if the column is missing or empty."""
    quantity = "torque" if ".moment." in name else "force"
    values = table.gappy(name, quantity)
    return values if np.isnan(values).all() else table.column(name, quantity)


def _want_all(table: _Table, mechanism: Mechanism, *, has_efforts: bool) -> None:
    """Check that times, positions and efforts, if there are any, are there.

    Raises:
        MechanismError: If some are missing, with all of them.
    """
    is_state = "qpos.0" in table.names
    moving = [f"{one.name}.q" for one in mechanism.drives]
    if is_state:
        moving = [f"qpos.{k}" for k in range(mechanism.spanning_tree[0])]
    else:
        parts = {f"{one.name}.q": _joints_behind(mechanism, one) for one in mechanism.drives}
        moving = [name for name in moving if not all(f"{joint}.q" in table.names for joint in parts[name])]
    efforts = [f"{actuator.name}.effort" for actuator in mechanism.actuators if has_efforts]
    told = [name for name in efforts if name not in table.names and f"{name[: -len('effort')]}commanded" in table.names]
    instead = " (or 'qpos.0' ... of all joints)" * (not is_state and any(name not in table.names for name in moving))
    if told:
        instead += " (a servo is told a target: its ctrl is no effort, log actuator_force)"
    table.want(["t", *moving, *efforts], instead)


def _joints_behind(mechanism: Mechanism, drive: Coordinate) -> list[str]:
    """Joints whose positions give that of a drive: its own, and all joints of bodies for the length of a tendon."""
    joints = [mechanism.joints[j] for j in drive.joints]
    if any(joint.body == WORLD for joint in joints):
        joints = [joint for joint in mechanism.joints if joint.body != WORLD]
    return [joint.name for joint in joints]


def _with_commands(table: _Table, mechanism: Mechanism) -> _Table:
    """A table in which the commands of plain motors are their efforts, if it has no others."""
    told = {
        one.name: f"{one.name}.commanded"
        for one in mechanism.actuators
        if f"{one.name}.effort" not in table.names and f"{one.name}.commanded" in table.names
    }
    if not told:
        return table
    motors = motor_forces(mechanism.model)
    names, forces = dict(table.names), dict(table.forces)
    for name, command in told.items():
        if name in motors:
            names[f"{name}.effort"], forces[f"{name}.effort"] = names.pop(command), motors[name]
    return replace(table, names=names, forces=forces)


def write_log(log: Log, path: Path) -> None:
    """Write a log, in s, rad, m, N m and N; `read_log` reads the same log.

    Args:
        log: The log; for joints with quaternions it holds all joints of the robot, in their order.
        path: The file, a CSV or a file that ends in `.parquet`.
    """
    columns: dict[str, Array] = {"t": log.t}
    is_state = any(kind in ("ball", "free") for kind in log.kinds)
    for rate, state in STATES.items():
        values = getattr(log, rate)
        if values is not None:
            names = (
                [f"{state}.{k}" for k in range(values.shape[1])] if is_state else [f"{j}.{rate}" for j in log.joints]
            )
            columns.update(zip(names, values.T, strict=True))
    for kind, values in {**({"effort": log.effort} if log.has_efforts else {}), **log.readings}.items():
        columns.update({f"{actuator}.{kind}": x for actuator, x in zip(log.actuators, values.T, strict=True)})
    for connection, values in log.wrenches.items():
        columns.update({f"{connection}.{component}": x for component, x in zip(COMPONENTS, values.T, strict=True)})
    fields = {
        "effort_time": in_text(log.effort_time) if log.effort_time else "",
        "reactions": str(log.convention or ""),
        "source": log.source,
    }
    text = "".join(f"{key} = {_toml_string(value)}\n" for key, value in fields.items() if value)
    if path.suffix == PARQUET:
        import pandas as pd

        pa = pyarrow(path)
        pa.parquet.write_table(pa.Table.from_pandas(pd.DataFrame(columns)).replace_schema_metadata({KEY: text}), path)
        return
    header = "".join(f"# {line}\n" for line in text.splitlines())
    path.write_text(header + text_of(columns), encoding="utf-8")


def _toml_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _read_table(path: Path, mechanism: Mechanism) -> _Table:
    try:
        frame, above = read_table(path)
        beside = path.with_suffix(".toml")
        text = beside.read_text(encoding=ENCODING) if beside.is_file() else above
    except (OSError, ValueError) as error:
        raise MechanismError(f"{path}: a log must be a table or a bag: {str(error).splitlines()[0]}") from error
    description = read_description(text, str(beside if beside.is_file() else path))
    return _table_of(frame, description, mechanism, path)


def _table_of(frame: "pd.DataFrame", description: Description, mechanism: Mechanism, path: Path) -> _Table:
    """A frame with the content of its columns.

    Raises:
        MechanismError: If two columns have the same content, or a declaration refers to a missing column.
    """
    columns = named_columns(list(map(str, frame.columns)), description.columns, mechanism, path)
    names = {ours: column.file for ours, column in columns.items()}
    units = {ours: column.unit for ours, column in columns.items() if column.unit}
    used = [names[name] for name in names if MOTION_OR_EFFORT.fullmatch(name)]
    frame = frame.dropna(subset=used, how="all").reset_index(drop=True)  # rows of other topics
    signs = {of_actuator(name, mechanism, path): sign for name, sign in description.signs.items()}
    for name in signs:
        if name not in names:  # or a misspelt name would leave the sign as it is
            raise MechanismError(f"{path}: signs: names must be columns ({', '.join(names)}), got '{name}'")
    return _Table(path=path, frame=frame, description=description, names=names, units=units, signs=signs)


def _unit_of_epoch(stamp: float) -> float:
    """Unit of a date since 1970 [s]: those of this century in ms, µs and ns differ by a thousand."""
    return next((factor for least, factor in EPOCHS if stamp > least), 1.0)


def _in_quotes(name: str) -> str:
    return f"'{name}'"


def _effort_quantity(mechanism: Mechanism, actuator: int) -> str:
    return "torque" if mechanism.actuator_units[actuator] == "N m" else "force"


def _whole_state(table: _Table, mechanism: Mechanism) -> dict[str, Any]:
    """Motion of all joints from MuJoCo's state; quaternions have no unit."""
    joints = [joint for joint in mechanism.joints if joint.body != WORLD]
    positions: list[str] = []
    rates: list[str] = []
    for joint in joints:
        one = "length" if joint.kind == "slide" else "angle"
        positions += {"ball": [""] * 4, "free": ["length"] * 3 + [""] * 4}.get(joint.kind, [one])
        rates += {"ball": ["angle"] * 3, "free": ["length"] * 3 + ["angle"] * 3}.get(joint.kind, [one])
    q = _columns(table, "qpos", positions)
    qd, qdd = (_columns(table, name, rates) if f"{name}.0" in table.names else None for name in ("qvel", "qacc"))
    return {
        "joints": tuple(joint.name for joint in joints),
        "kinds": tuple(joint.kind for joint in joints),
        "q": q,
        "qd": qd,
        "qdd": qdd,
    }


def _columns(table: _Table, name: str, quantities: Sequence[str]) -> Array:
    extra = f"{name}.{len(quantities)}"
    if extra in table.names:
        raise MechanismError(
            f"{table.path}: must have {len(quantities)} columns '{name}.*' for this model, got more: '{extra}'"
        )
    return np.stack(
        [table.column(f"{name}.{k}", quantity) for k, quantity in enumerate(quantities)],
        axis=1,
    )


def _named_joints(table: _Table, mechanism: Mechanism) -> dict[str, Any]:
    """Motion of the joints, and tendons, that have columns."""
    joints = [name.removesuffix(".q") for name in table.names if name.endswith(".q")]
    quantities = {drive.name: _drive_quantity(mechanism, drive) for drive in mechanism.drives}
    quantities |= {joint.name: "length" if joint.kind == "slide" else "angle" for joint in mechanism.joints}
    motion: dict[str, Any] = {"joints": tuple(joints)}
    for rate in STATES:
        given = [f"{name}.{rate}" in table.names for name in joints]
        if any(given):
            values = [table.column(f"{name}.{rate}", quantities.get(name, "angle")) for name in joints]
            motion[rate] = np.stack(values, axis=1)
    return motion


def _drive_quantity(mechanism: Mechanism, drive: Coordinate) -> str:
    return "angle" if mechanism.effort_unit(drive) == "N m" else "length"
