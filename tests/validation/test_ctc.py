"""The computed-torque study: its plant against the reference, its controllers, its journal and its report."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, wraps
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import zubizarreta2010 as paper
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.execution.journal import Task, keys
from loopcheck.validation.execution.workers import Workers
from loopcheck.validation.frame.study import exit_status, run_study, write_conclusion
from loopcheck.validation.studies.control import study
from loopcheck.validation.studies.control.controllers import Controller, Gains, Reference, angle_between
from loopcheck.validation.studies.control.engine_plant import engine_plant
from loopcheck.validation.studies.control.perturbation import (
    BY_LEG,
    BY_ROBOT,
    KINDS,
    Template,
    make_templates,
    overrides,
    perturb,
)
from loopcheck.validation.studies.control.plant import ExactPlant
from loopcheck.validation.studies.control.runs import CONTROLLERS, REGULAR, ControlSettings, RunGroup, run_batch
from loopcheck.validation.studies.control.simulate import DIVERGED, Circle, ControlledRuns, references, simulate
from loopcheck.validation.studies.control.study import Control
from tests.validation.conftest import in_this_process

G = 9.81
COARSE = Circle(dt=8e-3)
SMALL = Control(levels=(5.0,), templates=2, settings=ControlSettings(task=COARSE))


@cache
def _case(mode: str) -> Case:
    return make_case(load("3rrr"), variant="default", mode=mode, configuration="vertical")


@cache
def _nominal() -> paper.Parameters:
    return paper.parameters(_case("pmp").mechanism)


def _elbow(mode: str) -> Array:
    return np.array([1.0 if sign == "p" else -1.0 for sign in mode])


def _templates() -> list[Template]:
    return make_templates(3, np.random.default_rng(0))


def _run(controller: str, robots: list[paper.Parameters], task: Circle, mode: str = "pmp") -> ControlledRuns:
    x, xd, _ = task.pose()
    start = np.repeat(x[:1], len(robots), axis=0), np.repeat(xd[:1], len(robots), axis=0)
    control = CONTROLLERS[controller](_nominal(), SMALL.settings.gains, g=G)
    plant = ExactPlant(robots, _elbow(mode), *start, g=G)
    return simulate(control, plant, references(_nominal(), _elbow(mode), task), task)


def test_gains_give_the_response_asked_for() -> None:
    """A step answered by e'' + Kv e' + Kp e = 0 peaks at 10 % after 0.1 s."""
    gains = Gains.from_response(overshoot=0.1, peak_time=0.1)
    assert gains.Kp == pytest.approx(1517.15, abs=5e-3)
    assert gains.Kv == pytest.approx(46.05, abs=5e-3)
    t = np.linspace(0, 0.3, 30001)
    slow, fast = np.roots([1, gains.Kv, gains.Kp])
    answer = 1 - ((fast * np.exp(slow * t) - slow * np.exp(fast * t)) / (fast - slow)).real
    assert answer.max() == pytest.approx(1.1, abs=1e-6)
    assert t[answer.argmax()] == pytest.approx(0.1, abs=1e-4)


def test_templates_are_seeded_and_do_not_depend_on_their_number() -> None:
    few, many = make_templates(3, np.random.default_rng(7)), make_templates(12, np.random.default_rng(7))
    for a, b in zip(few, many, strict=False):
        assert all((a[name] == b[name]).all() for name in (*BY_LEG, *BY_ROBOT))
    drawn = np.concatenate([np.ravel(value) for template in many for value in template.values()])
    assert set(drawn) == {-1.0, 0.0, 1.0}


def test_kinds_part_the_parameters() -> None:
    template = {name: value * 0 + 1 for name, value in _templates()[0].items()}
    changed = {
        kind: {
            name
            for name in template
            if np.any(getattr(perturb(_nominal(), template, 0.05, kind), name) != getattr(_nominal(), name))
        }
        for kind in KINDS
    }
    assert changed["geometry"] == {"L", "l", "d"}
    assert changed["all"] == set(template) == changed["geometry"] | changed["inertia"]
    assert not changed["geometry"] & changed["inertia"]


