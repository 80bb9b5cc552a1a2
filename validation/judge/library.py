"""`from loopcheck import judge`: the verdict on a log in one call, for notebooks and for tests of other projects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from loopcheck.analytic.logs.parameters import Estimate
from loopcheck.robots.errors import NotFoundError, ShapeError
from loopcheck.robots.formats.losses import unread, want_losses
from loopcheck.robots.log import Log
from loopcheck.robots.logs.log_description import Side, convention_of, effort_time_of, side_of
from loopcheck.robots.logs.log_files import log_of_frame, read_log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case
from loopcheck.validation.common.accuracy import Verdict
from loopcheck.validation.common.limits import ACCURACY, INTERNAL_LOAD
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.common.verdicts import SEVERITY
from loopcheck.validation.judge.causes import with_causes
from loopcheck.validation.judge.logs import JudgedLog, LogOptions, judge_log, log_rows, summary_rows

if TYPE_CHECKING:
    import pandas as pd


class Options(TypedDict, total=False):
    """Options besides model and log."""

    effort_time: str
    """Time of application of the efforts: `held:SECONDS`, `held-until:SECONDS` or `instantaneous`; by default as in the
    log, or the first and the last."""
    effort_side: Side
    """Side of the gear on which the efforts are, `motor` or `joint`; by default as in the log, or the motor's."""
    accuracy: float
    """Largest residual that agrees, over the largest effort that the motion requires of the actuator [-]; by default
    0.001."""
    internal_load: float
    """Largest internal load of redundant actuators, over the largest effort that the motion requires [-]; by default
    1."""
    configuration: str
    """Direction of gravity; by default as in the file."""
    mode: str
    """Keyframe of the initial pose, for a log with the positions of the drives only."""
    actuated: str
    """Actuated joints, for example J1,J2, instead of the actuators of the file."""
    leave_out: Sequence[str]
    """Elements of the model file that are accepted although they are not read, TAG or TAG:NAME."""
    start: float
    """Samples before this time are ignored [s]; by default those of an unsettled start."""
    fit: Sequence[str]
    """Fitted terms, `friction`, `shift`, `offset` or `mass:BODY`; the verdict is on the residual after the fit."""
    reactions: str
    """Convention of the wrenches in connections, as `on=child point=joint axes=child`; by default as in the log."""
    name: str
    """Name of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on a log."""

    verdicts: Mapping[str, str]
    """`agree`, `disagree` or `not comparable`, by actuator, and by `CONNECTION.wrench` for logged wrenches."""
    notes: Mapping[str, str]
    """Reason with figures, by actuator."""
    figures: "pd.DataFrame"
    """A row for each actuator and assumed time of the efforts: rms, largest, noise floors and their causes."""
    efforts: "pd.DataFrame"
    """Over time [s]: `ACTUATOR.effort`, `.needed` and `.residual` [N or N m] after the same filter."""
    columns: Mapping[str, str]
    """Quantity in each column of the log, as `hip.q`; an empty string for a column that is not used."""
    estimates: tuple[Estimate, ...]
    """Results of the fit."""
    _judged: JudgedLog = field(repr=False)
    _asked: LogOptions = field(repr=False)

    @property
    def verdict(self) -> str:
        """The worst of all actuators."""
        return min(self.verdicts.values(), key=SEVERITY.index)

    @property
    def agrees(self) -> bool:
        """Return whether all actuators agree; an undecided actuator does not."""
        return self.verdict == "agree"

    def report(self, folder: str | Path) -> Path:
        """Write the tables and the page into a folder of results, as the command does; returns the path of the page.

        Raises:
            OutputError: If the folder cannot be written, or holds results of another command.
        """
        from loopcheck.validation.judge.written import write_judged

        return write_judged(self._judged, self._asked, Path(folder))

    def __str__(self) -> str:
        return "\n".join(f"{name}: {self.verdicts[name]}: {note}" for name, note in self.notes.items())


