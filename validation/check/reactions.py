"""Forces in the joints: rows of the tables `reactions` and `connections`, computed in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loopcheck import engines
from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.dynamics.reactions import Reactions, reactions
from loopcheck.analytic.dynamics.recursive_wrenches import recursive_wrenches
from loopcheck.analytic.dynamics.wrenches import ROUND_OFF, Uniqueness, Wrenches, differences, disagreement
from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.analytic.kinematics.redundancy import moving_part
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import axes_of
from loopcheck.analytic.logs.closing.closed_log import closed_log
from loopcheck.analytic.logs.logged_wrenches import residual_wrenches, wrench_log
from loopcheck.analytic.motion.configurations import normal
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import COMPONENTS, Connection
from loopcheck.robots.efforts import run_of
from loopcheck.robots.errors import EngineError, HarnessError
from loopcheck.robots.log import COMMON, Instantaneous
from loopcheck.robots.mechanism import WORLD, ConnectClosure
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import size
from loopcheck.validation.check.efforts.outcome import Ran, Unmodified
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import table
from loopcheck.validation.common.tolerances import Tolerance
from loopcheck.validation.common.verdicts import CASE, Key, within
from loopcheck.validation.common.wrench_errors import wrench_errors
from loopcheck.validation.execution.errors import internal_error
from loopcheck.validation.execution.journal import Task

if TYPE_CHECKING:
    import pandas as pd

    from loopcheck.validation.check.efforts.rules import Evidence
    from loopcheck.validation.check.record import RunOutput
    from loopcheck.validation.execution.workers import WorkerPool

OF_GAP = 1.0
"""Allowed relative difference of both ways per accuracy of the loops [-]: a force has that moment at a gap."""
SAMPLES = 400
"""Most judged samples of an unmodified simulation, evenly spread [-]."""
NO_LOAD = "no load: nothing moves, and no force acts"
"""Note of a robot without any term of a wrench."""
WRONG_EFFORTS = "its efforts disagree too"
"""Note of the forces of a simulation whose efforts are wrong, which are those of other loads."""
UNDETERMINED = "rigid bodies determine nothing of this wrench"
"""Note of a connection without a unique functional."""
SECOND_WAY = Lagrange.name
"""The second analytic way, judged against the first."""


class Rows(NamedTuple):
    """Rows of a case, or of a source in it."""

    reactions: list[Mapping[str, Any]]
    connections: list[Mapping[str, Any]]
    found: Reactions | None = None
    """The analytic wrenches, for the readings of engines; None if they failed."""


def reaction_tables(
    cases: Sequence[Case], output: RunOutput, evidence: Evidence, pool: WorkerPool, efforts: pd.DataFrame
) -> Mapping[str, pd.DataFrame]:
    """Both tables of all cases with a motion: the analytic wrenches, and those that simulations have read.

    Args:
        output: Results of the workers.
        evidence: Tolerances, and reasons against comparisons with an engine.
        efforts: Table `summary`.
    """
    wrong = {*efforts.loc[efforts["verdict"] == "disagree", [*CASE, "source"]].itertuples(index=False, name=None)}
    moving = {case.key: case for case in cases if isinstance(output.motions.get(case.key), Motion)}
    tasks = [
        Task(reaction_rows, (case, output.motions[key]), partial(_not_run, case, sources.REFERENCE))
        for key, case in moving.items()
    ]
    analytic: dict[Key, Rows] = dict(zip(moving, pool.results(tasks, "forces in the joints"), strict=True))
    found = {key: rows.found for key, rows in analytic.items() if rows.found is not None}
    tasks = []
    for outcome in output.outcomes:
        name, key = outcome.source, outcome.case.key
        if key in found and isinstance(outcome, Ran) and outcome.wrenches:
            engine = sources.engine_of(name)
            reason = evidence.doubts.get(key) or evidence.blocking_reasons.get((key, engine), "")
            cause = WRONG_EFFORTS if (*key, name) in wrong else ""
            args = (outcome, output.motions[key], found[key], evidence.tolerances[name], reason, cause)
            tasks.append(Task(reading_rows, args, partial(_not_run, outcome.case, name), engine=engine))
    rows = [*analytic.values(), *pool.results(tasks, "forces read in engines")]
    return {
        name: table(name, [row for of_case in rows for row in getattr(of_case, name)])
        for name in ("reactions", "connections")
    }


def _rows_or_reason(case: Case, source: str, rows: Callable[[], Rows]) -> Rows:
    """Rows, or a row with the reason of their absence."""
    try:
        return rows()
    except HarnessError as error:
        return _not_run(case, source, str(error))
    except Exception as error:  # a bug of ours or of an engine is a result too: the other rows must not be lost
        return _not_run(case, source, internal_error(error))


def reaction_rows(case: Case, motion: Motion) -> Rows:
    """Analytic wrenches of all connections at some samples, their largest values, and the verdict on both ways."""

    def rows() -> Rows:
        found = reactions(case, motion, normal(case.mechanism))
        state = State(mechanism=case.mechanism, q=motion.q, qd=motion.qd)
        whole = recursive_wrenches(state, motion.qdd, needed_efforts(state, motion.qdd).effort)
        reference = _Read(case, found, sources.REFERENCE, "", motion.t, whole.wrench)
        second = _Read(case, found, SECOND_WAY, "", found.motion.t, found.maximal.wrench)
        limit = ROUND_OFF + OF_GAP * case.mechanism.closing.accuracy
        return Rows(
            [*reference.values()],
            [*reference.loads("reference", np.nan), *second.loads("", limit)],
            found,
        )

    return _rows_or_reason(case, sources.REFERENCE, rows)


def reading_rows(
    outcome: Ran, motion: Motion, found: Reactions, tolerance: Tolerance, reason: str = "", cause: str = ""
) -> Rows:
    """Wrenches that an engine has read while it simulated the motion, against the analytic ones.

    Of a robot with redundant drives, the analytic wrenches are those of the efforts of the engine; of an unmodified
    simulation, those of its own motion.

    Args:
        found: The analytic wrenches.
        tolerance: Limits of the efforts.
        reason: Reason against any comparison with the engine; empty without one.
        cause: Known cause of a difference; empty for the faults of its readings.
    """

    def rows() -> Rows:
        if not isinstance(outcome, Unmodified):
            return _read_rows(outcome, motion, found, tolerance, reason, cause)
        loads = () if reason else _unmodified_loads(outcome, found, tolerance.relative_error)  # its efforts name it
        return Rows([], [*loads])

    return _rows_or_reason(outcome.case, outcome.source, rows)


def _read_rows(outcome: Ran, motion: Motion, found: Reactions, tolerance: Tolerance, reason: str, cause: str) -> Rows:
    """Rows of a simulation of the motion; arguments as in `reading_rows`."""
    case, source, against = outcome.case, outcome.source, found
    if moving_part(case.mechanism, found.motion) is not None:
        state = State(mechanism=case.mechanism, q=found.motion.q, qd=found.motion.qd)
        efforts = outcome.history.effort[np.searchsorted(motion.t, found.motion.t)]
        against = found._replace(recursive=recursive_wrenches(state, found.motion.qdd, efforts))
    limit = (tolerance.relative_error or np.nan) + OF_GAP * case.mechanism.closing.accuracy
    faults = {
        one.name: f"{one.name} is wrong in any convention: {one.fault}" if one.fault else ""
        for one in engines.part(sources.engine_of(source), "wrenches").READINGS
    }
    verdict = "informational" if tolerance.relative_error is None else ""
    rows = Rows([], [])
    for name, wrench in outcome.wrenches.items():
        given = np.isfinite(wrench)
        if (given[1:] != given[-1:]).any() or np.isinf(wrench).any():  # the first sample may be refused
            raise EngineError(f"{source}: {name} must be finite at all times or at none, got other values")
        read = _Read(case, against, source, name, motion.t, wrench)
        rows.reactions.extend(read.values())
        note = reason or cause or ("" if verdict else faults.get(name, ""))
        rows.connections.extend(read.loads("not comparable" if reason else verdict, limit, note))
    return rows


def _unmodified_loads(outcome: Unmodified, found: Reactions, accuracy: float | None) -> Iterator[Mapping[str, Any]]:
    """Rows of the table `connections` of an unmodified simulation, whose pins are soft: judged as its efforts.

    The wrenches that its own motion requires are those of `analytic/noc`; the same samples are judged as of its
    efforts. Errors are relative to the largest required moment or force of the connection.

    Args:
        accuracy: Largest error that agrees [-]; None if it is not judged.
    """
    case, settled, log = outcome.case, outcome.settled, run_of(outcome.history).log
    closed = closed_log(case.mechanism, log, log.q[0])
    start = log.t[0] + (settled.window if np.isfinite(settled.window) else 0.0)
    wrenches = wrench_log(closed, COMMON, normal(case.mechanism))
    residual, _ = residual_wrenches(closed, wrenches, Instantaneous(), start=start, noiseless=True, most=SAMPLES)
    errors = wrench_errors(wrenches, residual)
    logged, t = residual.effort.reshape(len(residual.bases), -1, 6), residual.motion.t
    largest, divisor = errors.figures["largest"], errors.required.divisor
    determined = found.of_robot.functionals.min(axis=0)
    for j, (name, k, (verdict, note)) in zip(errors.places, errors.verdicts(accuracy or np.inf), strict=True):
        if settled.reason and verdict != "agree":
            verdict, note = "not comparable", settled.reason  # noqa: PLW2901
        elif accuracy is None and verdict in ("agree", "disagree"):
            verdict, note = "informational", ""  # noqa: PLW2901
        moment_error, force_error = largest.reshape(-1, 2)[k // 2]
        yield {
            **_of_case(case, outcome.source, "log"),
            "connection": name,
            "body": _body(case, found.connections[j]),
            **_largest("force", logged[:, j, 3:], t),
            **_largest("moment", logged[:, j, :3], t),
            "determined": int(determined[j]),
            "moment_error": moment_error,
            "force_error": force_error,
            "error": largest[k] / divisor[k] if divisor[k] else np.nan,
            "tolerance": accuracy,
            "verdict": verdict,
            "note": note,
        }


@dataclass(frozen=True)
class _Read:
    """Wrenches of a source in a case, as it reads them."""

    case: Case
    found: Reactions
    """The analytic wrenches."""
    source: str
    reading: str
    t: Array
    """Its times [s], shape (nt,)."""
    whole: Array
    """Its wrenches then [N m, N], shape (nt, connections, 6)."""

    @cached_property
    def wrench(self) -> Array:
        """At the times of the analytic wrenches [N m, N], shape (samples, connections, 6)."""
        found: Array = self.whole[np.searchsorted(self.t, self.found.motion.t)]
        return found

    @cached_property
    def unique(self) -> Uniqueness:
        """What its components determine."""
        return self.found.of_robot.among(np.isfinite(self.wrench))

    def shown(self, wrenches: Array) -> Array:
        """Unique components [N m, N], the others NaN, shape (nt, connections, 6)."""
        return np.where(self.found.of_robot.components.all(axis=0), self._rounded(wrenches), np.nan)

    def _rounded(self, wrenches: Array) -> Array:
        """Wrenches without components that are round-off."""
        return np.where(np.abs(wrenches) < ROUND_OFF * np.repeat(self.found.recursive.terms, 3), 0.0, wrenches)

    @cached_property
    def in_world(self) -> Array:
        """Unique components in world axes [N m, N], the others NaN, shape (samples, connections, 6)."""
        P = State.at_rest(self.case.mechanism, self.found.motion.q).poses
        R = [axes_of(P, connection.body) for connection in self.found.connections]
        T = np.kron(np.eye(2), np.reshape(R, (-1, len(P.R), 3, 3)).swapaxes(0, 1))  # of a wrench
        lost = np.linalg.norm((np.eye(6) - self.unique.projectors) @ T.swapaxes(2, 3), axis=2)
        turned = (T @ np.where(np.isfinite(self.wrench), self.wrench, 0.0)[..., None])[..., 0]
        return np.where((lost < RANK_TOLERANCE).all(axis=0), self._rounded(turned), np.nan)

    def values(self) -> Iterator[Mapping[str, Any]]:
        """Rows of the table `reactions`."""
        balls = [closure.name for closure in self.case.mechanism.closures if isinstance(closure, ConnectClosure)]
        values = self.shown(self.wrench)
        for j, connection in enumerate(self.found.connections):
            if np.isnan(self.wrench[:, j]).all():
                continue
            for i, component in enumerate(COMPONENTS):
                for k, t in enumerate(self.found.motion.t):
                    yield {
                        **_of_case(self.case, self.source, self.reading),
                        "connection": connection.name,
                        "component": component,
                        "unit": "N m" if i < 3 else "N",
                        "t": t,
                        "value": values[k, j, i],
                        "in_world": self.in_world[k, j, i],
                        "unique": _unique(self.found, j, i, balls),
                    }

    def loads(self, verdict: str, limit: float, note: str = "") -> Iterator[Mapping[str, Any]]:
        """Rows of the table `connections`.

        Args:
            verdict: Given verdict; empty to compare with the analytic wrenches.
            limit: Largest error that agrees [-].
            note: Reason of the verdict, shown unless both agree.
        """
        values, reference = self.shown(self.whole), self.found.recursive
        given = Wrenches(wrench=np.nan_to_num(self.wrench))  # what is not given is not compared
        compared = (reference, given, self.unique, size(self.case.mechanism))
        left, errors = differences(*compared), disagreement(*compared)
        determined = self.unique.functionals.max(axis=0)
        for j, connection in enumerate(self.found.connections):
            if np.isnan(self.wrench[:, j]).all():
                continue
            error, judged, why = float(errors[j]), verdict, note
            if not determined[j]:
                judged, why = verdict or "informational", UNDETERMINED
            elif not verdict and any(reference.terms):
                judged = "agree" if within(error, limit) else "disagree"
            elif not verdict:
                judged, why = "not comparable", NO_LOAD
            errors_of = {
                "moment_error": _longest(left[:, j, :3]),
                "force_error": _longest(left[:, j, 3:]),
                "error": error,
            }
            yield {
                **_of_case(self.case, self.source, self.reading),
                "connection": connection.name,
                "body": _body(self.case, connection),
                **_largest("force", values[:, j, 3:], self.t),
                **_largest("moment", values[:, j, :3], self.t),
                "determined": int(determined[j]),
                **(errors_of if determined[j] and verdict != "reference" else {}),
                "tolerance": limit,
                "verdict": judged,
                "note": "" if judged == "agree" else why,
            }


def _unique(found: Reactions, connection: int, component: int, balls: Sequence[str]) -> str:
    """Whether a component is unique in all samples, in words."""
    if found.of_motion.components[:, connection, component].all():
        return "yes"
    if found.of_robot.components[:, connection, component].all():
        return "for these efforts"
    by_file = found.of_file.components[:, connection, component].all()
    return f"no: the file closes {', '.join(balls)} as a ball" if by_file else "no"


def _body(case: Case, connection: Connection) -> str:
    return "world" if connection.body == WORLD else case.mechanism.bodies[connection.body].name


def _largest(name: str, values: Any, times: Any) -> Mapping[str, float]:
    """Largest length of the determined part of a vector (nt, 3), and its time; NaN if no component is determined."""
    if np.isnan(values).all():
        return {name: np.nan, f"{name}_t": np.nan}
    lengths = np.sqrt(np.nansum(values**2, axis=1))
    return {name: float(lengths.max()), f"{name}_t": float(times[lengths.argmax()])}


def _longest(vectors: Array) -> float:
    return float(np.linalg.norm(vectors, axis=1).max())


def _of_case(case: Case, source: str, reading: str) -> dict[str, str]:
    return {**dict(zip(CASE, case.key, strict=True)), "source": source, "reading": reading}


def _not_run(case: Case, source: str, reason: str) -> Rows:
    nothing = {"connection": "", "body": "", "determined": 0}
    return Rows([], [{**_of_case(case, source, ""), **nothing, "verdict": "not run", "note": reason}])
