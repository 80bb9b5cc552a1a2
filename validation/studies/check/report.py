"""The report of a run, made from its tables alone: one self-contained HTML file, and the same as Markdown.

A report is a list of sections. Each is a function of the results and returns a part: blocks under a heading. One
template shows the blocks as HTML, another as Markdown, so that both say the same.
"""

from collections.abc import Callable

from loopcheck.validation.judge.results import Results
from loopcheck.validation.report.blocks import Section
from loopcheck.validation.studies.check.sections.answer import answer
from loopcheck.validation.studies.check.sections.audit import audit_section
from loopcheck.validation.studies.check.sections.cases import cases
from loopcheck.validation.studies.check.sections.convergence import convergence
from loopcheck.validation.studies.check.sections.explained import explained
from loopcheck.validation.studies.check.sections.provenance import provenance
from loopcheck.validation.studies.check.sections.robots import robots
from loopcheck.validation.studies.check.sections.sources import sources
from loopcheck.validation.studies.check.sections.verdicts import verdicts

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
