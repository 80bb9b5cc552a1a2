"""The published figures of transmissions: those of the sources' own models, and the table of the guide."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest

from docs.kept_tables import ROOT
from docs.transmission_tables import FILE
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import transmission_names
from loopcheck.robots.transmission import load_transmission
from tests.analytic.test_transmission_bounds import domain_of
from tests.robots.test_transmission_data import FIGURES

GUIDE = ROOT / "docs/how_to/compare_a_serial_model.md"
DENSE = {1: 2001, 2: 61, 3: 25}
"""Poses of the search along each joint, by the number of joints."""
DIGITS = 1 + 1e-5
"""The table has six digits."""
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
    alone = [row for row in limits if np.isfinite(row["low"])]
    assert len(alone) >= 50
    assert all(0.9 * row["low"] <= row["bound"] <= row["low"] for row in alone)
    assert all(float(f"{row['bound']:.3g}") == row["bound"] for row in limits)  # one limit, as it is printed


@pytest.mark.parametrize("name", transmission_names())
def test_no_pose_of_a_dense_search_exceeds_a_published_bound(name: str, figures: Figures, tmp_path: Path) -> None:
    transmission = load_transmission(name)
    domain, n = domain_of(transmission, tmp_path), len(transmission.joint)
    of = {key[1:]: row for key, row in figures.items() if key[0] == name}

    def efforts(x: Array) -> Array:
        return np.abs(np.linalg.inv(domain.transmission.motor_state(x).transmission)).swapaxes(1, 2)

    def rates(x: Array) -> Array:
        return np.abs(domain.transmission.motor_state(x).transmission)

    x = domain.grid(DENSE[n])
    T = rates(x)
    for j, joint in enumerate(transmission.joint_names):
        assert (T[:, :, j] ** 2).sum(axis=1).max() <= of["armature factor", joint]["bound"] * DIGITS
    limits = [leg.effort_limit for leg in transmission.leg]
    most = np.array(limits) if all(limits) else np.ones(n)
    asked = {
        "effort": (efforts, most),
        "speed": (rates, np.array([leg.speed_limit for leg in transmission.leg])),
    }
    generator = np.random.default_rng(0)
    for quantity, (rows, largest) in asked.items():
        if (f"{quantity} limit, alone", transmission.joint_names[0]) in of:
            kinds = (
                [of[f"{quantity} limit, {kind}", joint]["bound"] for joint in transmission.joint_names]
                for kind in ("all together", "alone")
            )
            together, alone = map(np.array, kinds)
            assert (rows(x) * alone <= largest[:, None]).all()
            shares = (rows(x) @ together / largest).max(axis=1)
            best, size = x[shares.argmax()], (domain.high - domain.low) / (DENSE[n] - 1)
            for finer in (1, 4, 16):  # the largest may lie at an edge of the poses, between those of the grid
                near = np.clip(best + generator.uniform(-1, 1, (2000, n)) * size / finer, domain.low, domain.high)
                near = np.vstack([best, near[domain.contains(near)]])
                beside = (rows(near) @ together / largest).max(axis=1)
                best = near[beside.argmax()]
            assert 0.95 < max(shares.max(), beside.max()) <= 1  # within the tightness of the bound and three digits


def test_the_guide_shows_these_figures(figures: Figures) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[[^]]+\]\(../../robots/transmissions/(\w+)\.toml\) \|(.+)\|$", text, re.MULTILINE)
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
        kinds = ("error without armature", "error of the public constants", "error of the best constants")
        assert error == ", ".join(f"{100 * figures[name, kind, 'motors']['high']:.0f} %" for kind in kinds)


def test_the_guide_names_the_transmissions_for_which_the_public_factor_is_worse_than_nothing(figures: Figures) -> None:
    text = " ".join(GUIDE.read_text(encoding="utf-8").split())
    (named,) = re.findall(r"worse than no armature for ([^:.]+)", text)
    worse = {
        name
        for name in transmission_names()
        if (name, "error of the public constants", "motors") in figures
        and figures[name, "error of the public constants", "motors"]["high"]
        > figures[name, "error without armature", "motors"]["high"]
    }
    assert set(re.findall(r"`(\w+)`", named)) == worse


@pytest.mark.parametrize("name", transmission_names())
def test_written_constants_are_never_worse_and_near_the_best(name: str, figures: Figures) -> None:
    """Than the unmodified model and than the public factor, and beside the best armature for the motions judged."""
    of = {
        way: figures[name, f"effort error, {way}", "motors"]
        for way in ("plain", "public", "best", "armature", "constant", "urdf")
        if (name, f"effort error, {way}", "motors") in figures
    }
    for way in of.keys() & {"armature", "constant", "urdf"}:
        assert of[way]["high"] <= of["plain"]["high"] + 1e-3
        assert of[way]["median"] <= of["plain"]["median"] + 1e-3
    mean = of.get("armature", of["plain"])["median"]
    assert mean <= 1.05 * of["best"]["median"] + 1e-3
    if "public" in of:
        assert mean <= 1.02 * of["public"]["median"] + 1e-3
