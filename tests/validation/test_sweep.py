"""`loopcheck study sweep`: its variations, its findings, and no row lost or counted twice after a kill."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.closures import closure_residual
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.robots.catalogue import names
from loopcheck.robots.errors import HarnessError, LoopClosureError, MechanismError
from loopcheck.robots.formats.mjcf import with_overrides
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.common import sources
from loopcheck.validation.execution import cluster as dask
from loopcheck.validation.execution.workers import ALL_CORES, worker_pool
from loopcheck.validation.frame.preload import PRELOAD
from loopcheck.validation.frame.study import computed, run_study
from loopcheck.validation.judge.logs import judge_log
from loopcheck.validation.studies.sweep import study
from loopcheck.validation.studies.sweep.cases import (
    COMPUTED,
    Variation,
    compute_cases,
    drawn,
    nominal,
    prepare,
    table_of_cases,
)
from loopcheck.validation.studies.sweep.dataset import PARTS, chunks, part, tables, write_part
from loopcheck.validation.studies.sweep.motions import KINDS, SAMPLES
from loopcheck.validation.studies.sweep.parameters import inertial, parameters, perturbed
from loopcheck.validation.studies.sweep.statistics import Tally, gather, nominal_efforts
from loopcheck.validation.studies.sweep.study import Sweep
from tests.validation.conftest import Command, in_this_process

SMALL = Variation(target="3prr", sources=("mujoco/kkt",))
CASES = 30
OWN = replace(SMALL, motions=("own",), sources=())


@cache
def _case(name: str = "3prr", mode: str = "plus") -> Case:
    return make_case(load(name), variant="default", mode=mode, configuration="vertical")


def _plain(mechanism: Mechanism, place: str) -> float:
    """A length of the 3-PRR, read from the positions of the bodies."""
    names = [body.name for body in mechanism.bodies]
    if place == "platform":
        return float(np.linalg.norm(mechanism.bodies[names.index("platform")].position))
    return float(np.linalg.norm(mechanism.site(place).position))


def _rows(folder: Path, cases: int) -> pd.DataFrame:
    """The data set, times aside."""
    parts = tables(folder, len(chunks(cases)), table_of_cases(nominal(SMALL)))
    return pd.concat(parts, ignore_index=True).drop(columns="wall_time")


def test_each_parameter_is_multiplied_by_its_own_factor() -> None:
    """Masses, tensors, mass centres and lengths, as MuJoCo compiles them; planar robots stay planar."""
    mechanism = _case().mechanism
    varied = parameters(mechanism)
    change = np.random.default_rng(3).uniform(-0.05, 0.05, len(varied))
    found = perturbed(mechanism, varied, change)
    factors = {parameter.name: 1 + c for parameter, c in zip(varied, change, strict=True)}
    for old, new in zip(mechanism.bodies, found.bodies, strict=True):
        assert new.mass == pytest.approx(old.mass * factors[f"mass of {old.name}"], rel=1e-14)
        tensor = old.inertia * factors[f"moments of inertia of {old.name}"]
        np.testing.assert_allclose(new.inertia, tensor, rtol=1e-13, atol=1e-15 * tensor.max())
        center = old.center * factors.get(f"mass centre of {old.name}", 1.0)
        np.testing.assert_allclose(new.center, center, rtol=1e-14)
        assert new.position[2] == 0
    assert _plain(found, "platform") == pytest.approx(0.3 * factors["place of body platform"], rel=1e-14)
    for site in ("link2_end", "link3_end", "platform2", "platform3"):
        wanted = _plain(mechanism, site) * factors[f"closure point {site}"]
        assert _plain(found, site) == pytest.approx(wanted, rel=1e-14)
    base = np.array([body.position for body in found.bodies if body.parent < 0])
    middle = np.array([0.5, np.sqrt(3) / 6, 0])
    sliders = np.array([factors[f"place of body slider{i}"] for i in (1, 2, 3)])
    np.testing.assert_allclose(np.linalg.norm(base - middle, axis=1), sliders / np.sqrt(3), rtol=1e-14)
    np.testing.assert_array_equal(found.gravity, mechanism.gravity)


@pytest.mark.parametrize("name", names())
def test_overrides_of_inertia_move_the_mass_centre_alone(name: str) -> None:
    robot = load(name)
    mechanism = robot.mechanism()
    heaviest = max(mechanism.bodies, key=lambda body: body.mass)
    wrong = with_overrides(mechanism, {"body": {heaviest.name: inertial(heaviest, center=heaviest.center + 1e-4)}})
    for right, read in zip(mechanism.bodies, wrong.bodies, strict=True):
        shift = 1e-4 if right.name == heaviest.name else 0.0
        np.testing.assert_allclose(read.center, right.center + shift, atol=1e-12)
        np.testing.assert_allclose(read.inertia, right.inertia, atol=1e-12 * np.abs(right.inertia).max())
        assert read.mass == right.mass
    assert (wrong.gravity == mechanism.gravity).all()
    assert len(wrong.wrenches) == len(mechanism.wrenches)


def test_an_override_of_nothing_is_refused(prr: Case) -> None:
    with pytest.raises(MechanismError, match="mass"):
        with_overrides(prr.mechanism, {"body": {"link1": {"mass": "heavy"}}})


def test_effort_scales_and_wrenches_stay() -> None:
    mechanism = load("2pur2rpu").mechanism()
    varied = parameters(mechanism)
    found = perturbed(mechanism, varied, np.full(len(varied), 0.01))
    np.testing.assert_array_equal(found.effort_scales, mechanism.effort_scales)
    assert len(found.wrenches) == len(mechanism.wrenches)


def test_samples_closed_at_once_are_those_closed_one_after_the_other() -> None:
    """A random motion of a perturbed robot, against the continuation along time."""
    wide = Variation(target="3rrr", spread=2.0, motions=("random",))
    case, motion = prepare(wide, 1)
    drives = nominal(wide).baseline.drives
    again = assemble(case.mechanism, motion.law, motion.q[0], motion.t, drives=drives)
    np.testing.assert_allclose(again.q, motion.q, atol=1e-12)
    np.testing.assert_allclose(again.qd, motion.qd, atol=1e-10)
    np.testing.assert_allclose(again.qdd, motion.qdd, atol=1e-9)


def test_a_robot_that_is_said_not_to_close_does_not() -> None:
    """Least squares from many starts finds no pose of the robot either, but closes the nominal robot."""
    wrong = replace(OWN, spread=5.0)
    refused = next(number for number in range(40) if _refusal(wrong, number))
    of = nominal(wrong)
    change, _ = drawn(wrong, refused)
    for mechanism, closes in ((of.case.mechanism, True), (perturbed(of.case.mechanism, of.varied, change), False)):
        assert (_gap(mechanism, of.baseline.own.q[0]) < 1e-9) == closes


def _refusal(wanted: Variation, number: int) -> str:
    try:
        prepare(wanted, number)
    except LoopClosureError as error:
        return str(error)
    return ""


def _gap(mechanism: Mechanism, q: np.ndarray) -> float:
    """Smallest opening of the loops that any position of the passive joints leaves, the drives held."""
    driven = [mechanism.q_slices[drive.joints[0]].start for drive in mechanism.drives]
    passive = [k for k in range(mechanism.nq) if k not in driven]

    def opening(x: np.ndarray) -> np.ndarray:
        at = q.copy()
        at[passive] = x
        return np.asarray(closure_residual(mechanism, poses(mechanism, at[None]), at[None])[0])

    rng = np.random.default_rng(0)
    starts = [q[passive], *rng.uniform(-np.pi, np.pi, (6, len(passive)))]
    return min(
        float(np.abs(least_squares(opening, start, xtol=1e-15, ftol=1e-15, gtol=1e-15).fun).max()) for start in starts
    )


def test_a_case_depends_on_its_number_alone() -> None:
    """Alone, and among others."""
    some = compute_cases(SMALL, range(3, 8)).drop(columns="wall_time")
    alone = compute_cases(SMALL, (5,)).drop(columns="wall_time")
    pd.testing.assert_frame_equal(some[some["case"] == 5].reset_index(drop=True), alone, check_exact=True)
    other = compute_cases(replace(SMALL, seed=1), (5,)).drop(columns="wall_time")
    assert not other.equals(alone)


def test_motions_are_what_they_are_said_to_be() -> None:
    for number, kind in enumerate(KINDS):
        case, motion = prepare(SMALL, number)
        assert len(motion.t) == (1 if kind == "pose" else SAMPLES)
        at = poses(case.mechanism, motion.q)
        assert np.abs(closure_residual(case.mechanism, at, motion.q)).max() < 1e-13
        if kind == "random":
            np.testing.assert_allclose(motion.q[-1], motion.q[0], atol=1e-12)
            np.testing.assert_allclose(motion.qdd[-1], motion.qdd[0], atol=1e-9)


def test_a_simulation_as_it_is_is_judged_by_the_motion_it_made() -> None:
    """By `judge` on its log, independent of the sweep; against the prescribed motion it is twice as far."""
    variation = replace(OWN, sources=("mujoco/as_is",))
    row = compute_cases(variation, (0,)).set_index("source").loc["mujoco/as_is"]
    case, motion = prepare(variation, 0)
    history = sources.load("mujoco/as_is").compute_efforts(case, motion)
    assert history.as_is is not None
    (whole,) = judge_log(case, history.as_is.log).residuals
    errors = np.abs(whole.residual / np.abs(whole.needed).max(axis=0)).max(axis=1)
    assert row["relative_error"] == pytest.approx(errors[len(errors) // 2 :].max(), rel=0.5)
    assert row["relative_error"] <= errors.max()


def test_an_engine_with_another_robot_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the nominal robot for the engine, and the perturbed robot for the reference, errors are as large as that."""
    from loopcheck.engines.mujoco.routes import kkt

    right, wrong = kkt.KKT, nominal(SMALL).case.mechanism
    monkeypatch.setattr(kkt, "KKT", replace(right, equations=lambda _: right.equations(wrong)))
    frame = compute_cases(SMALL, range(9))
    errors = frame.loc[(frame["source"] == "mujoco/kkt") & (frame["result"] == COMPUTED), "relative_error"]
    assert len(errors) > 6
    assert errors.between(1e-4, 0.5).all()


