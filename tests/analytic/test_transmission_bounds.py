"""Bounds of transmissions over their poses against dense searches, and the figures made of them."""

import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.transmission.bounds import Domain
from loopcheck.analytic.transmission.limits import Box
from loopcheck.analytic.transmission.recognition import crank_rod_of
from loopcheck.analytic.transmission.twin import make_twin
from loopcheck.robots.catalogue import transmission_names
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.transmission import FOLDER, Transmission, load_transmission, mjcf_of
from loopcheck.validation.serial.rows.transmission_rows import transmission_rows
from tests.cpu_time import extended_but

DENSE = {1: 20001, 2: 201, 3: 31}
SOME = {"unitree_g1_ankle_left": (0.96, 0.6), "digit_tarsus_left": (0.98, 1.0)}
"""Transmissions; the least part of the best limits that is proven, and the searched part of the joint ranges [-]."""


def domain_of(transmission: Transmission, folder: Path) -> Domain:
    path = folder / f"{transmission.name}.xml"
    path.write_text(mjcf_of(transmission), encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=path))
    names = {name: name for name in transmission.joint_names}
    twin = make_twin(mechanism, mechanism.rest_position, mechanism, mechanism.rest_position, names)
    low, high = twin.ranges.T
    return Domain(transmission=crank_rod_of(twin.closed, twin.motors), low=low, high=high)


@pytest.mark.parametrize(
    "name", extended_but(["digit_tarsus_left"], SOME, "test_no_pose_of_a_dense_search_exceeds_a_bound")
)
def test_no_pose_of_a_dense_search_exceeds_a_bound(name: str, tmp_path: Path) -> None:
    transmission, (least, part) = load_transmission(name), SOME[name]
    whole = domain_of(transmission, tmp_path)
    domain = replace(whole, low=part * whole.low, high=part * whole.high)
    n = len(transmission.joint)
    one = np.ones(n)
    rows = list(transmission_rows(domain, Box(low=-20 * one, high=20 * one), Box(low=-9 * one, high=9 * one), (), True))
    x = domain.grid(DENSE[n])
    T = domain.transmission.motor_state(x).transmission
    inverse = np.abs(np.linalg.inv(T))
    bounds = {(row["quantity"], row["part"]): row["bound"] for row in rows}
    found = {(row["quantity"], row["part"]): row["low"] for row in rows}
    boxes = {
        kind: [bounds[f"{kind} limit, all together", joint] for joint in transmission.joint_names]
        for kind in ("effort", "speed")
    }
    asked = np.einsum("tjk,j->tk", inverse, boxes["effort"]).max()
    assert least * 20 < asked <= 20
    asked = np.einsum("tkj,j->tk", np.abs(T), boxes["speed"]).max()
    assert least * 9 < asked <= 9
    for j, joint in enumerate(transmission.joint_names):
        factor = (T[:, :, j] ** 2).sum(axis=1).max()
        assert factor <= bounds["armature factor", joint] <= factor / least**2
        alone = 20 / inverse[:, j].max()
        assert (
            0.9 * alone
            < bounds["effort limit, alone", joint]
            <= found["effort limit, alone", joint]
            <= alone * (1 + 1e-3)
        )
        fastest = 9 / np.abs(T[:, :, j]).max()
        assert least * fastest < bounds["speed limit, alone", joint] <= fastest


@pytest.mark.evidence("a search of the whole box", seconds=0.9)
def test_the_reach_is_refined_beyond_the_grid(tmp_path: Path) -> None:
    transmission = load_transmission("unitree_g1_ankle_left")
    domain = domain_of(transmission, tmp_path)
    wide = Domain(transmission=domain.transmission, low=np.array([-1.1, -0.6]), high=np.array([1.1, 0.6]))
    one = np.ones(2)
    rows = transmission_rows(wide, Box(low=-one, high=one), Box(low=-np.inf * one, high=np.inf * one), (), False)
    reached = [row for row in islice(rows, 3) if row["quantity"] == "reached"]
    dense, coarse = wide.grid(601), wide.grid(61)
    for k, row in enumerate(reached):
        assert row["low"] <= dense[:, k].min() + 1e-9
        assert row["high"] >= dense[:, k].max() - 1e-9
    assert reached[0]["low"] < coarse[:, 0].min() - 1e-4
    assert reached[0]["high"] < 1.1
    box = wide.inner_box()
    corners = np.array([[a, b] for a in box[0] for b in box[1]])
    assert wide.contains(corners).all()


def test_bad_tables_of_transmissions_get_one_line(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="tienkung"):
        load_transmission("tienkung_ankle")
    path = tmp_path / "ankle.toml"
    shutil.copy(FOLDER / f"{transmission_names()[-1]}.toml", path)
    good = path.read_text(encoding="utf-8")
    for old, new, reason in (
        ("axis = [", "axes = [", "axis"),
        ('certainty = "', 'certainty = "quite ', "certainty"),
        ("[[leg]]", "[[leg]]\nspring = 3", "unknown key"),
    ):
        path.write_text(good.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(MechanismError, match=reason) as refusal:
            load_transmission(path)
        assert "\n" not in str(refusal.value)
    path.write_text(good[: good.rindex("[[leg]]")], encoding="utf-8")
    with pytest.raises(MechanismError, match="a leg for each of"):
        load_transmission(path)
