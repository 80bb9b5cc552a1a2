"""How each source is computed, with which settings, and how far it may be off."""

import pandas as pd

from validation.judge.results import Results
from validation.report.blocks import Cell, Section, Table, plain, table
from validation.studies.run.views import absent_in_words, section_if, source_names

_LIMITS = {
    "source": "source",
    "relative_error": "relative error [-]",
    "closure_drift": "closure drift [m or rad]",
    "tracking_error": "tracking error [m or rad]",
    "power_imbalance": "power imbalance [-]",
    "noise": "noise [-]",
    "margin": "margin [-]",
    "noise_from": "noise from",
}


def sources(results: Results) -> Section:
    """How each source is computed, with which settings, and how far it may be off."""
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
            Table(["source", "what it exercises"], exercised) if names else "No source.",
            *([f"{absent[0].upper()}{absent[1:]}."] if (absent := absent_in_words(results)) else []),
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