def test_a_source_that_fails_and_a_reference_that_fails_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Noc, "compute_efforts", _broken)
    frame = compute_cases(SMALL, (1,)).set_index("source")
    assert list(frame.loc["analytic/noc", ["result", "note"]]) == ["not run", "no luck"]
    assert list(frame.loc["mujoco/kkt", ["result", "note"]]) == ["not comparable", "the reference did not run"]
    assert np.isnan(frame["relative_error"].to_numpy(float)).all()


def _broken(*_: object) -> None:
    raise HarnessError("no luck")


def test_quantiles_of_a_histogram_are_those_of_its_errors() -> None:
    errors = 10.0 ** np.random.default_rng(0).normal(-9, 2, 4000)
    tally = Tally()
    for some in np.split(errors, 8):
        tally.add(some, np.arange(len(some)), 1e-7)
    for fraction in (0.01, 0.5, 0.99):
        assert tally.quantile(fraction) == pytest.approx(np.quantile(errors, fraction), rel=0.06)
    assert tally.quantile(1.0) == tally.worst[0].error == errors.max()
    assert tally.beyond == (errors > 1e-7).sum()
    tally.add(np.zeros(1), np.zeros(1, int), 1e-7)
    assert tally.count == 4001


@pytest.mark.extended("test_each_parameter_is_multiplied_by_its_own_factor")
@pytest.mark.usefixtures("here")
def test_slopes_are_the_derivatives_of_the_efforts(tmp_path: Path) -> None:
    """Against central differences of the reference by hand, for the parameters with the largest effects."""
    small = replace(OWN, spread=1e-3)  # what is not linear leaves an error in proportion to it
    with worker_pool(ALL_CORES, preload=PRELOAD) as pool:
        result = computed(Sweep(variation=small, cases=60), tmp_path, pool)  # of the reference alone, which has no page
    said = gather(small, result.folder, len(chunks(60)), nominal_efforts(small)).sensitivity
    assert (said["told"] > 1 - 1e-6).all()
    assert len(said) == 3 * len(nominal(small).varied)
    of = nominal(small)
    largest = said.loc[said["elasticity"].abs().sort_values(ascending=False).index[:4]]
    for actuator, name, slope in largest[["actuator", "parameter", "slope"]].itertuples(index=False):
        step = np.array([1e-6 if parameter.name == name else 0.0 for parameter in of.varied])
        column = [a.name for a in of.case.mechanism.actuators].index(actuator)
        above, below = (_rms(small, sign * step)[column] for sign in (1, -1))
        assert slope == pytest.approx((above - below) / 2e-4, rel=1e-3)


