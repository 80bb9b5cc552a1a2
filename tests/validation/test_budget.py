"""Parts of an error: they add up to it, and without their causes almost no error remains."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines import mujoco
from loopcheck.engines.declarations import LEFT_OUT, Tuning, Value, log_without
from loopcheck.engines.mujoco import tuning as tuning_of_mujoco
from loopcheck.robots.arrays import Array
from loopcheck.robots.log import UNMODELLED, Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.tune.budget import (
    BELOW,
    BOTH,
    FLOOR,
    LARGE,
    NO_DIGITS,
    PRECISION,
    REST,
    SOFTNESS,
    STEP,
    _of_actuator,
    budget,
    parts,
    share,
)
from loopcheck.validation.tune.study import BUDGET, Tune
from tests.conftest import CaseMaker
from tests.validation.conftest import Command, in_this_process

pytest.importorskip("mujoco")

T = np.linspace(0, 1, 200)
SOFT, COARSE = np.sin(7 * T), np.cos(11 * T)


def set_finer(monkeypatch: pytest.MonkeyPatch, ratio: int) -> None:
    """Remove the step as a cause by fewer steps than usual."""
    step = replace(tuning_of_mujoco.SETTINGS["step"], finer=Value(step=1 / ratio))
    monkeypatch.setitem(tuning_of_mujoco.SETTINGS, "step", step)


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


@pytest.mark.extended("test_parts_add_up_to_the_error")
def test_the_rest_of_a_real_error_is_small_and_every_setting_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    set_finer(monkeypatch, 8)
    rows = Tune.tables[BUDGET].frame(budget(representative_case(load("four_bar")), "mujoco/as_is")).set_index("part")
    rms, shares, largest = (rows[name].astype(float).to_dict() for name in ("rms", "share", "largest"))
    assert rms[REST] < LARGE * rms["all"]
    assert sum(shares[name] for name in (STEP, SOFTNESS, "solver", REST)) == pytest.approx(1)
    assert shares[SOFTNESS] > shares[STEP]
    assert rms[f"without {SOFTNESS}"] < rms["all"] / 2
    finer = {name: setting.written for name, setting in tuning_of_mujoco.SETTINGS.items() if setting.finer}
    settings = {name: written for name, written in finer.items() if name != LEFT_OUT}
    assert {name: rows["setting"].to_dict()[f"without {name}"] for name in settings} == settings
    assert largest[f"start without {SOFTNESS}"] < largest["start"]
    assert LEFT_OUT not in shares  # nothing of the kind acts
    notes = rows["note"].to_dict()
    assert 0 < rms[FLOOR] < rms["all"]
    assert not notes[FLOOR]
    assert 0 < rms[PRECISION] < 1e-6 * rms["all"]
    assert np.isnan(shares[PRECISION])


@pytest.mark.extended("test_parts_add_up_to_the_error")
def test_the_last_digits_of_single_precision_are_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their size is known: noise of a known deviation in all runs except the unmodified run."""
    sigma, rng = 0.3, np.random.default_rng(0)
    motions = []

    def noisy(tuning: Tuning, case: Case, motion: Motion, removed: Collection[str], **others: str) -> Log:
        motions.append(motion)
        exact = log_without(tuning, case, motion, removed, source="mujoco/as_is")
        return replace(exact, effort=exact.effort + rng.normal(0, sigma, exact.effort.shape))

    monkeypatch.setattr("loopcheck.validation.tune.budget.SHAKEN", 3)
    set_finer(monkeypatch, 2)
    monkeypatch.setattr("loopcheck.validation.tune.budget.log_without", noisy)
    monkeypatch.setattr(mujoco, "ENGINE", replace(mujoco.ENGINE, single_precision=True))
    rows = Tune.tables[BUDGET].frame(budget(representative_case(load("four_bar")), "mujoco/as_is")).set_index("part")
    rms, shares = (rows[name].astype(float).to_dict() for name in ("rms", "share"))
    assert rms[PRECISION] == pytest.approx(sigma / np.sqrt(3), rel=0.15)
    assert sum(shares[name] for name in (PRECISION, STEP, SOFTNESS, "solver", REST)) == pytest.approx(1)
    assert rows["setting"].to_dict()[f"without {PRECISION}"] == NO_DIGITS
    moves = np.abs(motions[1].q - motions[0].q)
    assert np.median(moves[moves > 0]) > 1e-8  # by digits of single precision


