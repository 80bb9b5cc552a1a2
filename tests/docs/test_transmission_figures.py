"""The published figures of transmissions: those of the sources' own models, and the table of the README."""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import pandas as pd
import pytest

from docs.kept_tables import ROOT
from docs.transmission_tables import FILE
from loopcheck.robots.transmission import load_transmission
from tests.robots.test_transmission_data import FIGURES

Figures: TypeAlias = Mapping[tuple[str, str, str], Mapping[Any, Any]]
"""Rows by transmission, quantity and part."""


@pytest.fixture(scope="module")
def figures() -> Figures:
    rows = pd.read_csv(FILE).fillna({"part": ""}).to_dict("records")
    return {(row["transmission"], row["quantity"], row["part"]): row for row in rows}


@pytest.mark.parametrize("name", FIGURES)
def test_factors_are_those_of_the_source(name: str, figures: Figures) -> None:
    inertia, joints = FIGURES[name][0], load_transmission(name).joint_names
    for k, joint in enumerate(joints):
        factor = figures[name, "armature factor", joint]
        assert factor["at_zero"] == pytest.approx(inertia[k][k], rel=1e-4)
        assert factor["low"] <= factor["median"] <= factor["high"] <= factor["bound"]
    if len(joints) == 2:
        coupling = figures[name, "coupling factor", f"{joints[0]} × {joints[1]}"]
        assert coupling["at_zero"] == pytest.approx(inertia[0][1], abs=1e-4)


def test_limits_are_below_the_ones_that_were_found(figures: Figures) -> None:
    limits = [row for (_, quantity, _), row in figures.items() if " limit, " in quantity]
    assert len(limits) >= 100
    assert all(0.9 * row["low"] <= row["bound"] <= row["low"] for row in limits)


def test_the_readme_shows_these_figures(figures: Figures) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[[^]]+\]\(robots/transmissions/(\w+)\.toml\) \|(.+)\|$", text, re.MULTILINE)
    assert len(rows) >= 5
    for name, cells in rows:
        joints = load_transmission(name).joint_names
        zero, reach, limit, error = (cell.strip() for cell in cells.split("|"))
        factors = [figures[name, "armature factor", joint] for joint in joints]
        assert zero == ", ".join(f"{factor['at_zero']:.2f}" for factor in factors)
        assert reach == ", ".join(f"{factor['low']:.1f} to {factor['high']:.1f}" for factor in factors)
        safe = [figures[name, "effort limit, all together", joint] for joint in joints]
        unit = " per unit" if "per unit" in safe[0]["unit"] else " N m"
        assert limit == ", ".join(f"{each['bound']:.3g}" for each in safe) + unit
        usual = figures[name, "error of the usual constants", "motors"]
        assert error == f"{100 * usual['median']:.0f} %, {100 * usual['high']:.0f} %"