def _rms(of: Variation, change: np.ndarray) -> np.ndarray:
    """Root mean square efforts of a perturbed robot in its own motion, assembled along time."""
    scene, varied = nominal(of).baseline, nominal(of).varied
    case = replace(scene.case, mechanism=perturbed(scene.case.mechanism, varied, change))
    motion = assemble(case.mechanism, scene.own.law, scene.own.q[0], scene.own.t)
    return np.asarray(np.sqrt((Noc().compute_efforts(case, motion).effort ** 2).mean(axis=0)))


@pytest.fixture
def here() -> Iterator[None]:
    """Calls are made in this process."""
    with in_this_process():
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted study in this process."""
    folder = tmp_path_factory.mktemp("whole")
    for chunk, cases in enumerate(chunks(CASES)):
        write_part(compute_cases(SMALL, cases), part(folder, chunk))
    return folder


@pytest.mark.extended("test_chunks_are_the_same_for_more_cases")
@pytest.mark.usefixtures("here")
@pytest.mark.usefixtures("tables_only")
def test_a_larger_study_computes_what_a_smaller_one_has_not(whole: Path, tmp_path: Path) -> None:
    """Also into a data set that a disk has torn, or that has more parts than the study."""
    small, _ = run_study(Sweep(variation=SMALL, cases=20), tmp_path)
    assert small.record["tasks"] == {"computed": 2, "known": 0}
    part(tmp_path, 0).write_bytes(part(tmp_path, 0).read_bytes()[:-100])
    result, _ = run_study(Sweep(variation=SMALL, cases=CASES), tmp_path)
    assert result.record["tasks"] == {"computed": 1, "known": 2}
    pd.testing.assert_frame_equal(_rows(tmp_path, CASES), _rows(whole, CASES), check_exact=True)
    again, _ = run_study(Sweep(variation=SMALL, cases=20), tmp_path)
    assert again.record["tasks"] == {"computed": 0, "known": 2}
    assert len(pd.read_parquet(tmp_path / PARTS)) == 40


@pytest.mark.extended("tests/validation/test_cluster.py::test_a_task_whose_process_dies_takes_nothing_along")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("tables_only")
def test_a_cluster_that_loses_a_worker_loses_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two worker processes, one killed after the first chunk: the data set is that of a single process."""
    written: list[Path] = []
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:

        def write_and_kill(table: pd.DataFrame, path: Path) -> None:
            write_part(table, path)
            written.append(path)
            if len(written) == 1:
                os.kill(cluster.workers[0].pid, signal.SIGKILL)

        monkeypatch.setattr(study, "write_part", write_and_kill)
        run_study(Sweep(variation=SMALL, cases=CASES, scheduler=cluster.scheduler_address), tmp_path)
    assert sorted(written) == [part(tmp_path, chunk) for chunk in range(len(chunks(CASES)))]
    pd.testing.assert_frame_equal(_rows(tmp_path, CASES), _rows(whole, CASES), check_exact=True)


