"""The registered tolerances: data in `tolerances.toml`, each with its measured noise, its margin and its reason."""

import math
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat

from loopcheck.robots.efforts import Limits
from loopcheck.robots.errors import NotFoundError, ToleranceError
from loopcheck.robots.formats.model_file import file_hash
from loopcheck.validation.common.limits import MARGINS
from loopcheck.validation.common.sources import REFERENCE

REGISTER = Path(__file__).with_name("tolerances.toml")


class Tolerance(BaseModel):
    """Limits of a source for agreement with the reference; all limits are the largest values allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    relative_error: PositiveFloat | None = None
    """Effort error over the scale of its actuator [-]; None if the source is informational."""
    closure_drift: PositiveFloat | None = None
    """Opening of the loops in the source's own state [-]: lengths over the size of the robot, or rad."""
    tracking_error: PositiveFloat | None = None
    """Distance of a drive from its motion [-]: lengths over the size of the robot, or rad."""
    power_imbalance: PositiveFloat | None = None
    """Supplied power minus rate of change of energy, relative to the acting powers [-]."""
    term_sum: PositiveFloat | None = None
    """Distance of the efforts from the signed sum of their terms, over the scale of their actuator [-]."""
    noise: PositiveFloat | None = None
    """Measured noise of `relative_error` [-]."""
    noise_from: str = ""
    """Measurement of the noise."""
    reason: str
    """Reason for this value, or for a source without a verdict."""
    margin_reason: str = ""
    """Reason for a margin outside of `MARGINS`."""

    @property
    def margin(self) -> float | None:
        """Tolerance over noise [-]."""
        return None if self.relative_error is None or self.noise is None else self.relative_error / self.noise

    @property
    def limits(self) -> Limits | None:
        """Limits of a simulation; None for other sources, and for simulations without a verdict."""
        numbers = self.model_dump(include={"relative_error", "closure_drift", "tracking_error"})
        return None if None in numbers.values() else Limits(**numbers)

    @property
    def has_fair_margin(self) -> bool:
        """Return whether the tolerance has a moderate margin over its noise, or a reason for another margin."""
        low, high = MARGINS
        return bool(self.margin_reason) or (self.margin is not None and low <= self.margin <= high)


class Register(BaseModel):
    """The file of tolerances."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    routes: Mapping[str, Tolerance] = Field(default_factory=dict)
    audits: Mapping[str, Tolerance] = Field(default_factory=dict)


def registered() -> Mapping[str, Tolerance]:
    """Tolerances by name of the source."""
    return _register().routes


def audits() -> Mapping[str, Tolerance]:
    """Tolerances of the audit by tier: errors of quantities relative to their size."""
    return _register().audits


@cache
def _register() -> Register:
    return Register.model_validate(tomllib.loads(REGISTER.read_text(encoding="utf-8")))


def with_own_limits(limits: Mapping[str, float]) -> Mapping[str, Tolerance]:
    """The registered tolerances with a user's own limits of the relative error instead.

    Args:
        limits: By name of the source [-].

    Raises:
        NotFoundError: If a source has no registered tolerance.
        ToleranceError: If it is the reference, or a limit is not a positive number.
    """
    tolerances = dict(registered())
    for name, limit in limits.items():
        if name not in tolerances:
            raise NotFoundError("source", name, tolerances)
        if name == REFERENCE:
            raise ToleranceError(f"tolerance of {name} must not be set: it is the reference, without an error to limit")
        if not 0 < limit < math.inf:
            raise ToleranceError(f"tolerance of {name} must be positive and finite, got {limit:g}")
        before = tolerances[name].relative_error
        registered_limit = "not judged" if before is None else f"{before:g}"
        reason = f"Limit of the user, instead of the registered limit: {registered_limit}."
        tolerances[name] = tolerances[name].model_copy(update={"relative_error": limit, "reason": reason})
    return tolerances


def digest() -> str:
    """SHA-256 of the file of tolerances."""
    return file_hash(REGISTER)
