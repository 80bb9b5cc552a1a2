"""What an error is made of: parts add up to it, and removing their causes leaves next to nothing."""

import numpy as np
import pandas as pd
import pytest

from engines.mujoco import causes as causes_of_mujoco
from robots.arrays import Array
from robots.robot import load, representative_case
from validation.studies.budget.parts import BOTH, LARGE, REST, SOFTNESS, STEP, _of_actuator, budget, parts, share
from validation.studies.budget.study import TABLE, Budget

pytest.importorskip("mujoco")

T = np.linspace(0, 1, 200)
SOFT, COARSE = np.sin(7 * T), np.cos(11 * T)


def runs(together: float) -> dict[frozenset[str], Array]:
    """Errors of two causes that act each by itself, and by some part together."""
    size = {
        (): SOFT + 2 * COARSE + together * SOFT,
        (STEP,): SOFT,
        (SOFTNESS,): 2 * COARSE,
        (STEP, SOFTNESS): 0.01 * SOFT,
        (STEP, SOFTNESS, "solver"): 0.01 * SOFT,
    }
    return {frozenset(removed): error[:, None] for removed, error in size.items()}


def test_parts_add_up_to_the_error() -> None:
    found = parts(runs(0.4), (STEP, SOFTNESS, "solver"))
    for side in ("residual", "other"):
        np.testing.assert_allclose(sum(getattr(part, side) for part in found), runs(0.4)[frozenset()], atol=1e-12)
    assert [part.name for part in found] == [STEP, SOFTNESS, "solver", REST]


def test_shares_are_projections_that_add_to_one() -> None:
    whole = SOFT + 2 * COARSE
    assert share(SOFT, whole) + share(2 * COARSE, whole) == pytest.approx(1)
    assert share(-whole, whole) == pytest.approx(-1)
    assert np.isnan(share(SOFT, 0 * whole))


@pytest.mark.parametrize(("together", "is_one"), [(0.1, False), (2.0, True)])
def test_what_the_order_decides_is_shown_as_one(together: float, is_one: bool) -> None:
    rows = pd.DataFrame.from_records(list(_of_actuator({}, parts(runs(together), (STEP, SOFTNESS, "solver")), 0)))
    assert (BOTH in set(rows["part"])) is is_one
    assert (STEP in set(rows["part"])) is not is_one
    assert rows.loc[rows["part"] != "all", "share"].sum() == pytest.approx(1)


@pytest.mark.slow
def test_the_rest_of_a_real_error_is_small_and_every_setting_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes_of_mujoco, "FINER", 8)
    rows = Budget.tables[TABLE].frame(budget(representative_case(load("four_bar")), "mujoco/as_is")).set_index("part")
    rms, shares, largest = (rows[name].astype(float).to_dict() for name in ("rms", "share", "largest"))
    assert rms[REST] < LARGE * rms["all"]
    assert sum(shares[name] for name in (STEP, SOFTNESS, "solver", REST)) == pytest.approx(1)
    assert shares[SOFTNESS] > shares[STEP]
    assert rms[f"without {SOFTNESS}"] < rms["all"] / 2
    tried = {name: rows["setting"].to_dict()[f"without {name}"] for name in causes_of_mujoco.CAUSES}
    assert tried == causes_of_mujoco.CAUSES
    assert largest[f"start without {SOFTNESS}"] < largest["start"]


@pytest.mark.slow
def test_a_robot_that_cannot_be_judged_has_no_budget() -> None:
    """The stiff mechanism of Andrews' squeezer runs away in PyBullet's own steps."""
    pytest.importorskip("pybullet")
    (row,) = budget(representative_case(load("andrews")), "pybullet/as_is")
    assert "not followed" in row["note"]