def test_a_scheduler_that_is_not_there_is_one_line(
    loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask, "PATIENCE", 0.5)
    status, _, err = loopcheck(
        "study", "sweep", "3prr", "--cases", "5", "--scheduler", "tcp://127.0.0.1:9", "--out", tmp_path
    )
    assert status == 2
    assert err.startswith("loopcheck: scheduler tcp://127.0.0.1:9: must be a running Dask scheduler")
    assert err.count("\n") == 1


def test_chunks_are_the_same_for_more_cases() -> None:
    """So that a larger study computes only the new cases; all cases are in a single data set, and files stay few."""
    million = chunks(1_000_000)
    for cases in (1, 29, 1000, 30_000):
        few = chunks(cases)
        assert few[:-1] == million[: len(few) - 1]
        assert [case for chunk in few for case in chunk] == list(range(cases))
    assert len(million) < 1200


@pytest.mark.extended("test_quantiles_of_a_histogram_are_those_of_its_errors")
def test_the_page_and_the_command(loopcheck: Command, tmp_path: Path) -> None:
    """The printed quantiles are those of the data set; a case alone gives the same error again."""
    options = ["--source", "mujoco/kkt", "--spread", "0.5"]
    status, out, err = loopcheck("study", "sweep", "3prr", "--cases", "40", "--jobs", "1", "--out", tmp_path, *options)
    assert (status, err) == (0, "")
    assert "40 cases of 3prr" in out
    frame = pd.read_parquet(tmp_path / "sweep_cases")
    own = frame[(frame["source"] == "mujoco/kkt") & (frame["motion"] == "own")]
    said = pd.read_csv(tmp_path / "sweep_quantiles.csv").set_index("motion")
    assert said.loc["own", "largest"] == own["relative_error"].max()
    assert said.loc["own", "cases"] == own["relative_error"].notna().sum()
    worst = int(said["its case"]["own"])
    page = (tmp_path / "sweep.md").read_text(encoding="utf-8")
    assert "Quantiles" in page
    assert "--seed 0 --spread 0.5" in page
    status, out, _ = loopcheck("study", "sweep", "3prr", "--case", str(worst), *options)
    assert status == 0
    assert f"relative_error {own['relative_error'].max()}" in out
