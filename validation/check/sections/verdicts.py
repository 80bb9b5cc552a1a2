"""Section of the report: verdicts by case, their independent confirmation, comparisons that do not agree."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from loopcheck.validation.check.independence import IN_WORDS, LAWS, bases
from loopcheck.validation.check.views import (
    anchors_of_cases,
    case_name,
    section_if,
    source_names,
    verdict_matrix,
)
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.verdicts import (
    FILE,
    MEANING,
    NOT_SUPPORTED,
    CaseVerdict,
    case_verdicts,
    original_mode,
)
from loopcheck.validation.report.blocks import NOTHING, Cell, Section, Table, cell, folded_if_long

UNSUPPORTED = CaseVerdict(NOT_SUPPORTED, np.nan, np.nan, "")

SHARED_TEXT = (
    "Inputs that a source takes from loopcheck's model, as the reference does. A source cannot detect a fault in "
    "a shared input, because the fault is in the reference too. All sources share the prescribed motion and the "
    "parameter overrides of a variant. MuJoCo takes separate inputs from the compiled model, and the reference "
    "takes its numbers from the same compiler. Further readers that share no code with it read the files again "
    f"({FILE} in the audit). If the readings differ, the reference is in doubt and no source of the case agrees. "
    "The tests of loopcheck seed a fault in the input of each column; a source or the audit of the files must "
    "detect it."
)
CONFIRMATION_TEXT = (
    "The equations of a case are confirmed independently in two ways: the closed-form equations of the paper "
    "agree with the reference, or engines of two code bases agree that share no code. MuJoCo and its ports count "
    "as a single code base. Code bases that take a load of the case from the same functions of loopcheck ("
    f"{', '.join(LAWS.values())}"
    ", where an engine lacks them) count as one. The two analytic models share a code base and do not count. "
    "Engines get masses, axes and loops from the reader of the reference, so their agreement does not confirm "
    "these numbers. Further readers of the file do: plain XML, and the parsers of Drake and Pinocchio for "
    "inertias. Only values that they read are confirmed."
)


def verdicts(results: Results) -> Section:
    """Verdicts by case, their independent confirmation, and all comparisons that do not agree."""
    findings, anchors, grounds = case_verdicts(results), anchors_of_cases(results), bases(results)
    names = {case: case_name(case, results) for case in findings}
    rows = {names[case]: (anchors[case], of_case) for case, of_case in findings.items()}
    supported = [
        name
        for name in source_names(results)
        if any(of_case.get(name, UNSUPPORTED).verdict != NOT_SUPPORTED for of_case in findings.values())
    ]
    confirmation = [
        [
            Cell(names[case], link=anchors[case]),
            *map(Cell, (grounds[case].text, grounds[case].text_of_file) if case in grounds else ("no agreement", "")),
        ]
        for case in findings
        if not original_mode(results, case)
    ]
    shared = [
        [Cell(source), *(Cell("shared" if name in common else "separate") for name in IN_WORDS)]
        for source, common in (results.run.get("shares") or {}).items()
    ]
    ledger = [row for case, of_case in findings.items() for row in _ledger_rows(names[case], anchors[case], of_case)]
    columns = ["case", "source", "verdict", "relative error [-]", "tolerance [-]", "note"]
    return Section(
        title="Verdicts",
        anchor="verdicts",
        blocks=[
            "Worst verdict and worst relative error of the actuators, by source and case:",
            *folded_if_long("Verdicts by case", "matrix", verdict_matrix(rows, supported)),
            [f"{verdict}: {meaning}" for verdict, meaning in MEANING.items()],
            *section_if(
                grounds,
                "Independent confirmation",
                "confirmation",
                CONFIRMATION_TEXT,
                *folded_if_long(
                    "Confirmation by case",
                    "confirmation-rows",
                    Table(["case", "equations", "numbers of the file"], confirmation),
                ),
            ),
            *section_if(
                shared,
                "Inputs shared with the reference",
                "shared",
                SHARED_TEXT,
                Table(["source", *IN_WORDS.values()], shared),
                folded=True,
            ),
            *section_if(
                ledger,
                "Comparisons that do not agree",
                "ledger",
                *folded_if_long("All comparisons that do not agree", "ledger-rows", Table(columns, ledger)),
            ),
        ],
    )


def _ledger_rows(name: str, anchor: str, of_case: Mapping[str, CaseVerdict]) -> Iterable[Sequence[Cell]]:
    """Comparisons of a case that do not agree; sources with the same verdict and note share a row."""
    notable = [f for f in of_case.values() if f.verdict in ("disagree", "not run", "not comparable", "as expected")]
    for verdict, note in dict.fromkeys((finding.verdict, finding.note) for finding in notable):
        alike = {s: f for s, f in of_case.items() if (f.verdict, f.note) == (verdict, note)}
        largest = max(alike.values(), key=lambda finding: np.nan_to_num(finding.error))
        yield [
            Cell(name, link=anchor),
            Cell(", ".join(alike)),
            Cell(verdict, verdict),
            cell(largest.error),
            cell(largest.tolerance),
            Cell("; ".join(dict.fromkeys(note.split("; "))) or NOTHING),  # actuators repeat parts of a note
        ]
