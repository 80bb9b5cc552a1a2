"""The matrix of verdicts, what it rests on, and a list of all that does not agree."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from validation.judge.independence import IN_WORDS, bases
from validation.judge.results import Results
from validation.judge.verdicts import CASE, FILE, MEANING, CaseVerdict, Key, case_verdicts
from validation.report.blocks import NOTHING, Cell, Section, Table, cell, folded_if_long
from validation.studies.run.views import anchors_of_cases, section_if, source_names, verdict_cell

SHARED_TEXT = (
    "What a source has in common with the reference: for that it cannot vouch, because a fault there is in both. The "
    "motion that is asked for is common to all of them, and so is what the overrides of a variant do to the MJCF. The "
    f"numbers of the robot's files are read once more past our own reading, by MuJoCo's compiler ({FILE} in the "
    "audit): where they differ, the reference is in doubt and nothing of the case agrees. What loopcheck mutants seeds "
    "in one of these columns every source notices, or the files do where the source shares it."
)


def verdicts(results: Results) -> Section:
    """The matrix of verdicts, what it rests on, and a ledger of all that does not agree."""
    findings, anchors, names, grounds = (
        case_verdicts(results),
        anchors_of_cases(results),
        source_names(results),
        bases(results),
    )
    matrix = [
        [
            *(Cell(name, link=anchors[case]) for name in case),
            Cell(grounds[case].text if case in grounds else NOTHING),
            *(verdict_cell(of_case.get(source)) for source in names),
        ]
        for case, of_case in findings.items()
    ]
    shared = [
        [Cell(source), *(Cell("shared" if name in common else "its own") for name in IN_WORDS)]
        for source, common in (results.run.get("shares") or {}).items()
    ]
    ledger = [row for case, of_case in findings.items() for row in _ledger_rows(case, anchors[case], of_case)]
    columns = ["case", "source", "verdict", "relative error [-]", "tolerance [-]", "what is known"]
    return Section(
        title="Verdicts",
        anchor="verdicts",
        blocks=[
            "Each source with the worst verdict and the worst relative error of its actuators.",
            *folded_if_long("Verdicts by case", "matrix", Table([*CASE, "rests on", *names], matrix)),
            [f"{verdict}: {meaning}" for verdict, meaning in MEANING.items()],
            "Verdicts rest on a closed form where the paper's own equations confirm the reference, and on two "
            "lineages where two families of engines do that share no code (MuJoCo and its ports are one). Our own two "
            "models are one lineage, which does not count. What rests on less is agreement only.",
            *section_if(
                shared,
                "What is shared",
                "shared",
                SHARED_TEXT,
                Table(["source", *IN_WORDS.values()], shared),
                folded=True,
            ),
            *section_if(
                ledger,
                "What does not agree",
                "ledger",
                *folded_if_long("The ledger", "ledger-rows", Table(columns, ledger)),
            ),
        ],
    )


def _ledger_rows(case: Key, anchor: str, of_case: Mapping[str, CaseVerdict]) -> Iterable[Sequence[Cell]]:
    """What of a case does not agree; sources of which the same is known share a row."""
    notable = [f for f in of_case.values() if f.verdict in ("disagree", "not run", "not comparable", "as expected")]
    for verdict, note in dict.fromkeys((finding.verdict, finding.note) for finding in notable):
        alike = {s: f for s, f in of_case.items() if (f.verdict, f.note) == (verdict, note)}
        largest = max(alike.values(), key=lambda finding: np.nan_to_num(finding.error))
        yield [
            Cell(" · ".join(case), link=anchor),
            Cell(", ".join(alike)),
            Cell(verdict, verdict),
            cell(largest.error),
            cell(largest.tolerance),
            Cell(note or NOTHING),
        ]
