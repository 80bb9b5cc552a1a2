"""Basis of the verdicts of a case: of the equations a closed form or two code bases, of the file further readings.

The reference and the Lagrangian model belong to one code base, and it cannot confirm itself. An engine and its ports
are one code base, too. Two further code bases, or the closed form of a paper, make a verdict more than the agreement
of two programs. They confirm the equations: engines get the numbers of the robot from the reader of the reference. The
numbers are confirmed by readers of the file that share no code with it.

Some engines lack springs or compensated weights, and take their laws from `loopcheck.engines.loads`. Of the code bases
that do so for a load of the case, all together count as one.

A source cannot detect an error in an input that it shares with the reference. The table in `tests/faults` seeds a
fault in each input that can be shared; a source that does not detect it must declare the shared input, here or in its
engine.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias, get_args

from loopcheck import engines
from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.papers import Paper
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.verdicts import CASE, FILE, READING, CaseVerdict, Key, case_verdicts

CLOSED_FORM = "closed form"
"""Code base of the models from papers."""
OURS = "loopcheck"
"""Code base of the reference."""

Shared: TypeAlias = Literal[
    "geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity", "velocity term", "ranks"
]
"""Inputs that a source can share with the reference, beside the prescribed motion."""
FROM_FILES: tuple[Shared, ...] = get_args(Shared)[:8]
"""Numbers of the robot's files; the audit of the files detects a fault in these numbers."""
IN_WORDS: Mapping[str, str] = {
    "geometry": "frames, axes and closure points",
    "inertia": "masses, mass centres and inertias",
    "gears": "actuated joints and their gears",
    "springs": "springs",
    "dampers": "dampers",
    "rotors": "inertia of rotors",
    "loads": "external wrenches",
    "gravity": "gravity",
    "velocity term": "J̇v of the loops",
    "ranks": "number of driven dofs",
}
LAWS: Mapping[str, str] = {
    "compensations": "gravity compensation",
    "pull": "springs and dampers along lines",
    "ball_spring": "springs of balls",
    "joint_spring": "springs of joints",
}
"""Loads that some engines take from `loopcheck.engines.loads`, by the name of the law."""
OF_OURS: Mapping[str, tuple[Shared, ...]] = {
    Lagrange.name: (*FROM_FILES, "ranks"),
    Paper.name: ("geometry", "inertia", "loads", "gravity"),
}


class Basis(NamedTuple):
    """Basis of the verdicts of a case."""

    closed_form: bool
    """Whether the closed form of the paper agrees with the reference."""
    lineages: tuple[str, ...]
    """Other code bases with a source that agrees with the reference and no source that disagrees."""
    readers: tuple[str, ...] = ()
    """Further readers of the file that agree with the reader of the reference, with the number of compared values."""
    alike: tuple[str, ...] = ()
    """Those of the other code bases that take a load of the case from our common laws; together they count as one."""

    @property
    def is_independent(self) -> bool:
        """Return whether the equations have a closed form, or two code bases."""
        return self.closed_form or len(self.lineages) - max(len(self.alike) - 1, 0) > 1

    @property
    def text(self) -> str:
        """Basis of the equations in words."""
        form = [CLOSED_FORM] if self.closed_form else []
        if len(self.lineages) > 1:
            same = (
                [f"{' and '.join(self.alike)} share the law of a load and count as one"] if len(self.alike) > 1 else []
            )
            return "; ".join([*form, f"{len(self.lineages)} code bases: {', '.join(self.lineages)}", *same])
        if form:
            return "; ".join([*form, *self.lineages])
        return f"no independent confirmation: only {', '.join(self.lineages) or OURS}"

    @property
    def text_of_file(self) -> str:
        """Basis of the numbers of the file in words."""
        return "; ".join(self.readers) or "not confirmed: only the reader of the reference"


def lineage(source: str) -> str:
    """Code base of a source."""
    if source == Paper.name:
        return CLOSED_FORM
    if sources.is_log(source):
        return source
    return OURS if source in sources.ANALYTIC else engines.lineage(source.split("/")[0])


def shares(source: str) -> tuple[str, ...]:
    """Inputs that a source shares with the reference; the reference shares all of them."""
    if source in sources.ANALYTIC:
        return OF_OURS.get(source, get_args(Shared))
    return engines.shares(source.split("/")[0])


def own_laws(source: str) -> tuple[str, ...]:
    """Laws of loads that a source shares with other engines; the reference and logs have their own."""
    return () if "/" not in source or source in sources.ANALYTIC else engines.engine(source.split("/")[0]).laws


def bases(results: Results) -> Mapping[Key, Basis]:
    """Basis of the verdicts of each case; cases without an agreement have no basis."""
    lineages, readers = results.run.get("lineages") or {}, _readers(results)
    bases_and_verdicts = {
        case: (_basis(of_case, lineages, readers.get(case, ()))._replace(alike=_alike(results, case, of_case)), of_case)
        for case, of_case in case_verdicts(results).items()
    }
    return {case: basis for case, (basis, of_case) in bases_and_verdicts.items() if _agreeing(of_case)}


def _readers(results: Results) -> Mapping[Key, tuple[str, ...]]:
    """Further readers of the file of each case that agree; none if one of them disagrees."""
    of_file = results.audit[results.audit["engine"] == FILE]
    notes = of_file["note"].fillna("").astype(str)
    agreeing = of_file[(of_file["quantity"] == READING) & (of_file["verdict"] == "agree")]
    differing = of_file[notes.str.startswith(READING) & (of_file["verdict"] == "disagree")]
    doubted = set(differing[CASE].itertuples(index=False, name=None))
    readers: dict[Key, tuple[str, ...]] = {}
    for *names, note in agreeing[[*CASE, "note"]].itertuples(index=False, name=None):
        robot, variant, mode, configuration = map(str, names)
        key = (robot, variant, mode, configuration)
        if key not in doubted:
            readers[key] = (*readers.get(key, ()), str(note))
    return readers


def _basis(of_case: Mapping[str, CaseVerdict], lineages: Mapping[str, str], readers: tuple[str, ...]) -> Basis:
    agreeing = {lineages.get(source, OURS) for source in _agreeing(of_case)}
    doubtful = {lineages.get(source, OURS) for source, finding in of_case.items() if finding.verdict == "disagree"}
    sure = agreeing - doubtful
    return Basis(CLOSED_FORM in sure, tuple(sorted(sure - {CLOSED_FORM, OURS})), readers)


def _alike(results: Results, case: Key, of_case: Mapping[str, CaseVerdict]) -> tuple[str, ...]:
    """Code bases that agree only by sources with a common law of a load of the case."""
    lineages, laws = results.run.get("lineages") or {}, results.run.get("laws") or {}
    needed, agreeing = {*((results.run.get("loads") or {}).get(case[0]) or ())}, _agreeing(of_case)
    sharing = {source for source in agreeing if needed & {*laws.get(source, ())}}
    alike, own = ({lineages.get(source, OURS) for source in some} for some in (sharing, {*agreeing} - sharing))
    return tuple(sorted(alike - own))


def _agreeing(of_case: Mapping[str, CaseVerdict]) -> list[str]:
    return [source for source, finding in of_case.items() if finding.verdict == "agree"]
