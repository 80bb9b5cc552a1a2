"""Section of the report: method, settings and tolerances of each source."""

import pandas as pd

from loopcheck.validation.judge.results import Results
from loopcheck.validation.report.blocks import Cell, Section, Table, plain, table
from loopcheck.validation.studies.check.closing import unsupported_in_words
from loopcheck.validation.studies.check.views import section_if, source_names

_LIMITS = {
    "source": "source",
    "relative_error": "relative error [-]",
    "closure_drift": "closure drift [m or rad]",
    "tracking_error": "tracking error [m or rad]",
    "power_imbalance": "power imbalance [-]",
    "noise": "noise [-]",
    "margin": "margin [-]",
    "noise_from": "origin of the noise",
}


def sources(results: Results) -> Section:
    """Method, settings and tolerances of each source."""
    descriptions, settings, tolerances = (results.run.get(key) or {} for key in ("sources", "settings", "tolerances"))
    names = list(dict.fromkeys([*source_names(results), *descriptions, *settings]))
    exercised = [[Cell(name), Cell(plain(descriptions.get(name)))] for name in names]
    options = [(name, key, value) for name in names for key, value in (settings.get(name) or {}).items()]
    limits = pd.DataFrame([{"source": name, **limit} for name, limit in (tolerances.get("routes") or {}).items()])
    limits = limits[sorted(limits.columns, key=[*_LIMITS, *limits.columns].index)].rename(columns=_LIMITS)
    return Section(
        title="Sources, settings and tolerances",
        anchor="sources",
        blocks=[
            Table(["source", "method"], exercised) if names else "No source.",
            *([f"Not supported: {absent}."] if (absent := unsupported_in_words(results)) else []),
            *section_if(
                options,
                "Settings",
                "settings",
                table(pd.DataFrame(options, columns=["source", "setting", "value"])),
                folded=True,
            ),
            *section_if(len(limits), "Tolerances", "tolerances", table(limits), folded=True),
        ],
    )
