"""Anchors apart along a pin: found in the frame of the carrier, removed from the reference, and their couple."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.dynamics.couples import offset_couples
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.closing import with_closing
from loopcheck.analytic.kinematics.offsets import pin_offsets, without_offsets
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.conftest import CaseMaker
from tests.exported_legs import CARRIERS, Leg, cut_trees, opening_rates

OFFSET = 0.01
PLAIN = Leg(closure="connect", digits=17)
APART = replace(PLAIN, offset=OFFSET)


def mechanism_of(leg: Leg, folder: Path) -> Mechanism:
    (folder / "leg.xml").write_text(leg.text(), encoding="utf-8")
    return read_mechanism(ModelFile(path=folder / "leg.xml"))


def moved(leg: Leg, folder: Path, model_case: CaseMaker) -> tuple[Case, Motion]:
    path = folder / f"leg{leg.offset:g}.xml"
    path.write_text(leg.text(), encoding="utf-8")
    case = model_case(path, amplitude=0.3, duration=0.1, frequency=2.0)
    return case, prescribe(case)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize(("closure", "digits"), [("connect", 17), ("two connects", 17), ("connect", 6)])
def test_an_offset_is_found_on_each_carrier(carrier: str, closure: str, digits: int, tmp_path: Path) -> None:
    leg = replace(APART, carrier=carrier, closure=closure, digits=digits, seed=len(carrier))
    mechanism = mechanism_of(leg, tmp_path)
    offsets = pin_offsets(mechanism)
    assert [offset.length for offset in offsets] == pytest.approx([OFFSET] * len(mechanism.closures), rel=1e-3)
    repaired = with_closing(without_offsets(mechanism, offsets))
    gap = np.abs(State.at_rest(repaired, repaired.rest_position[None]).gap).max()
    assert gap < (1e-14 if digits == 17 else 1e-5)
    assert pin_offsets(repaired) == ()
    for offset in offsets:
        assert offset.axes[0] == pytest.approx(mechanism.joints[-2].axis, abs=1e-5) or offset.axes[0] == pytest.approx(
            -mechanism.joints[-2].axis, abs=1e-5
        )


@pytest.mark.parametrize("offset", [0.0, 2e-5])
def test_loops_that_close_have_no_offset(offset: float, tmp_path: Path) -> None:
    assert pin_offsets(mechanism_of(replace(PLAIN, offset=offset), tmp_path)) == ()


def test_rounding_along_the_pin_is_no_offset(tmp_path: Path) -> None:
    for seed in range(4):
        assert pin_offsets(mechanism_of(Leg(carrier="fixed", digits=4, seed=seed), tmp_path)) == ()
    closes_without = Leg(carrier="slide", closure="connect", digits=4, seed=779)
    assert pin_offsets(mechanism_of(closes_without, tmp_path)) == ()


def test_an_anchor_out_of_place_in_the_plane_is_no_offset(tmp_path: Path) -> None:
    """Links that are too short leave a gap across the pin."""
    mechanism = mechanism_of(replace(PLAIN, shift=5.0), tmp_path)
    assert np.abs(State.at_rest(mechanism, mechanism.rest_position[None]).gap).max() > 1
    assert pin_offsets(mechanism) == ()


def efforts_at_two_points(case: Case, motion: Motion) -> Array:
    """Efforts by MuJoCo's inverse dynamics of the tree and lateral forces at both sites of the file."""
    efforts = []
    for model, data in cut_trees(case, motion):
        pin = data.xaxis[model.joint("coupler0").id]
        lateral = (np.eye(3) - np.outer(pin, pin)) @ opening_rates(model, data, 0)
        A = np.concatenate([case.mechanism.selection, lateral]).T
        efforts.append(np.linalg.lstsq(A, data.qfrc_inverse, rcond=1e-9)[0][: case.mechanism.na])
    return np.array(efforts)


@pytest.mark.parametrize(("carrier", "largest"), [("hinge", 1e-3), ("fixed", 0.0)])
def test_forces_at_two_points_are_a_couple(carrier: str, largest: float, tmp_path: Path, model_case: CaseMaker) -> None:
    """The reference has the efforts of the pin without an offset, and states the difference to two forces exactly."""
    (plain, _), (case, motion) = (moved(replace(leg, carrier=carrier), tmp_path, model_case) for leg in (PLAIN, APART))
    effort = Noc().compute_efforts(case, motion).effort
    assert case.mechanism.offsets
    expected = Noc().compute_efforts(plain, prescribe(plain)).effort
    peak = np.abs(expected).max(axis=0)
    assert (np.abs(effort - expected).max(axis=0) < 1e-12 * peak).all()
    couples = offset_couples(case.mechanism, motion, effort)
    off = np.abs(efforts_at_two_points(case, motion) - effort).max(axis=0)
    np.testing.assert_allclose(couples, off, atol=1e-12 * peak.max())
    assert (couples / peak).max() == pytest.approx(0, abs=1e-12) if not largest else (couples / peak).max() > largest
