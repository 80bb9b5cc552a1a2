"""Is a hand-written transmission right? Its positions, rates and efforts against a closed mechanism, or against itself.

A transmission is a function from joint positions x, rates ẋ and efforts τ_x to those of the motors, y, ẏ and τ. With T
the derivative of y by x, it must give ẏ = T ẋ and τ = T⁻ᵀ τ_x, and so the same power on both sides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from loopcheck.analytic.transmission.terms import joint_terms
from loopcheck.analytic.transmission.twin import Twin, make_twin, sound_poses, want_driven
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.robot import Case
from loopcheck.validation.common.verdicts import within
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import MEASURED, Computed, Conclusion, Study, StudyResult
from loopcheck.validation.report.blocks import Block, Section, digits, table
from loopcheck.validation.report.terminal import table as shown_table
from loopcheck.validation.serial.audited import Audited
from loopcheck.validation.serial.comparison import sampled_workspace

TABLE = "serial_audit"
POSITION, RATE, EFFORT, POWER = "position", "rate", "effort", "power"
STEP = 1e-3
"""Of differences of the motors' positions [rad or m]: their error is of its fourth power."""
SAMPLES = 64
RIGHT = 1e-6
"""Error over the peak up to which no cause is searched [-]."""
EXPLAINED = 0.1
"""Part of the error that a cause may leave [-]."""
RANGE = 0.2
"""Range of joint positions about zero without a closed mechanism [rad or m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Study):
    """A transmission from a file, at random states."""

    name: ClassVar[str] = "serial.audit"
    page: ClassVar[str] = "audit"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("quantity", "part")},
                "peak": number("that of the row, SI"),
                **{name: number("-") for name in ("largest", "rms")},
                "verdict": text(),
                "note": text(),
            }
        )
    }

    audited: Audited
    closed: Case | None = None
    joints: tuple[str, ...] = ()
    """Joints of the closed mechanism, in the order of the function."""
    hold: tuple[str, ...] = ()
    accuracy: float | None = None
    """Largest acceptable error over the peak [-]."""
    seed: int = 0

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        twin = None
        if self.closed is not None:
            closed = self.closed
            same = {name: name for name in self.joints}
            twin = make_twin(closed.mechanism, closed.guess, closed.mechanism, closed.guess, same, self.hold)
            want_driven(twin)
        states = _states(self.audited, twin, self.seed)
        wanted = reference(self.audited, twin, states)
        rows = [self._judged(row) for row in _rows(states, wanted)]
        causes = list(findings(self.audited, states, wanted))
        record = {
            "file": self.audited.label,
            "closed": twin.closed.mechanism.model.path.name if twin else "",
            "seed": self.seed,
        }
        return Computed({TABLE: self.tables[TABLE].frame(rows)}, {**record, "samples": len(states.x), "causes": causes})

    def _judged(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.accuracy is None:
            return {**row, "verdict": MEASURED}
        return {**row, "verdict": "agree" if within(row["largest"], self.accuracy) else "disagree"}

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows, causes, against = result.tables[TABLE], result.record["causes"], result.record["closed"] or "itself"
        records: Sequence[Any] = rows.to_dict("records")
        figures = ("peak", "largest", "rms")
        shown = [
            [row["quantity"], row["part"], *(digits(row[name]) for name in figures), row["verdict"], row["note"]]
            for row in records
        ]
        worst = max(records, key=lambda row: float(row["largest"]))
        columns = ["quantity", "part", "peak, SI", "largest error [-]", "rms [-]", "verdict", "note"]
        summary = [
            shown_table(columns, shown, title=f"{result.record['file']} against {against}, error over the peak"),
            *(f"Finding: {cause}" for cause in causes),
            f"Largest error: {digits(worst['largest'])} of the peak, {worst['quantity']} of {worst['part']}",
        ]
        blocks: list[Block] = [
            f"{result.record['samples']} random states. Errors are over the peak.",
            *([causes] if causes else []),
        ]
        return Conclusion(
            title=f"loopcheck: transmission {result.record['file']}",
            sections=[Section(title="Audit of a transmission", anchor="audit", blocks=[*blocks, table(rows)])],
            summary=summary,
            verdicts=list(rows["verdict"]),
        )


STUDY = Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Joints at random states, and what the audited transmission makes of them."""

    x: Array
    xd: Array
    efforts: Array
    """Of the joints [N m or N], shape (nt, n)."""
    y: Array
    yd: Array
    tau: Array
    """Of the motors [N m or N], shape (nt, n)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a right transmission gives at the same states."""

    y: Array | None
    """Positions of the motors [rad or m], shape (nt, n); None without a closed mechanism."""
    T: Array
    """Transmission [-, or ratios of the units], shape (nt, n, n)."""
    T_zero: Array
    """The same at the first state's joints, zero or the start [-], shape (n, n)."""
    motors: tuple[str, ...]


