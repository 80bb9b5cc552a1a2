"""Declarations of a log beside its numbers: units, signs, column names, and the time at which its efforts acted.

As TOML: in lines that begin with `#` above the header of a CSV, in a file of the same name that ends in `.toml`, or in
the metadata of a Parquet file under `loopcheck`.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loopcheck.robots.errors import MechanismError, ShapeError
from loopcheck.robots.log import Convention, EffortTime, Held, Instantaneous
from loopcheck.robots.schema import reason_of

Side: TypeAlias = Literal["motor", "joint"]
SIDES = get_args(Side)
HELD = ("held", "held-until")
"""Words for efforts that acted from the time of their row on, and until then."""
INSTANTANEOUS = "instantaneous"
FACTORS: Mapping[str, Mapping[str, float]] = {
    "time": {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "angle": {"rad": 1.0, "deg": np.pi / 180, "mrad": 1e-3, "rev": 2 * np.pi},
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254},
    "torque": {"N m": 1.0, "N cm": 1e-2, "N mm": 1e-3, "mN m": 1e-3, "kN m": 1e3, "lbf in": 0.1129848290276167},
    "force": {"N": 1.0, "mN": 1e-3, "kN": 1e3, "lbf": 4.4482216152605},
}
"""Units that can be declared, in s, rad, m, N m and N."""
REACTIONS = {field.name: get_args(field.type) for field in fields(Convention)}
"""Keys of a convention of wrenches with their values; all are required."""
SPELLINGS = {"second": "s", "seconds": "s", "°": "deg", "degree": "deg", "degrees": "deg", "newton": "N", "µm": "um"}
"""Other spellings of units, in lower case."""
RATES = re.compile(r"/\s*(s|sec)(\^?2|²)?$")
"""Ends of the units of velocities and accelerations."""


class Units(BaseModel):
    """Units of a log's columns, unless the header of a column states another unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    time: str = "s"
    angle: str = "rad"
    length: str = "m"
    torque: str = "N m"
    force: str = "N"


class Description(BaseModel):
    """Declarations of a log."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    effort_time: str = ""
    """`held:SECONDS`, `held-until:SECONDS` or `instantaneous`; empty if unknown."""
    side: Side = "motor"
    """Side of the gear on which the efforts are: `motor` before it, `joint` behind it."""
    reactions: str = ""
    """Convention of the wrenches in connections, `on=child point=joint axes=child`; empty if unknown."""
    source: str = ""
    """Tool that wrote the log."""
    units: Units = Units()
    columns: Mapping[str, str] = Field(default_factory=dict)
    """Names in the file by our names, as `{"hip.q": "Hip Angle"}`."""
    signs: Mapping[str, Literal[-1, 1]] = Field(default_factory=dict)
    """-1 for columns of opposite sign, by our names."""


def read_description(text: str, where: str) -> Description:
    """A description from its TOML; a line `reactions: ...` stands for `reactions = "..."`.

    Raises:
        MechanismError: If it is invalid TOML, or declares a property that logs do not have.
    """
    try:
        text = re.sub(r"(?m)^\s*reactions:\s*(.*?)\s*$", lambda line: f"reactions = {json.dumps(line[1])}", text)
        description = Description(**tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise MechanismError(f"{where}: the description of a log must be TOML: {error}") from error
    except ValidationError as error:
        raise MechanismError(f"{where}: {reason_of(error, Description)}") from error
    for quantity, unit in description.units:
        unit_factor(quantity, unit, where)
    effort_time_of(description.effort_time, where)
    convention_of(description.reactions, where)
    return description


def convention_of(text: str, where: str) -> Convention | None:
    """Convention of wrenches, from `on=child point=joint axes=child`; None of an empty text.

    Raises:
        MechanismError: If it does not have all keys once, or an unknown key or value.
    """
    if not text:
        return None
    found = [tuple(part.split("=", 1)) for part in re.split(r"[\s,]+", text)]
    stated = dict(part if len(part) == 2 else (*part, "") for part in found)
    is_known = stated.keys() == REACTIONS.keys() and all(value in REACTIONS[key] for key, value in stated.items())
    if len(stated) < len(found) or not is_known:
        form = " ".join(f"{key}={'|'.join(values)}" for key, values in REACTIONS.items())
        raise MechanismError(f"{where}: reactions must be '{form}', got '{text}'")
    return Convention(**cast("Any", stated))


def effort_time_of(text: str, where: str) -> EffortTime | None:
    """When efforts acted, from `held:SECONDS`, `held-until:SECONDS` or `instantaneous`; None of an empty text.

    Raises:
        MechanismError: If it is neither.
    """
    kind, _, seconds = text.partition(":")
    if not text:
        return None
    if text == INSTANTANEOUS:
        return Instantaneous()
    try:
        if kind in HELD:
            return Held(float(seconds), until=kind == HELD[1])
    except ShapeError as error:
        raise MechanismError(f"{where}: effort_time: {error}") from error
    except ValueError:
        pass
    raise MechanismError(
        f"{where}: effort_time must be held:SECONDS, held-until:SECONDS or {INSTANTANEOUS}, got '{text}'"
    )


def side_of(text: str, where: str) -> Side | None:
    """Side of the gear on which efforts are; None of an empty text.

    Raises:
        MechanismError: If it is neither side.
    """
    if text not in ("", *SIDES):
        raise MechanismError(f"{where}: side must be {' or '.join(SIDES)}, got '{text}'")
    return cast("Side", text) if text else None


def in_text(effort_time: EffortTime) -> str:
    """Input of `effort_time_of`, exactly the same time."""
    return _in_text(effort_time, repr)


def in_words(effort_time: EffortTime) -> str:
    """The same with six digits, for messages and tables."""
    return _in_text(effort_time, "{:.6g}".format)


def _in_text(effort_time: EffortTime, number: Callable[[float], str]) -> str:
    if not isinstance(effort_time, Held):
        return INSTANTANEOUS
    return f"{HELD[effort_time.until]}:{number(float(effort_time.seconds))}"


def unit_factor(quantity: str, unit: str, where: str) -> float:
    """Factor that converts numbers in a unit to s, rad, m, N m or N.

    Args:
        quantity: Time, angle, length, torque or force.
        unit: The unit; of rates, per s or s², the unit of the numerator.
        where: Place of the unit, for the error message.

    Raises:
        MechanismError: If the quantity has no such unit; the message lists its units.
    """
    base = RATES.sub("", unit.strip()).strip()
    base = SPELLINGS.get(base.lower(), base)
    known = FACTORS[quantity]
    for name, factor in known.items():
        if _plain(name) == _plain(base):
            return factor
    raise MechanismError(f"{where}: unit of {quantity} must be among {', '.join(known)}, got '{unit}'")


def _plain(unit: str) -> str:
    """A unit without the characters between its parts."""
    return re.sub(r"[\s*·.\-]", "", unit).replace("newton", "N")
