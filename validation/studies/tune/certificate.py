"""The certificate of tuned settings: what is claimed, of which files, and in which engine."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loopcheck.robots.errors import OutputError
from loopcheck.robots.schema import reason_of
from loopcheck.validation.studies.tune.trial import Trial

FILE = "certificate.json"


class Claim(BaseModel):
    """What the settings give on a motion."""

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
    def from_trial(cls, trial: Trial) -> "Claim":
        """The claim that a trial supports."""
        return cls(**{name: getattr(trial, name) for name in cls.model_fields})


class Certificate(BaseModel):
    """Everything that is needed to find the same figures again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    loopcheck: str
    """Version of loopcheck."""
    engine: str
    engine_version: str
    precision: Literal["double"] = "double"
    model: str
    """Name of the file with the settings: the tuned model, or a script of calls for the user's script."""
    files: dict[str, str]
    """SHA-256 of the model and of all files that belong to it, by path relative to the model."""
    original: dict[str, str]
    """SHA-256 of the original files."""
    mode: str
    configuration: str
    actuated: str
    motion: str
    """File of the motion beside the certificate; empty for an automatic motion."""
    accuracy: float
    """Largest claimed error [-]."""
    includes_start: bool
    settings: dict[str, str]
    bandwidth: float
    """Bandwidth of the controller [rad/s]."""
    held_out: list[str]
    """Motions that were not used in the search."""
    inertial: float
    """Largest difference of inertial efforts from the original, over their scale [-]."""
    claims: list[Claim] = Field(min_length=1)
    digest: str = ""
    """SHA-256 of all fields above, to detect edited figures."""

    def signed(self) -> "Certificate":
        """The same with its digest."""
        return self.model_copy(update={"digest": self.expected_digest})

    @property
    def has_script(self) -> bool:
        """Whether the settings are in a script beside the model, and not in the model itself."""
        return not self.model.endswith(".xml")

    @property
    def expected_digest(self) -> str:
        """What the digest must be."""
        content = json.dumps(self.model_dump(exclude={"digest"}), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def read_certificate(path: Path) -> Certificate:
    """A certificate from its file.

    Raises:
        OutputError: If it is not there or none.
    """
    try:
        return Certificate.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: {error.strerror}") from error
    except ValidationError as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: {reason_of(error, Certificate)}") from error
    except ValueError as error:
        raise OutputError(f"{path}: must be a certificate of loopcheck: {error}") from error


def hashes(files: Iterable[Path], home: Path) -> dict[str, str]:
    """SHA-256 of files by their places from a folder; of those that are not there, nothing.

    Args:
        files: The files.
        home: The folder.
    """
    existing = sorted({file.absolute() for file in files if file.is_file()})
    return {
        Path(os.path.relpath(file, home.absolute())).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in existing
    }


def settings_in(own: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Settings that a file does not have by itself.

    Args:
        own: What it has.
        settings: What it should have.
    """
    return {
        name: value
        for name, value in settings.items()
        if own.get(name, "").split()[: len(value.split())] != value.split()
    }