@pytest.mark.parametrize("mode", REGULAR)
def test_plant_against_the_reference(mode: str) -> None:
    """A perturbed MJCF goes round the circle: the efforts of analytic/noc give the plant the wanted accelerations."""
    case = _case(mode)
    robot = perturb(_nominal(), _templates()[0], 0.05, "all")
    model = ModelFile(path=case.mechanism.model.path, overrides=overrides(robot))
    case = replace(case, mechanism=read_mechanism(model).with_gravity(case.mechanism.gravity))
    own = paper.parameters(case.mechanism)
    for name in (*BY_LEG, *BY_ROBOT):
        np.testing.assert_allclose(getattr(own, name), getattr(robot, name), rtol=1e-14, err_msg=name)
    motion = prescribe(case)
    tau = Noc().compute_efforts(case, motion).effort
    x, xd, xdd = Circle(dt=motion.dt).pose()
    plant = ExactPlant([robot] * len(x), _elbow(mode), x, xd, g=G)
    np.testing.assert_allclose(plant.acceleration(x, xd, tau), xdd, atol=1e-11)
    names = [joint.name for joint in case.mechanism.joints]
    columns = [names.index(f"{kind}{i}") for kind in ("qa", "qp") for i in (1, 2, 3)]
    q, qd = plant.joints()
    assert np.abs(angle_between(motion.q[:, columns], q)).max() < 1e-12
    np.testing.assert_allclose(qd, motion.qd[:, columns], atol=1e-12)


def test_plant_steps_with_fourth_order() -> None:
    """Thrown without torque, for 64 ms in steps of 8 and 4 ms, against steps of 1 ms."""
    x, xd = np.array([[0.05, 0.02, 0.1]]), np.array([[0.5, -0.3, 2.0]])

    def thrown(dt: float) -> Array:
        plant = ExactPlant([_nominal()], _elbow("pmp"), x, xd, g=G)
        for _ in range(round(0.064 / dt)):
            plant.step(np.zeros((1, 3)), dt)
        return plant.pose()

    exact = thrown(1e-3)
    order = np.log2(np.abs(thrown(8e-3) - exact).max() / np.abs(thrown(4e-3) - exact).max())
    assert order == pytest.approx(4, abs=0.3)


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("mode", ["pmp", "ppm"])
def test_on_the_nominal_robot_the_torque_is_that_of_inverse_dynamics(controller: str, mode: str) -> None:
    motion = prescribe(_case(mode))
    wanted = Noc().compute_efforts(_case(mode), motion).effort
    control = CONTROLLERS[controller](_nominal(), SMALL.settings.gains, g=G)
    for k, now in enumerate(references(_nominal(), _elbow(mode), Circle(dt=motion.dt))):
        tau = control.torque(now, now.q[None], now.qd[None])[0]
        np.testing.assert_allclose(tau, wanted[k], atol=1e-11)


@pytest.mark.extended("test_on_the_nominal_robot_the_torque_is_that_of_inverse_dynamics")
@pytest.mark.parametrize("controller", CONTROLLERS)
def test_on_the_nominal_robot_the_error_is_that_of_holding_the_torque(controller: str) -> None:
    """It falls with the time between two control actions."""
    errors = [_run(controller, [_nominal()], Circle(dt=dt)).error.max() for dt in (8e-3, 4e-3)]
    assert errors[0] < 3e-4
    assert errors[1] < 0.6 * errors[0]


class OffTrack:
    """A plant off the circle by a given function of time, whatever the controller does."""

    def __init__(self, wanted: Sequence[Reference], errors: Array) -> None:
        self.wanted, self.errors, self.k = wanted, errors, 0

    def pose(self) -> Array:
        return self.wanted[self.k].x[None] + self.errors[self.k] * np.array([[0.6, -0.8, 0.0]])

    def joints(self) -> tuple[Array, Array]:
        return self.wanted[self.k].q[None], self.wanted[self.k].qd[None]

    def step(self, torque: Array, dt: float) -> None:
        self.k += 1


def test_the_indices_are_the_integrals_that_they_are_called() -> None:
    """Of an error c t over a time T: ISE = c² T³/3, IAE = c T²/2 and ITAE = c T³/3."""
    task, slope = Circle(period=1.0), 0.05
    wanted = references(_nominal(), _elbow("ppm"), task)
    runs = simulate(Idle(_nominal(), SMALL.settings.gains, g=G), OffTrack(wanted, slope * task.t), wanted, task)
    assert runs.ISE[0] == pytest.approx(slope**2 / 3, rel=1e-5)
    assert runs.IAE[0] == pytest.approx(slope / 2, rel=1e-5)
    assert runs.ITAE[0] == pytest.approx(slope / 3, rel=1e-5)
    assert np.isnan(runs.diverged_at[0])


