"""Errors of a serial model of a closed mechanism, the map between joints and motors, and the repair of the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from loopcheck.analytic.transmission.bounds import Domain
from loopcheck.analytic.transmission.constants import (
    Constants,
    armatures_at,
    armatures_of,
)
from loopcheck.analytic.transmission.crank_rod import CrankRod
from loopcheck.analytic.transmission.joint_map import JointMap
from loopcheck.analytic.transmission.limits import Box
from loopcheck.analytic.transmission.motions import (
    MotionEfforts,
    choosing_motions,
    fitting_motions,
    stated_motions,
)
from loopcheck.analytic.transmission.recognition import crank_rod_of
from loopcheck.analytic.transmission.terms import joint_terms
from loopcheck.analytic.transmission.twin import Twin, Workspace, make_twin, want_driven
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, NotFoundError, ToleranceError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, integer, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.serial.comparison import (
    automatic_efforts,
    fitted,
    found_box,
    known_efforts,
    pace_of,
    sampled_workspace,
)
from loopcheck.validation.serial.exporting import (
    CLOSED_FORM,
    HEADER,
    MODULE,
    SOURCE,
    write_functions,
    write_transmission,
)
from loopcheck.validation.serial.report import sections, summary
from loopcheck.validation.serial.rows.limit_rows import limit_rows, safe_box, safe_series
from loopcheck.validation.serial.rows.rows import (
    FUNCTION,
    MUCH,
    PLAIN,
    WAYS,
    Row,
    constant_facts,
    effort_rows,
    pair_rows,
    term_rows,
    workspace_rows,
)
from loopcheck.validation.serial.rows.transmission_rows import COLUMNS, found_rows
from loopcheck.validation.serial.writing import REPAIRED, REPAIRED_URDF, SETTINGS, Motions, Repairs, models_of

TABLE, WORKSPACE, LIMITS, PAIRS = "serial", "serial_workspace", "serial_limits", "serial_pairs"
TRANSMISSION = "serial_transmission"
ITSELF = "that of the row"


class Code(NamedTuple):
    """What the transmission is written from."""

    transmission: CrankRod | str
    """Cranks and rods, or the reason for their absence."""
    figures: Sequence[Row] | str
    """Of the cranks and rods, or the reason for their absence."""
    fit: Any
    """Functions of the pose, the reason for their absence, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serial(Study):
    """Both models at the joints that they share: over the workspace, along motions, plain and repaired."""

    name: ClassVar[str] = "serial"
    page: ClassVar[str] = "serial"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("quantity", "motion", "part", "unit")},
                "peak": number(ITSELF),
                **{f"{way}_{figure}": number("-") for way in WAYS for figure in ("max", "rms")},
                "verdict": text(),
                "note": text(),
            }
        ),
        WORKSPACE: table_of(
            {
                "sample": integer(),
                **{name: text() for name in ("quantity", "part", "unit")},
                **{name: number(ITSELF) for name in ("closed", "serial", "repaired")},
            }
        ),
        LIMITS: table_of(
            {
                **{name: text() for name in ("quantity", "kind", "part", "unit")},
                **{name: number(ITSELF) for name in ("low", "high")},
                **{name: number("-") for name in ("ratio", "share")},
                "note": text(),
            }
        ),
        TRANSMISSION: COLUMNS,
        PAIRS: table_of(
            {
                **{name: text() for name in ("closed", "serial", "by")},
                "sign": number("-"),
                **{name: text() for name in ("closed_body", "serial_body", "unit")},
                **{
                    f"{which}_{end}": number("m or rad")
                    for which in ("closed", "serial", "reached")
                    for end in ("low", "high")
                },
            }
        ),
    }
    shown: ClassVar[Sequence[str]] = (LIMITS, PAIRS)

    closed: Case
    serial: Case
    given: Mapping[str, str] = field(default_factory=dict)
    """Names of joints of the serial model by names in the closed mechanism."""
    hold: tuple[str, ...] = ()
    """Fixed joints of either model."""
    carried: Mapping[int, float] | None = None
    """Of a serial model that was derived, the mass of each rod at its far end, by index of the rod [kg]."""
    usual: tuple[float, ...] = ()
    """Armature factors of public configurations [-]."""
    public: tuple[float, ...] = ()
    """Armatures of the joints by these factors [kg or kg m²]."""
    notes: tuple[str, ...] = ()
    """Notes on the serial model."""
    samples: int = 256
    seed: int = 0
    speeds: Mapping[str, float] = field(default_factory=dict)
    """Largest speed of motors by name [m/s or rad/s]."""
    accuracy: float | None = None
    """Largest acceptable unmodified error of a motor's effort over its peak [-]."""

    def __post_init__(self) -> None:
        if self.accuracy is not None and not 0 < self.accuracy < np.inf:
            raise ToleranceError(f"accuracy must be positive and finite, for example 0.05, got {self.accuracy:g}")
        for name, speed in self.speeds.items():
            if not 0 < speed < np.inf:
                raise ToleranceError(f"speed of '{name}' must be positive and finite, got {speed:g}")

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        twin = make_twin(
            self.closed.mechanism, self.closed.guess, self.serial.mechanism, self.serial.guess, self.given, self.hold
        )
        want_driven(twin)
        for name in self.speeds:
            if name not in twin.motor_names:
                raise NotFoundError("motor", name, twin.motor_names)
        self._remove_old(folder)
        transmission = self._transmission(twin)
        domain = None
        if isinstance(transmission, CrankRod):
            domain = Domain(transmission=transmission, low=twin.ranges[:, 0], high=twin.ranges[:, 1])
        samples, box = pool.results(
            [
                Task(sampled_workspace, (twin, self.samples, self.seed, domain), str),
                Task(found_box, (twin, domain), str),
            ],
            "workspace",
        )
        if isinstance(samples, str) or isinstance(box, str):
            reason = samples if isinstance(samples, str) else str(box)
            return self._without(reason)
        stated, choice, fit = (make(twin, box) for make in (stated_motions, choosing_motions, fitting_motions))
        motions = [Task(known_efforts, each, str) for each in (*stated, *choice, *fit)]
        motions += [] if twin.closed.spare else [Task(automatic_efforts, (twin,), str)]
        fits = [] if self._is_complete(transmission) else [Task(fitted, (twin, box, self.seed), str)]
        figures = []
        if domain is not None:
            fastest = np.array([self.speeds.get(name, np.inf) for name in twin.motor_names])
            given = (twin, domain, Box(low=-fastest, high=fastest), self.usual)
            figures = [Task(found_rows, given, str)]
        results = pool.results([*motions, *fits, *figures], "motions")
        moved, others = results[: len(motions)], results[len(motions) :]
        function, found = others[0] if fits else None, others[-1] if figures else []
        by_purpose = [[moved.pop(0) for _ in own] for own in (stated, choice, fit)]
        by_purpose[0] += moved  # the generated motion
        return self._written(twin, samples, by_purpose, Code(transmission, found, function), box, folder)

    def _is_complete(self, transmission: CrankRod | str) -> bool:
        """Whether a transmission with the serial model is the closed mechanism."""
        return self.carried is not None and isinstance(transmission, CrankRod)

    def _transmission(self, twin: Twin) -> CrankRod | str:
        """The cranks and rods of the closed mechanism, or the reason for their absence."""
        try:
            return crank_rod_of(twin.closed, twin.motors, self.carried)
        except MechanismError as error:
            return str(error)

    def _remove_old(self, folder: Path) -> None:
        """Remove files of an earlier command."""
        models = {case.mechanism.model.path.resolve() for case in (self.closed, self.serial)}
        for path in (
            folder / name for name in (REPAIRED, REPAIRED_URDF, SETTINGS, MODULE, SOURCE, CLOSED_FORM, HEADER)
        ):
            if path.resolve() not in models:
                path.unlink(missing_ok=True)

    def _written(
        self,
        twin: Twin,
        samples: Workspace,
        by_purpose: Sequence[Sequence[MotionEfforts | str]],
        code: Code,
        box: Array,
        folder: Path,
    ) -> Computed:
        """The tables, and the files that repair the stand-in."""
        figures = [] if isinstance(code.figures, str) else code.figures
        limits = safe_box(twin, samples, figures)
        stated, choice, fit = ([each for each in own if isinstance(each, MotionEfforts)] for own in by_purpose)
        repairs = Repairs(
            twin=twin,
            box=box,
            motions=Motions(stated=stated, choice=choice, fit=fit),
            limits=limits,
            closures=self.serial.mechanism.closures,
            folder=folder,
        )
        settings, repaired, urdf = repairs.written()
        functions, facts, further = self._functions(twin, samples, code, folder)
        models = models_of(twin, (settings, repaired, urdf), stated, self.public)
        rows: list[Row] = []
        for motion in by_purpose[0]:
            if isinstance(motion, str):
                rows.append(_missing(motion, "informational"))
                continue
            ways = {way: motion.with_constants(model) for way, model in models.items()}
            ways |= {PLAIN: motion.serial, FUNCTION: motion.with_functions(functions)}
            rows += effort_rows(twin, motion, ways, self.accuracy)
        after = Constants(mechanism=repaired.mechanism or twin.serial.mechanism, kinds=repaired.kinds)
        repaired_terms = joint_terms(after.space(twin.serial), samples.serial_q)
        frames = {
            TABLE: [*rows, *term_rows(twin, samples, repaired_terms)],
            WORKSPACE: list(workspace_rows(twin, samples, repaired_terms, pace_of(box), safe_series(twin, samples))),
            LIMITS: list(limit_rows(twin, samples, self.speeds, figures)),
            TRANSMISSION: figures,
            PAIRS: list(pair_rows(twin, samples, figures)),
        }
        record: dict[str, Any] = {
            "closed": self.closed.mechanism.model.path.name,
            "serial": self.serial.mechanism.model.path.name,
            "loops": len(self.closed.mechanism.closures),
            "samples": int(samples.common.sum()),
            "seed": self.seed,
            "held": list(self.hold),
            "spare": twin.closed.spare,
            "left_out": [*twin.closed.mechanism.left_out, *twin.serial.mechanism.left_out],
            "settings": settings.note,
            "rotors": any(joint.armature for joint in twin.closed.mechanism.joints),
            "usual": list(self.usual),
            "armature": self._armatures(twin, settings.mechanism, box),
            "constants": dict(constant_facts(twin, after.mechanism, after.kinds)),
            "coupling": _coupling(twin),
            "box_of_motions": box.tolist(),
            **facts,
        }
        gravity = " ".join(f"{part:.4g}" for part in twin.closed.mechanism.gravity)
        notes = [*self.notes, *twin.notes, *(each.note for each in (settings, repaired, urdf)), *further]
        notes.append(f"attitude of the base: gravity is {gravity} m/s² in its axes")
        if any(row["pose"] for row in record["armature"]):
            pose = ", ".join(f"{row['joint']} {row['pose']:.4g}" for row in record["armature"])
            notes.append(f"zero is outside of the box of usual poses: 'at zero' is at {pose}")
        return Computed({name: self.tables[name].frame(frames[name]) for name in frames}, {**record, "notes": notes})

    def _armatures(self, twin: Twin, fitted_model: Mechanism | None, box: Array) -> list[Mapping[str, Any]]:
        """Armature of each serial joint: of the file, fitted, and with the inertia at one pose."""
        x = np.zeros(len(box)) if (box[:, 0] <= 0).all() and (box[:, 1] >= 0).all() else box.mean(axis=1)
        serial = twin.serial.mechanism
        own, at_zero = armatures_of(twin, serial), armatures_at(twin, x)
        needed = armatures_of(twin, fitted_model or serial)
        return [
            {
                "joint": pair.serial,
                "unit": "kg m²" if serial.joints[j].kind == "hinge" else "kg",
                "file": float(own[k]),
                "needed": None if fitted_model is None else float(f"{needed[k]:.6g}"),
                "at_zero": float(at_zero[k]),
                "pose": float(x[k]),
            }
            for k, (pair, j) in enumerate(zip(twin.pairs, twin.serial.joints, strict=True))
        ]

    def _functions(
        self, twin: Twin, samples: Workspace, code: Code, folder: Path
    ) -> tuple[CrankRod | JointMap | None, dict[str, Any], list[str]]:
        """Write the transmission as code: in closed form, as functions that were fitted, or both.

        Returns:
            What completes the serial model, entries of the record, and notes.
        """
        errors, notes = dict[str, float](), list[str]()
        if isinstance(code.transmission, CrankRod):
            errors, notes = write_transmission(code.transmission, twin, samples, folder)
            notes += [f"no figures of the transmission: {code.figures}"] if isinstance(code.figures, str) else []
            if self._is_complete(code.transmission):
                return code.transmission, {"accuracy": errors, "functions": CLOSED_FORM}, notes
        if isinstance(code.fit, str):
            return None, {"accuracy": errors}, [*notes, f"no functions: {code.fit}"]
        functions, _ = code.fit
        accuracy, written = write_functions(twin, functions, self.seed + 1, folder)
        box = {
            name: [float(low), float(high)]
            for name, low, high in zip(functions.joints, functions.low, functions.high, strict=True)
        }
        return functions, {"accuracy": errors | accuracy, "box": box, "functions": MODULE}, [*notes, *written]

    def _without(self, reason: str) -> Computed:
        """Tables of a comparison that is not possible."""
        empty = {name: spec.frame([]) for name, spec in self.tables.items()}
        record = {"closed": self.closed.mechanism.model.path.name, "serial": self.serial.mechanism.model.path.name}
        return Computed(
            {**empty, TABLE: self.tables[TABLE].frame([_missing(reason, "not comparable")])},
            {**record, "notes": [*self.notes, reason]},
        )

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        return Conclusion(
            title=f"loopcheck: {result.record['serial']} for {result.record['closed']}",
            sections=sections(result.tables, result.record),
            summary=list(summary(result.tables, result.record)),
            verdicts=list(result.tables[TABLE]["verdict"]),
        )


STUDY = Serial


def _coupling(twin: Twin) -> str:
    """The largest inertia off the diagonal at the start that no armature has, over those of its two joints."""
    lacking = [joint_terms(space, space.start[None]).mass[0] for space in (twin.closed, twin.serial)]
    whole, missing = lacking[0], lacking[0] - lacking[1]
    sizes = np.sqrt(np.outer(np.diag(whole), np.diag(whole)))
    share = np.abs(np.triu(missing, 1)) / sizes
    i, j = np.unravel_index(share.argmax(), share.shape)
    return f"{twin.names[i]} × {twin.names[j]} {share[i, j]:.2g}" if share[i, j] > MUCH else ""


def _missing(reason: str, verdict: str) -> Mapping[str, Any]:
    figures = [f"{way}_{figure}" for way in WAYS for figure in ("max", "rms")]
    texts = dict.fromkeys(("quantity", "motion", "part", "unit"), "")
    return {**texts, **dict.fromkeys(["peak", *figures], np.nan), "verdict": verdict, "note": reason}
