"""The certificate of tuned settings: claims, files, and engine."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from loopcheck.robots.errors import OutputError
from loopcheck.robots.formats.model_file import file_hash
from loopcheck.robots.schema import reason_of
from loopcheck.validation.tune.runs.judged_run import JudgedRun

FILE = "certificate.json"
Schema: TypeAlias = Literal["loopcheck.certificate/3"]
SCHEMA: Schema = "loopcheck.certificate/3"
OLDER = ("loopcheck.certificate/1", "loopcheck.certificate/2")
HELD_OUT = 2
"""Number of random motions that only the proof uses."""


class Claim(BaseModel):
    """Measured error and cost of the settings on a motion."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    purpose: str
    error: float
    """Largest settled residual over the peak of its actuator's effort [-]."""
    rms: float
    """Largest root mean square of a settled residual over the same peak [-]."""
    start: float
    """Largest residual in the initial transient over the same peak [-]."""
    floor: float
    """Noise floor of `error` [-]."""
    window: float
    """Duration of the visible initial transient [s]."""
    gap: float
    """Widest opening of a loop [m or rad]."""
    cost: float
    """Solver iterations at all stages of all steps of a simulated second [1/s]."""

    @classmethod
    def from_run(cls, run: JudgedRun) -> "Claim":
        """The claim that a run supports."""
        return cls(**{name: getattr(run, name) for name in cls.model_fields})


class Statement(BaseModel):
    """Conditions of all claims."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str
    mode: str
    configuration: str
    actuated: str
    motion: dict[str, str]
    """SHA-256 of the file of the motion, by its name beside the certificate; empty for an automatic motion."""
    accuracy: float = Field(gt=0, allow_inf_nan=False)
    """Largest error over the largest effort that the motion requires [-]."""
    includes_start: bool
    settings: dict[str, str]


class MadeBy(BaseModel):
    """Circumstances of the certificate that cannot be verified later."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    note: Literal["unchecked: loopcheck tune --verify does not compute these entries"] = (
        "unchecked: loopcheck tune --verify does not compute these entries"
    )
    loopcheck: str
    """Version of loopcheck."""
    date: str = ""
    cpu: str = ""
    seconds_per_simulated_second: float | None = None
    """Wall time of a simulated second on this CPU [s]."""
    original: dict[str, str]
    """SHA-256 of the original files."""
    inertial: float
    """Largest difference of inertial efforts from the original, over their scale [-]."""


class Certificate(Statement):
    """Everything that is needed to find the same figures again."""

    schema_name: Schema = Field(default=SCHEMA, alias="schema")
    engine_version: str
    precision: Literal["double"] = "double"
    model: str
    """Name of the model file."""
    files: dict[str, str]
    """SHA-256 of the model and of all files that belong to it, by path relative to the model."""
    script: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of a script of calls with the settings, by its name beside the certificate; otherwise empty."""
    bandwidth: float
    """Bandwidth of the controller [rad/s]."""
    bandwidths: tuple[PositiveFloat, PositiveFloat] | None = None
    """Lowest and highest bandwidth that were tried on the generated motion and hold [rad/s]; there is a claim on each.
    None in older certificates."""
    claims: list[Claim] = Field(min_length=1)
    made_by: MadeBy
    checksum: str = ""
    """SHA-256 of all fields above. It detects accidental changes; anyone can compute it, so it proves no author."""

    def with_checksum(self) -> "Certificate":
        """The same with its checksum."""
        return self.model_copy(update={"checksum": checksum(self.content)})

    @property
    def held_out_seeds(self) -> list[int]:
        """Seeds of the random motions that only the proof uses."""
        return held_out_seeds([*self.files.values(), *self.script.values(), *self.motion.values()])

    @property
    def content(self) -> dict[str, Any]:
        """Content of the file."""
        return self.model_dump(by_alias=True)


def held_out_seeds(hashes: Iterable[str]) -> list[int]:
    """Seeds that follow from the contents of files alone: no name, accuracy or other entry chooses the motions.

    Args:
        hashes: SHA-256 of the model, of all files that belong to it, and of the motion, in any order.
    """
    digest = hashlib.sha256("".join(sorted(hashes)).encode()).digest()
    return [int.from_bytes(digest[4 * k : 4 * k + 4]) for k in range(HELD_OUT)]


def checksum(content: Mapping[str, Any]) -> str:
    """Checksum of the content of a certificate, without its own entry."""
    counted = {key: value for key, value in content.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()


def read_certificate(path: Path) -> Certificate:
    """A certificate from its file.

    Raises:
        OutputError: If the file is missing or no certificate.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"a certificate must be an object with entries, got a {type(content).__name__}")
        if (schema := content.get("schema", "loopcheck.certificate/1")) != SCHEMA:
            older = f"{schema}, whose held-out motions its maker could choose" if schema in OLDER else schema
            raise ValueError(f"schema must be {SCHEMA}, got {older}. Make a new one with loopcheck tune")
        return Certificate.model_validate(content)
    except OSError as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: {error.strerror}") from error
    except ValidationError as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: {reason_of(error, Certificate)}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: {error}") from error


def hashes(files: Iterable[Path], home: Path) -> dict[str, str]:
    """SHA-256 of the existing files by their paths relative to a folder."""
    existing = sorted({file.absolute() for file in files if file.is_file()})
    return {Path(os.path.relpath(file, home.absolute())).as_posix(): file_hash(file) for file in existing}


def settings_in(own: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Settings that differ from the file's own settings.

    Args:
        own: Settings of the file.
    """
    return {
        name: value
        for name, value in settings.items()
        if own.get(name, "").split()[: len(value.split())] != value.split()
    }