def judge(
    model: str | Path, log: "str | Path | Log | pd.DataFrame | Mapping[str, ArrayLike]", **options: Unpack[Options]
) -> Judgement:
    """Compare the efforts of a log with the efforts that its motion requires by the equations of the closed loop.

    Args:
        model: Name of a catalogue robot, path of a model file, or folder with a `robot.toml`.
        log: A file, a table or arrays by name with the columns of a file, as `t`, `hip.q`, `motor.effort`; or a `Log`.
        **options: See `Options`.

    Raises:
        HarnessError: If model or log are bad, in one line with the requirement, the value and its place.
    """
    import pandas as pd

    for option in options:
        if option not in Options.__annotations__:  # or a misspelt accuracy would be judged by another
            raise NotFoundError("option of judge", option, Options.__annotations__)
    asked = _log_options(options)
    case = case_of(
        model,
        configuration=options.get("configuration", ""),
        mode=options.get("mode", ""),
        actuated=options.get("actuated", ""),
        leave_out=(leave_out := options.get("leave_out", ())),
    )
    want_losses(leave_out, case.mechanism.losses)
    given = _log(log, case.mechanism, options.get("name", ""), asked)
    given = replace(given, convention=convention_of(options.get("reactions", ""), "judge") or given.convention)
    judged = with_causes(_judged(case, given, asked), case, asked)
    rows = list(summary_rows(judged, asked))
    names, by_actuator = [row["actuator"] for row in rows], [Verdict(row["verdict"], row["note"]) for row in rows]
    lost = "; ".join(f"{loss.place}: {loss}" for loss in unread(case.mechanism.losses))
    if lost:  # agreement with another robot is none
        open_verdict = {"agree": "not comparable"}
        by_actuator = [
            one._replace(verdict=open_verdict.get(one.verdict, one.verdict), note=f"{lost}; {one.note}")
            for one in by_actuator
        ]
    return Judgement(
        verdicts={name: one.verdict for name, one in zip(names, by_actuator, strict=True)},
        notes={name: one.note for name, one in zip(names, by_actuator, strict=True)},
        figures=pd.DataFrame([dict(row) for row in log_rows(judged)]),
        efforts=_efforts(judged, [actuator.name for actuator in case.mechanism.actuators]),
        columns=judged.log.columns,
        estimates=tuple(estimate for of_one in judged.fits[:1] for estimate in of_one.estimates),
        _judged=judged,
        _asked=asked,
    )


def _judged(case: Case, log: Log, asked: LogOptions) -> JudgedLog:
    return judge_log(case, log, start=asked.start, fitted=asked.fitted, accuracy=asked.accuracy)


def _log_options(options: Options) -> LogOptions:
    """Options of the judgement of a log, checked like the options of the command line."""
    fitted = options.get("fit", ())
    return LogOptions(
        accuracy=options.get("accuracy", ACCURACY),
        internal_load=options.get("internal_load", INTERNAL_LOAD),
        effort_time=effort_time_of(options.get("effort_time", ""), "judge"),
        side=side_of(options.get("effort_side", ""), "judge"),
        start=options.get("start"),
        fitted=(fitted,) if isinstance(fitted, str) else tuple(fitted),
    )


def _log(
    log: "str | Path | Log | pd.DataFrame | Mapping[str, ArrayLike]",
    mechanism: Mechanism,
    name: str,
    asked: LogOptions,
) -> Log:
    if isinstance(log, Log):
        if asked.side == "joint":
            raise ShapeError(f"{log.name}: efforts of a Log must be those before the gear, got effort_side 'joint'")
        return replace(log, name=name or log.name, effort_time=asked.effort_time or log.effort_time)
    if isinstance(log, str | Path):
        return read_log(Path(log), mechanism, name=name, effort_time=asked.effort_time, side=asked.side)
    frame = _frame(log, name or "log") if isinstance(log, Mapping) else log
    return log_of_frame(frame, mechanism, name=name or "log", effort_time=asked.effort_time, side=asked.side)


def _frame(columns: Mapping[str, ArrayLike], name: str) -> "pd.DataFrame":
    """Arrays by name as a table."""
    import pandas as pd

    arrays = {key: np.asarray(values) for key, values in columns.items()}
    first = next(iter(arrays), "")
    for key, values in arrays.items():
        if values.ndim != 1 or values.shape != arrays[first].shape:
            raise ShapeError(
                f"{name}, {key}: must have a number for each sample, shape {(arrays[first].size,)} as '{first}', "
                f"got shape {values.shape}"
            )
    return pd.DataFrame(arrays)


def _efforts(judged: JudgedLog, names: Sequence[str]) -> "pd.DataFrame":
    import pandas as pd

    if not judged.residuals or not judged.log.has_efforts:
        return pd.DataFrame()
    first = judged.residuals[0]
    columns = {"effort": first.effort, "needed": first.needed, "residual": first.residual}
    values = {f"{name}.{kind}": x[:, k] for k, name in enumerate(names) for kind, x in columns.items()}
    return pd.DataFrame({"t": first.motion.t, **values})
