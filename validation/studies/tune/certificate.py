"""The certificate of tuned settings: claims, files, and engine."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from loopcheck.robots.errors import OutputError
from loopcheck.robots.model_file import file_hash
from loopcheck.robots.schema import reason_of
from loopcheck.validation.studies.tune.judged_run import JudgedRun

FILE = "certificate.json"
Schema: TypeAlias = Literal["loopcheck.certificate/1", "loopcheck.certificate/2"]
FIRST_SCHEMA: Schema = "loopcheck.certificate/1"
SCHEMA: Schema = "loopcheck.certificate/2"
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
    """Conditions of all claims. The held-out motions follow from them, so that nobody can choose them."""

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

    @property
    def held_out_seeds(self) -> list[int]:
        """Seeds of the random motions that only the proof uses."""
        content = self.model_dump(include=set(Statement.model_fields))
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
        return [int.from_bytes(digest[4 * k : 4 * k + 4]) for k in range(HELD_OUT)]


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
    """Name of the model file; empty in schema 1 with a script."""
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
    def content(self) -> dict[str, Any]:
        """Content of the file."""
        return self.model_dump(by_alias=True)


def checksum(content: Mapping[str, Any], name: str = "checksum") -> str:
    """Checksum of the content of a certificate.

    Args:
        name: Name of the entry with the checksum, which is left out.
    """
    counted = {key: value for key, value in content.items() if key != name}
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
        if "schema" not in content:
            return _from_first_schema(content)
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema must be {SCHEMA}, got {content['schema']}")
        return Certificate.model_validate(content)
    except OSError as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: {error.strerror}") from error
    except ValidationError as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: {reason_of(error, Certificate)}") from error
    except KeyError as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: it has no entry {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: {error}") from error


def _from_first_schema(content: Mapping[str, Any]) -> Certificate:
    """A certificate of schema 1, without the hash of a motion; its held-out motions were chosen by the search."""
    old = dict(content)
    intact = old.pop("digest") == checksum(content, "digest")
    made_by = {name: old.pop(name) for name in ("loopcheck", "original", "inertial")}
    del old["held_out"]
    if not old["model"].endswith(".xml"):
        old |= {"script": {old["model"]: old["files"][old["model"]]}, "files": made_by["original"], "model": ""}
    old["motion"] = {old["motion"]: ""} if old["motion"] else {}
    certificate = Certificate.model_validate({**old, "schema": FIRST_SCHEMA, "made_by": made_by})
    return certificate.with_checksum() if intact else certificate


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