def _states(audited: Audited, twin: Twin | None, seed: int) -> States:
    """Poses of the workspace with random rates and efforts."""
    if audited.states is not None:
        return States(**dict(zip(States.__slots__, audited.states, strict=True)))
    generator = np.random.default_rng(seed)
    if twin is None:
        x = np.concatenate([np.zeros((1, audited.count)), generator.uniform(-RANGE, RANGE, (SAMPLES, audited.count))])
    else:
        samples = sampled_workspace(twin, SAMPLES, seed)
        if isinstance(samples, str):
            raise MechanismError(samples)
        x = samples.x[samples.closed_reaches]
    xd, efforts = generator.normal(0, 1, (2, *x.shape))
    y, yd, tau = audited(x, xd, efforts)
    return States(x=x, xd=xd, efforts=efforts, y=y, yd=yd, tau=tau)


def reference(audited: Audited, twin: Twin | None, states: States) -> Wanted:
    """Positions and transmission of the closed mechanism, or the derivative of the audited positions."""
    if twin is not None:
        q, sound = sound_poses(twin.closed, states.x)
        if not sound.all():
            raise MechanismError(
                f"{audited.label}: all poses must be reachable, got {int((~sound).sum())} beyond reach"
            )
        mechanism, motors = twin.closed.mechanism, list(twin.motors)
        y = (mechanism.values_of(mechanism.drives, q) @ mechanism.gearing.T)[:, motors]
        T = joint_terms(twin.closed, q).transmission[:, motors]
        return Wanted(y=y, T=T, T_zero=T[0], motors=twin.motor_names)
    if audited.states is not None:
        raise MechanismError(f"{audited.label}: a table must be compared with a closed mechanism: name CLOSED")
    names = tuple(f"motor {k + 1}" for k in range(states.y.shape[1]))
    T = derivative(audited, states.x)
    return Wanted(y=None, T=T, T_zero=T[0], motors=names)


def derivative(audited: Audited, x: Array) -> Array:
    """Derivative of the audited motor positions, by central differences of two steps (Richardson).

    Args:
        x: Joint positions [rad or m], shape (nt, n).

    Returns:
        T [-, or ratios of the units], shape (nt, n, n).
    """
    zero, columns = np.zeros_like(x), []
    for k in range(x.shape[1]):
        slopes = []
        for step in (STEP, STEP / 2):
            moved = step * np.eye(x.shape[1])[k]
            slopes.append((audited(x + moved, zero, zero)[0] - audited(x - moved, zero, zero)[0]) / (2 * step))
        columns.append((4 * slopes[1] - slopes[0]) / 3)
    return np.stack(columns, axis=2)


def _rows(states: States, wanted: Wanted) -> Iterator[Mapping[str, Any]]:
    """Errors of each motor, and of the power."""
    yd, tau = _mapped(wanted.T, states)
    quantities = [(RATE, states.yd, yd), (EFFORT, states.tau, tau)]
    if wanted.y is not None:
        quantities.insert(0, (POSITION, states.y, wanted.y))
    for quantity, claimed, right in quantities:
        for k, motor in enumerate(wanted.motors):
            yield _row(quantity, motor, claimed[:, k] - right[:, k], np.abs(right[:, k]).max(), states.x)
    given = (states.efforts * states.xd).sum(axis=1)
    yield _row(POWER, "all motors", (states.tau * states.yd).sum(axis=1) - given, np.abs(given).max(), states.x)


def _mapped(T: Array, states: States) -> tuple[Array, Array]:
    """Rates and efforts of the motors by a transmission."""
    return _times(T, states.xd), _times(np.linalg.inv(T).swapaxes(1, 2), states.efforts)


def _row(quantity: str, part: str, error: Array, peak: float, x: Array) -> Mapping[str, Any]:
    worst = int(np.abs(error).argmax())
    scale = peak if peak > 0 else 1.0
    pose = ", ".join(f"{value:.3g}" for value in x[worst])
    largest, rms = float(np.abs(error).max() / scale), float(np.sqrt(np.mean(error**2)) / scale)
    return {
        "quantity": quantity,
        "part": part,
        "peak": peak,
        "largest": largest,
        "rms": rms,
        "note": f"worst at {pose}",
    }


def findings(audited: Audited, states: States, wanted: Wanted) -> Iterator[str]:
    """Causes of errors: changes that make a quantity right, each tried at all states.

    Args:
        states: Claims of the audited transmission.
        wanted: A right one.
    """
    yd, tau = _mapped(wanted.T, states)
    if wanted.y is not None:
        yield from _changed(POSITION, states.y, wanted.y, wanted.motors, offsets=True)
        if audited.states is None:
            own = derivative(audited, states.x)
            if _error(own, wanted.T) <= RIGHT < _error(states.yd, yd):
                yield "rates do not follow from the positions, which are right"
    yield from _inconsistent(states, wanted)
    if _error(states.yd, yd) > RIGHT:
        faults = _rate_faults(states, wanted)
        yield from _changed(RATE, states.yd, yd, wanted.motors) or _named(RATE, states.yd, yd, faults)
    if _error(states.tau, tau) > RIGHT:
        named = _named(EFFORT, states.tau, tau, _effort_faults(states, wanted))
        yield from named or _changed(EFFORT, states.tau, tau, wanted.motors) or _scaled(states, tau, wanted.motors)
        if audited.states is None:
            yield from _only_at_rest(audited, states, tau)