@pytest.mark.extended("test_parts_add_up_to_the_error")
def test_friction_is_a_part_where_there_is_some(
    model_case: CaseMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken as MuJoCo reports it, so that almost no part of the error belongs to it."""
    set_finer(monkeypatch, 2)
    text = (load("four_bar").folder / "four_bar.xml").read_text(encoding="utf-8")
    path = tmp_path / "rough.xml"
    path.write_text(text.replace('<joint name="crank"', '<joint name="crank" frictionloss="0.5"'), encoding="utf-8")
    case = model_case(path, amplitude=0.3, configuration="vertical")
    rows = Tune.tables[BUDGET].frame(budget(case, "mujoco/as_is")).set_index("part")
    shares = rows["share"].astype(float).to_dict()
    assert sum(shares[name] for name in (STEP, SOFTNESS, "solver", LEFT_OUT, REST)) == pytest.approx(1)
    assert abs(shares[LEFT_OUT]) < LARGE
    assert 'frictionloss="disable"' in rows["setting"].to_dict()[f"without {LEFT_OUT}"]
    log = log_without(tuning_of_mujoco, case, prescribe(case), {LEFT_OUT}, source="mujoco/as_is")
    assert UNMODELLED not in log.readings


def test_parts_of_an_error_below_its_floor_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    set_finer(monkeypatch, 2)
    monkeypatch.setattr("loopcheck.analytic.logs.residual.MARGIN", 1e6)
    rows = Tune.tables[BUDGET].frame(budget(representative_case(load("four_bar")), "mujoco/as_is")).set_index("part")
    assert rows["note"].to_dict()[FLOOR] == BELOW


def test_a_robot_that_cannot_be_judged_has_no_budget() -> None:
    """The stiff mechanism of Andrews' squeezer runs away in PyBullet's own steps."""
    pytest.importorskip("pybullet")
    (row,) = budget(representative_case(load("andrews")), "pybullet/as_is")
    assert "not followed" in row["note"]


@pytest.mark.extended("test_the_error_of_the_route_of_the_engine_is_split")
@pytest.mark.usefixtures("short_proofs")
def test_the_terminal_names_the_setting_that_removes_each_part(
    loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone and with a search; the table, the page and the terminal have the same figures."""
    set_finer(monkeypatch, 2)
    for options, shown in (((), False), (("--accuracy", "50%", "--keep-setting", "timestep,integrator"), True)):
        with in_this_process():
            status, out, err = loopcheck("tune", "four_bar", "--explain", *options, "--out", tmp_path / "out")
        assert (status, err) == (0, "")
        assert ("Reached" in out) is shown
        page = (tmp_path / "out/tune.md").read_text(encoding="utf-8")
        assert "Parts of the error" in page
        rows = pd.read_csv(tmp_path / "out/budget.csv").set_index("part")
        for part in (STEP, SOFTNESS, "solver"):
            (line,) = (line for line in out.splitlines() if f" {part} " in line and "%" in line)
            assert f"{100 * rows['share'][part]:.1f} %" in line
            assert rows["setting"][f"without {part}"][:20] in line


def test_the_error_of_the_route_of_the_engine_is_split() -> None:
    class Pool:
        def results(self, tasks: list[Task], _: str) -> list[list[object]]:
            asked.extend(tasks)
            return [[] for _ in tasks]

    asked: list[Task] = []
    case = representative_case(load("four_bar"))
    Tune(case=case, accuracy=0, explains=True).compute(Pool(), Path())  # type: ignore[arg-type]
    (task,) = asked
    assert (task.args, task.engine) == ((case, "mujoco/as_is"), "mujoco")