class Idle(Controller):
    """A controller without output."""

    def torque(self, reference: Reference, q: Array, qd: Array) -> Array:
        return np.zeros((len(q), 3))


@pytest.mark.extended("tests/validation/test_isolation.py::test_engines_that_go_wrong_take_nothing_along")
def test_a_lost_run_is_counted_and_does_no_harm() -> None:
    """Links half as long cannot reach; the robot beside it runs as if it were alone."""
    short = replace(_nominal(), L=_nominal().L * 0.5, l=_nominal().l * 0.5)
    robot = perturb(_nominal(), _templates()[0], 0.05, "all")
    for controller in CONTROLLERS:
        both, alone = _run(controller, [short, robot], COARSE), _run(controller, [robot], COARSE)
        assert both.diverged_at[0] == 0
        assert np.isnan(both.ISE[0])
        assert np.isnan(both.diverged_at[1])
        assert both.ISE[1] == pytest.approx(alone.ISE[0], rel=1e-9)
        assert alone.error.max() < DIVERGED


def test_angles_are_compared_modulo_a_turn() -> None:
    difference = angle_between(np.array([3.0, -3.0, 0.5]), np.array([-3.0, 3.0 + 4 * np.pi, 0.2]))
    np.testing.assert_allclose(difference, [6 - 2 * np.pi, 2 * np.pi - 6, 0.3], atol=1e-14)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ctc")
    run_study(SMALL, path, workers=Workers(jobs=1))
    return path


@pytest.mark.extended(
    "test_on_the_nominal_robot_the_torque_is_that_of_inverse_dynamics", "test_kinds_part_the_parameters"
)
def test_extended_ctc_wins_by_geometry_and_not_by_inertia(folder: Path) -> None:
    """Task-space control on the same sensors does about as well, so the sensors make the difference."""
    runs = pd.read_csv(folder / "ctc_runs.csv")
    ISE = {
        (kind, name): float(runs.loc[(runs["kind"] == kind) & (runs["controller"] == name), "ISE"].mean())
        for kind in KINDS
        for name in CONTROLLERS
    }
    gap = {kind: ISE[kind, "classical"] - ISE[kind, "extended"] for kind in KINDS}
    assert ISE["all", "classical"] > 1.5 * ISE["all", "extended"]
    assert gap["geometry"] == pytest.approx(gap["all"], rel=0.05)
    assert abs(gap["inertia"]) < 1e-4 * gap["all"]
    assert ISE["all", "task space"] < ISE["all", "classical"] / 1.5


@pytest.mark.extended("tests/validation/test_isolation.py::test_engines_that_go_wrong_take_nothing_along")
def test_runs_that_crash_take_no_others_along(tmp_path: Path) -> None:
    """They are reported, and tried again by the same command."""
    small = replace(SMALL, kinds=("all",))
    with in_this_process() as patch:
        patch.setattr(study, "run_batch", _without_extended)
        result, conclusion = run_study(small, tmp_path)
        runs = result.tables["ctc_runs"]
        assert set(runs.loc[runs["note"] == "", "controller"]) == {"classical", "task space"}
        (note,) = runs.loc[runs["controller"] == "extended", "note"].unique()
        assert note.startswith("internal error: ValueError: a slip; traceback: ")
        assert result.record["internal_errors"] == [note]
        assert exit_status(conclusion.verdicts, result.record) == 70
        patch.setattr(study, "run_batch", run_batch)
        result, conclusion = run_study(small, tmp_path)
        assert result.record["tasks"]["computed"] == 1
        assert exit_status(conclusion.verdicts, result.record) == 0


@wraps(run_batch)  # the name is part of what a result is known by
def _without_extended(settings: ControlSettings, batch: RunGroup) -> pd.DataFrame:
    if batch.controller == "extended":
        raise ValueError("a slip")
    return run_batch(settings, batch)