def _inconsistent(states: States, wanted: Wanted) -> Iterator[str]:
    """Rates that are not the derivative of the positions, without a closed mechanism."""
    yd, _ = _mapped(wanted.T, states)
    if wanted.y is None and (error := np.abs(states.yd - yd)).max() > RIGHT * np.abs(yd).max():
        t, k = np.unravel_index(int(error.argmax()), error.shape)
        part, pose = 100 * error[t, k] / np.abs(yd[:, k]).max(), ", ".join(f"{value:.3g}" for value in states.x[t])
        yield f"rates are not the derivative of the positions: {part:.2g} % of the peak at {pose}, {wanted.motors[k]}"


def _changed(quantity: str, claimed: Array, right: Array, motors: Sequence[str], offsets: bool = False) -> list[str]:
    """Exchanged motors, signs and offsets that make a quantity right."""
    if _error(claimed, right) <= RIGHT:
        return []
    n = len(motors)
    for order in permutations(range(n)):
        for signs in product((1.0, -1.0), repeat=n):
            changed = claimed[:, list(order)] * signs
            shift = (changed - right).mean(axis=0) if offsets else np.zeros(n)
            if _error(changed - shift, right) > RIGHT + EXPLAINED * _error(claimed, right) * (not offsets):
                continue
            found = []
            if list(order) != list(range(n)):
                found.append(
                    f"{quantity}: motors are exchanged, {', '.join(motors[k] for k in order)} in the order of the file"
                )
            found += [
                f"{quantity}: wrong sign of {motor}" for motor, sign in zip(motors, signs, strict=True) if sign < 0
            ]
            peak = np.abs(right).max()
            found += [
                f"{quantity}: {motor} is {value:.6g} too large at every pose"
                for motor, value in zip(motors, shift, strict=True)
                if abs(value) > RIGHT * peak
            ]
            return found
    return []


def _rate_faults(states: States, wanted: Wanted) -> dict[str, Array]:
    """Rates by common mistakes."""
    first = np.broadcast_to(wanted.T_zero, wanted.T.shape)
    return {
        "are those of the transmission at the first pose, at every pose": _times(first, states.xd),
        "use the transposed matrix": _times(wanted.T.swapaxes(1, 2), states.xd),
        "use the inverse matrix": _times(np.linalg.inv(wanted.T), states.xd),
        "are computed from efforts": _times(wanted.T, states.efforts),
    }


def _effort_faults(states: States, wanted: Wanted) -> dict[str, Array]:
    """Efforts by common mistakes."""
    inverse = np.linalg.inv(wanted.T)
    inverse_T = inverse.swapaxes(1, 2)
    first = np.broadcast_to(np.linalg.inv(wanted.T_zero).T, wanted.T.shape)
    return {
        "are computed from velocities of the joints, in place of their efforts": _times(inverse_T, states.xd),
        "are the rates of the motors: velocity stands in place of effort": _times(wanted.T, states.xd),
        "use T, as rates do, in place of its inverse transpose": _times(wanted.T, states.efforts),
        "use the transpose of T in place of its inverse": _times(wanted.T.swapaxes(1, 2), states.efforts),
        "use the inverse of T without the transpose": _times(inverse, states.efforts),
        "are those of the transmission at the first pose, at every pose": _times(first, states.efforts),
    }


def _times(matrices: AnyArray, vectors: Array) -> Array:
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _named(quantity: str, claimed: Array, right: Array, faults: Mapping[str, Array]) -> list[str]:
    """The mistake that gives the claimed values."""
    most = RIGHT + EXPLAINED * _error(claimed, right)
    left = {words: _error(claimed, values) for words, values in faults.items()}
    words = min(left, key=left.__getitem__)
    return [f"{quantity}s {words}"] if left[words] <= most else []


def _scaled(states: States, tau: Array, motors: Sequence[str]) -> Iterator[str]:
    """Efforts that are a constant multiple of the right ones: they do not conserve power."""
    for k, motor in enumerate(motors):
        factor = float(states.tau[:, k] @ tau[:, k] / (tau[:, k] @ tau[:, k]))
        left = np.abs(states.tau[:, k] - factor * tau[:, k]).max()
        if abs(factor - 1) > RIGHT and left <= EXPLAINED * np.abs(states.tau[:, k] - tau[:, k]).max():
            yield f"efforts of {motor} are {factor:.6g} times those that conserve power"


def _only_at_rest(audited: Audited, states: States, tau: Array) -> Iterator[str]:
    """Efforts that are right while nothing moves."""
    still = audited(states.x, np.zeros_like(states.xd), states.efforts)[2]
    if _error(still, tau) <= RIGHT:
        yield "efforts are right at rest only: they change with the rates"


def _error(claimed: Array, right: Array) -> float:
    """Largest error over the peak."""
    peak = float(np.abs(right).max())
    return float(np.abs(claimed - right).max() / (peak if peak > 0 else 1.0))
