"""The report of a check, made from its tables alone: one self-contained HTML file, and a Markdown file.

A report is a list of sections. Each section is a function of the results and returns blocks under a heading. One
template renders the blocks as HTML and another as Markdown, with the same content.
"""

from collections.abc import Callable

from loopcheck.validation.check.sections.answer import answer
from loopcheck.validation.check.sections.appendix import explained, provenance, sources
from loopcheck.validation.check.sections.audit import audit_section
from loopcheck.validation.check.sections.cases import cases, convergence
from loopcheck.validation.check.sections.robots import robots
from loopcheck.validation.check.sections.verdicts import verdicts
from loopcheck.validation.common.results import Results
from loopcheck.validation.report.blocks import Section

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