class Submitted:
    """A pool that computes nothing."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def results(self, tasks: Sequence[Task], _: str) -> list[pd.DataFrame]:
        self.tasks += tasks
        return [pd.DataFrame()] * len(tasks)


def keys_of(control: Control) -> set[str]:
    """Keys under which a study looks for the results of its tasks."""
    pool = Submitted()
    control.compute(pool, Path())  # type: ignore[arg-type]
    return {*keys(pool.tasks)}


def test_a_larger_study_computes_what_a_smaller_one_has_not_and_other_settings_all() -> None:
    few, more = keys_of(SMALL), keys_of(replace(SMALL, seeds=(0, 1)))
    assert few < more
    assert (len(few), len(more)) == (12, 21)
    assert not few & keys_of(replace(SMALL, settings=replace(SMALL.settings, peak_time=0.2)))


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"unknown mode of the study: 'pmm'. Known: pmp, mpm, ppp, ppm"):
        run_study(replace(SMALL, modes=("pmm",)), tmp_path)


@pytest.mark.extended("test_the_indices_are_the_integrals_that_they_are_called")
def test_the_report_says_what_the_tables_say(folder: Path, tmp_path: Path) -> None:
    text = (folder / "control.md").read_text(encoding="utf-8")
    assert "18 runs, 0 diverged." in text
    assert "the mean ISE of Extended CTC is smaller at 1 of 1 levels than that of classical CTC" in text
    assert "Cause of the difference: geometry." in text
    html = (folder / "control.html").read_text(encoding="utf-8")
    assert html.count("data:image/svg+xml") == 3
    result, _ = run_study(SMALL, folder, workers=Workers(jobs=1))
    runs = result.tables["ctc_runs"].copy()
    runs.loc[runs["controller"] == "extended", "ISE"] *= 100
    runs.loc[0, ["ISE", "IAE", "ITAE", "diverged_at"]] = np.nan, np.nan, np.nan, 0.5
    write_conclusion(SMALL, replace(result, folder=tmp_path, tables={**result.tables, "ctc_runs": runs}))
    text = (tmp_path / "control.md").read_text(encoding="utf-8")
    assert "18 runs, 1 diverged (classical 1)." in text
    assert "smaller at 0 of 1 levels than that of classical CTC" in text
    assert "\nNone.\n" not in text


@pytest.mark.parametrize("engine", ["mujoco", "pybullet"])
def test_engines_rebuild_the_robot(engine: str, request: pytest.FixtureRequest) -> None:
    """The rebuilt robot starts in the pose of the exact robot, and gives the same errors up to the engine's own."""
    if not engines.installed(engine) and not request.config.getoption("--require-engines"):
        pytest.skip(f"{engine} is not installed")
    robot = perturb(_nominal(), _templates()[0], 0.05, "all")
    task = Circle(dt=1e-3, period=2.0)
    x, xd, _ = task.pose()
    exact = ExactPlant([robot], _elbow("pmp"), x[:1], xd[:1], g=G)
    with engine_plant(engine, _case("pmp"), [robot], x[:1], exact) as plant:
        np.testing.assert_allclose(plant.pose(), x[:1], atol=1e-13)
        for ours, theirs in zip(exact.joints(), plant.joints(), strict=True):
            assert np.abs(angle_between(ours, theirs)).max() < 1e-12
        for now in references(_nominal(), _elbow("pmp"), task)[:200]:
            tau = CONTROLLERS["extended"](_nominal(), SMALL.settings.gains, g=G).torque(now, *exact.joints())
            exact.step(tau, task.dt)
            plant.step(tau, task.dt)
        assert np.abs(plant.pose() - exact.pose()).max() < 2e-3


@pytest.mark.extended("test_plant_against_the_reference")
def test_wrong_lengths_can_carry_classical_control_through_a_singularity() -> None:
    """In mode ppm two percent suffice: the motors keep to their angles, and the true determinant changes its sign."""
    robot = perturb(_nominal(), make_templates(10, np.random.default_rng(0))[9], 0.02, "all")
    task = Circle(dt=4e-3)
    lost = _run("classical", [robot], task, "ppm")
    k = int(np.searchsorted(task.t, lost.diverged_at[0]))
    determinant = paper.singularity_determinant(robot, lost.x[:k, 0], lost.q[:k, 0])
    assert determinant[0] < -1
    assert determinant.max() > 0
    for controller in ("extended", "task space"):
        kept = _run(controller, [robot], task, "ppm")
        assert kept.error.max() < 0.03
        assert paper.singularity_determinant(robot, kept.x[:, 0], kept.q[:, 0]).max() < -0.3
