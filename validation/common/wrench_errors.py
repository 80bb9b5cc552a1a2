"""Errors of the wrenches of a log: moments and forces of a connection by their lengths over time, judged apart."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.analytic.logs.closing.closed_motion import States
from loopcheck.analytic.logs.logged_wrenches import WrenchLog
from loopcheck.analytic.logs.residual import Residual
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.connections import connections
from loopcheck.validation.common.accuracy import Requirement, Verdict
from loopcheck.validation.common.verdicts import IDLE, SEVERITY

PARTS = ("moment", "force")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrenchErrors:
    """Errors of the wrenches of a log; arrays have the moment and the force of each connection in turn."""

    names: Sequence[str]
    """Connections that are logged."""
    places: Sequence[int]
    """Their places among the connections of the mechanism [-]."""
    residual: Residual
    """Residual of six components of each connection of the mechanism."""
    required: Requirement
    figures: Mapping[str, Array]
    """Columns of the table of logs [N m, N], each of shape (2 names,)."""

    @property
    def used(self) -> AnyArray:
        """Whether something of each part is judged, shape (2 names,)."""
        return self.required.scale > 0

    def lengths(self, values: Array) -> Array:
        """Lengths of moments and forces of the logged connections, shape (n, 2 names) or (2 names,).

        Args:
            values: Six components of each connection of the mechanism [N m, N], shape (n, 6 connections).
        """
        return _lengths(values, self.places)

    def verdicts(
        self, accuracy: float, causes: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[tuple[str, int, Verdict]]:
        """Verdict on each connection, with the number of its worse part.

        Args:
            accuracy: Largest error that agrees, over the largest wrench that the motion requires [-].
            causes: Change by which a connection fits, as a phrase.
        """
        largest, floor, divisor = self.figures["largest"], self.figures["largest_floor"], self.required.divisor
        for place, name in enumerate(self.names):
            parts = [k for k in (2 * place, 2 * place + 1) if divisor[k]]
            found = {k: self.required.judged(k, float(largest[k]), float(floor[k]), accuracy) for k in parts}
            loaded = {k: one for k, one in found.items() if not one.note.startswith(IDLE)} or found
            if not loaded:
                yield name, 2 * place, Verdict("not comparable", "no logged component is determined")
                continue
            k = min(loaded, key=lambda k: (SEVERITY.index(loaded[k].verdict), -largest[k] / divisor[k]))
            verdict, note = loaded[k]
            cause = causes.get(name, "") if verdict == "disagree" else ""
            yield name, k, Verdict(verdict, "; ".join(filter(None, (f"{PARTS[k % 2]}: {note}", cause))))


def _lengths(values: Array, places: Sequence[int]) -> Array:
    parts = np.linalg.norm(values.reshape(*values.shape[:-1], -1, 2, 3), axis=-1)
    return np.asarray(parts[..., list(places), :].reshape(*values.shape[:-1], -1))


def wrench_errors(wrenches: WrenchLog, residual: Residual) -> WrenchErrors:
    """Errors of the wrenches of a log by their residual."""
    every, motion, floor = [one.name for one in connections(wrenches.mechanism)], residual.motion, residual.floor
    places = [k for k, name in enumerate(every) if name in wrenches.log.wrenches]
    states = States(q=motion.q, qd=motion.qd, qdd=motion.qdd)
    used = _lengths(np.abs(wrenches.moving(states)).max(axis=(0, 2)), places) > RANK_TOLERANCE
    names = [every[k] for k in places]
    required = Requirement(
        actuators=[f"{name}.{part}" for name in names for part in PARTS],
        units=["N m", "N"] * len(names),
        peak=_lengths(residual.needed, places).max(axis=0) * used,
        scale=_lengths(residual.scale, places) / np.sqrt(3) * used,
    )
    error = _lengths(residual.residual, places)
    figures = {
        "rms": np.sqrt((error**2).mean(axis=0)),
        "largest": error.max(axis=0),
        "rms_floor": _lengths(floor.rms, places),
        "largest_floor": _lengths(floor.largest, places),
        "noise": _lengths(floor.noise, places),
        "truncation": _lengths(floor.truncation, places),
        "scale": required.scale,
        "divisor": required.divisor,
    }
    return WrenchErrors(names=names, places=places, residual=residual, required=required, figures=figures)
