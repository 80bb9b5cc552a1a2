"""The report of a run, made from its tables alone: one self-contained HTML file, and the same as Markdown.

A report is a list of sections. Each is a function of the results and returns a part: blocks under a heading. One
template shows the blocks as HTML, another as Markdown, so that both say the same.
"""

from collections.abc import Callable

from validation.judge.results import Results
from validation.report.blocks import Section
from validation.studies.run.sections.answer import answer
from validation.studies.run.sections.audit import audit_section
from validation.studies.run.sections.cases import cases
from validation.studies.run.sections.convergence import convergence
from validation.studies.run.sections.explained import explained
from validation.studies.run.sections.provenance import provenance
from validation.studies.run.sections.robots import robots
from validation.studies.run.sections.sources import sources
from validation.studies.run.sections.verdicts import verdicts

SECTIONS: tuple[Callable[[Results], Section], ...] = (
    answer,
    verdicts,
    audit_section,
    robots,
    cases,
    convergence,
    explained,
    sources,
    provenance,
)
