"""Line styles of sources, separate from other views because the terminal output does not need them."""

from collections.abc import Mapping

from loopcheck.validation.judge.results import Results
from loopcheck.validation.judge.verdicts import reference_of
from loopcheck.validation.report import figures
from loopcheck.validation.studies.check.views import source_names


def looks_of_sources(results: Results) -> Mapping[str, figures.Look]:
    """Line style of each source in all figures of the page."""
    informational = results.summary.loc[results.summary["verdict"] == "informational", "source"]
    reference = reference_of(results.summary)
    return figures.looks(source_names(results), reference=reference, informational=informational)
