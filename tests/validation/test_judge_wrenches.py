"""Joint forces in logs: MuJoCo, PyBullet and closed forms against `loopcheck judge`."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck import judge
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.log import Convention
from loopcheck.robots.logs.log_files import read_log, write_log
from loopcheck.validation.common.targets import case_of
from tests.cpu_time import extended_but
from tests.logs import PARALLELOGRAM
from tests.mujoco_wrenches import CHAIN, Readings, prescribed, simulated
from tests.validation.conftest import Command

FOUR_BAR = (Path(__file__).parents[2] / "robots/four_bar/four_bar.xml").read_text().replace("0 0 -9.81", "0 -9.81 0")
COMMON = "on=child point=joint axes=child"
DRIVES = ("shoulder", "elbow")


@pytest.fixture(scope="module")
def chain() -> Readings:
    return prescribed()


@pytest.fixture(scope="module")
def four_bar() -> Readings:
    return simulated(FOUR_BAR, 3.0)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    for name, text in {"chain": CHAIN, "four_bar": FOUR_BAR, "parallelogram": PARALLELOGRAM}.items():
        (folder / f"{name}.xml").write_text(text)
    return {path.stem: path for path in folder.iterdir()}


def written(folder: Path, columns: Mapping[str, Array], reactions: str = COMMON) -> Path:
    """A log file with a header."""
    path = folder / "run.csv"
    header = f"# reactions: {reactions}\n" if reactions else ""
    path.write_text(header + pd.DataFrame(columns).dropna(axis=1, how="all").to_csv(index=False))
    return path


def loop(read: Readings) -> dict[str, Array]:
    """Columns of the four-bar: forces and moments on the bodies, and the force of the connect."""
    nothing = np.full_like(read.closure, np.nan)
    wrenches = {name: read.by(name, point="tree_com", axes="world") for name in read.joints}
    return read.columns({**wrenches, "C": np.concatenate([nothing, read.closure], axis=1)}, ("crank",))


@pytest.mark.evidence("a whole judgement with causes", seconds=0.8)
def test_joint_forces_of_mujoco_agree_and_a_known_error_is_measured(
    chain: Readings, models: Mapping[str, Path], tmp_path: Path
) -> None:
    wrenches = {name: chain.by(name) for name in chain.joints}
    peak = np.linalg.norm(wrenches["elbow"][:, 3:], axis=1).max()
    wrenches["elbow"] = wrenches["elbow"] + [0, 0, 0, 0.02 * peak, 0, 0]
    found = judge(models["chain"], written(tmp_path, chain.columns(wrenches, DRIVES)), accuracy=1e-3)
    assert found.verdicts == {
        "shoulder": "agree", "elbow": "agree", "shoulder.wrench": "agree", "elbow.wrench": "disagree",
    }  # fmt: skip
    row = found.figures.set_index("actuator").loc["elbow.wrench"]
    assert row["unit"] == "N"
    assert row["largest"] == pytest.approx(0.02 * peak, rel=1e-6)
    assert row["rms"] == pytest.approx(0.02 * peak, rel=1e-6)
    assert peak <= row["scale"] <= 4 * peak  # sums of the sizes of weights and inertia forces
    assert row["divisor"] == pytest.approx(peak, rel=0.01)  # the window of the filter leaves out a few samples
    assert found.notes["elbow.wrench"].startswith("force: error 0.02, noise floor")
    assert found.efforts.columns[1] == "shoulder.effort"


@pytest.mark.extended("test_joint_forces_of_mujoco_agree_and_a_known_error_is_measured")
def test_joint_forces_of_a_simulated_loop_agree_without_efforts(
    four_bar: Readings, models: Mapping[str, Path], tmp_path: Path
) -> None:
    """Soft pins of MuJoCo leave some parts in a thousand."""
    columns = {name: values for name, values in loop(four_bar).items() if not name.endswith("effort")}
    path = written(tmp_path, columns, "on=child point=tree_com axes=world")
    found = judge(models["four_bar"], path, accuracy=1e-2)
    assert found.verdicts == dict.fromkeys(("crank.wrench", "coupler.wrench", "rocker.wrench", "C.wrench"), "agree")
    assert (found.figures["largest"] / found.figures["divisor"]).max() > 1e-6  # a simulation of its own
    heavier = tmp_path / "heavier.xml"
    heavier.write_text(FOUR_BAR.replace('mass="1.1"', 'mass="1.2"'))
    assert judge(heavier, path, accuracy=1e-2).verdicts["C.wrench"] == "disagree"
    with pytest.raises(HarnessError, match="log 'run': a fit must have efforts, got none"):
        judge(models["four_bar"], path, fit="friction")


WRONG = [
    Convention(on, point, axes)
    for on in ("child", "parent") for point in ("joint", "com") for axes in ("child", "world")
][1:]  # fmt: skip
"""The eight usual conventions but the stated one."""


@pytest.mark.parametrize(
    "convention",
    extended_but(WRONG[:1], WRONG, "test_readings_of_another_convention_disagree_and_it_is_named"),
    ids=str,
)
def test_readings_of_another_convention_disagree_and_it_is_named(
    convention: Convention, chain: Readings, models: Mapping[str, Path], tmp_path: Path
) -> None:
    wrenches = {
        name: chain.by(name, on=convention.on, point=convention.point, axes=convention.axes) for name in chain.joints
    }
    found = judge(models["chain"], written(tmp_path, chain.columns(wrenches)), accuracy=1e-2)
    assert set(found.verdicts.values()) == {"disagree"}
    stated = dict(part.split("=") for part in COMMON.split())
    change = " ".join(part for part in str(convention).split() if stated[part.split("=")[0]] != part.split("=")[1])
    for note in found.notes.values():
        assert f"fits with {change}: error" in note


@pytest.mark.evidence("two whole judgements", seconds=1)
def test_without_a_header_the_convention_that_fits_is_named(
    chain: Readings, models: Mapping[str, Path], tmp_path: Path
) -> None:
    columns = chain.columns({name: chain.by(name, on="parent", axes="world") for name in chain.joints})
    with pytest.raises(HarnessError) as refused:
        judge(models["chain"], written(tmp_path, columns, ""))
    (line,) = str(refused.value).splitlines()
    assert "add the line '# reactions: on=child|parent point=joint|com|origin|tree_com axes=child|parent|world'" in line
    assert "'on=parent point=joint axes=world' fits the motion (error" in line
    frame = judge(models["chain"], pd.DataFrame(columns), reactions="on=parent point=joint axes=world")
    assert frame.agrees


@pytest.mark.extended("test_without_a_header_the_convention_that_fits_is_named")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda wrench: wrench * [np.nan] * 3 + [1, 1, 1], "several fit the motion alike"),
        (lambda wrench: wrench[::-1], "no convention fits the motion"),
    ],
    ids=["forces alone", "another motion"],
)
def test_without_a_header_doubts_are_stated(
    change: Callable[[Array], Array], words: str, chain: Readings, models: Mapping[str, Path], tmp_path: Path
) -> None:
    wrenches = {name: chain.by(name, axes="world") for name in chain.joints}
    if "alike" in words:
        for values in wrenches.values():
            values[:, :3] = np.nan
    else:
        wrenches = {name: change(values) for name, values in wrenches.items()}
    with pytest.raises(HarnessError, match=words):
        judge(models["chain"], written(tmp_path, chain.columns(wrenches), ""))


@pytest.mark.parametrize(
    ("reactions", "rename", "message"),
    [
        ("on=child point=joint", {}, "reactions must be 'on=child|parent point="),
        ("on=child point=joint axes=body", {}, "got 'on=child point=joint axes=body'"),
        ("on=child point=joint axes=child frame=world", {}, "reactions must be 'on=child|parent"),
        ("on=child on=child point=joint axes=child", {}, "reactions must be 'on=child|parent"),
        ("child", {}, "reactions must be 'on=child|parent"),
        (COMMON, {"elbow.force.x": "wrist.force.x"}, "column 'wrist.force.x': wrenches must be .* among shoulder"),
        (COMMON, {"elbow.force.x": "elbow.force.w"}, "column 'elbow.force.w': wrenches must be named"),
        (COMMON, {f"{j}.{p}.{a}": f"{j}{p}{a}" for j in DRIVES for p in ("force", "moment") for a in "xyz"},
         "declares reactions, and must have columns such as 'shoulder.force.x'"),
    ],
)  # fmt: skip
def test_bad_headers_and_columns_are_refused_in_a_line(
    reactions: str,
    rename: dict[str, str],
    message: str,
    chain: Readings,
    models: Mapping[str, Path],
    tmp_path: Path,
) -> None:
    columns = chain.columns({name: chain.by(name) for name in chain.joints}, DRIVES)
    path = written(tmp_path, {rename.get(name, name): values for name, values in columns.items()}, reactions)
    with pytest.raises(HarnessError, match=message.replace("|", "\\|")) as refused:
        read_log(path, case_of(models["chain"]).mechanism)
    assert len(str(refused.value).splitlines()) == 1


def test_an_empty_column_is_no_reading_and_a_gap_is_refused(
    chain: Readings, models: Mapping[str, Path], tmp_path: Path
) -> None:
    mechanism = case_of(models["chain"]).mechanism
    columns = chain.columns({"elbow": chain.by("elbow")}, DRIVES)
    assert np.isnan(read_log(written(tmp_path, {**columns, "elbow.force.x": columns["t"] * np.nan}), mechanism)
                    .wrenches["elbow"][:, 3]).all()  # fmt: skip
    gap = np.where(columns["t"] > 0.3, np.nan, columns["elbow.force.x"])
    with pytest.raises(HarnessError, match=r"column 'elbow.force.x': numbers must be finite, got 'nan' in row 32"):
        read_log(written(tmp_path, {**columns, "elbow.force.x": gap}), mechanism)


def test_units_signs_and_a_written_log_keep_wrenches(
    chain: Readings, models: Mapping[str, Path], tmp_path: Path
) -> None:
    mechanism = case_of(models["chain"]).mechanism
    columns = chain.columns({"elbow": chain.by("elbow")}, DRIVES)
    columns["elbow.force.x [kN]"] = columns.pop("elbow.force.x") / 1000
    columns["elbow.moment.y"] = -columns["elbow.moment.y"]
    path = written(tmp_path, columns)
    path.write_text('# signs = { "elbow.moment.y" = -1 }\n' + path.read_text())
    log = read_log(path, mechanism)
    np.testing.assert_allclose(log.wrenches["elbow"], chain.by("elbow"), rtol=1e-12)
    write_log(log, tmp_path / "again.csv")
    again = read_log(tmp_path / "again.csv", mechanism)
    assert (again.convention, [*again.wrenches]) == (log.convention, ["elbow"])
    np.testing.assert_array_equal(again.wrenches["elbow"], log.wrenches["elbow"])


@pytest.mark.extended("test_joint_forces_of_mujoco_agree_and_a_known_error_is_measured")
def test_noise_is_the_floor_of_joint_forces(chain: Readings, models: Mapping[str, Path], tmp_path: Path) -> None:
    """Noise of the wrenches and of the positions explains the residual; a fault of three floors disagrees."""
    random, read = np.random.default_rng(3), prescribed(samples=400)
    wrenches = {name: read.by(name) + random.normal(0, 0.02, (len(read.t), 6)) for name in read.joints}
    columns = read.columns(wrenches)
    columns |= {f"{name}.q": columns[f"{name}.q"] + random.normal(0, 1e-5, len(read.t)) for name in read.joints}
    noisy = {name: values for name, values in columns.items() if not name.endswith(".qd")}
    found = judge(models["chain"], written(tmp_path, noisy), accuracy=0.01)
    assert "disagree" not in found.verdicts.values()
    for size in ("rms", "largest"):
        ratio = found.figures["rms_floor" if size == "rms" else "largest_floor"] / found.figures[size]
        assert ratio.between(0.8, 3).all(), ratio
    (row,) = found.figures[found.figures["actuator"] == "elbow.wrench"].to_dict("records")
    assert row["unit"] in ("N", "N m")
    step = 0.01 * row["divisor"] + 3 * row["largest_floor"]
    place = 3 if row["unit"] == "N" else 0
    wrenches["elbow"][:, place] += step
    faulty = {**noisy, **{k: v for k, v in read.columns(wrenches).items() if "elbow.force" in k or "elbow.moment" in k}}
    assert judge(models["chain"], written(tmp_path, faulty), accuracy=0.01).verdicts["elbow.wrench"] == "disagree"


@pytest.mark.extended("test_joint_forces_of_mujoco_agree_and_a_known_error_is_measured")
def test_redundant_drives_load_the_joints_as_logged(models: Mapping[str, Path], tmp_path: Path) -> None:
    """Drives against each other load the rod: its force follows from the logged efforts, not from the least norm."""
    key = '<keyframe><key qpos="0.4 -0.4 0.4"/></keyframe></mujoco>'
    read = simulated(PARALLELOGRAM.replace("</mujoco>", key), [9.0, -4.0], samples=50)
    wrenches = {name: read.by(name) for name in read.joints}
    path = written(tmp_path, read.columns(wrenches, ("a", "b")))
    found = judge(models["parallelogram"], path, accuracy=0.02, internal_load=10.0)
    assert {name: x for name, x in found.verdicts.items() if "wrench" in name} == dict.fromkeys(
        ("a.wrench", "pin.wrench", "b.wrench"), "agree"
    ), str(found)
    alone = judge(models["parallelogram"], written(tmp_path, read.columns(wrenches)), accuracy=0.02)
    assert alone.agrees  # only parts that no split of the load changes are judged


@pytest.mark.extended("test_joint_forces_of_mujoco_agree_and_a_known_error_is_measured")
def test_what_rigid_bodies_leave_open_and_defects_of_a_log_are_not_judged(
    four_bar: Readings, models: Mapping[str, Path], tmp_path: Path
) -> None:
    """Moments across a planar loop are anything; velocities that contradict the positions are a defect."""
    wrenches = {name: four_bar.by(name) + 7 * np.array([1, 1, 0, 0, 0, 0]) for name in four_bar.joints}
    columns = four_bar.columns(wrenches)
    assert judge(models["four_bar"], written(tmp_path, columns), accuracy=1e-2).agrees
    columns |= {f"{name}.qd": 1.2 * columns[f"{name}.qd"] for name in four_bar.joints}
    found = judge(models["four_bar"], written(tmp_path, columns), accuracy=1e-2)
    assert set(found.verdicts.values()) == {"not comparable"}, str(found)
    assert found.notes["crank.wrench"].startswith("correct the defect of the log; ")


@pytest.mark.extended("test_joint_forces_of_mujoco_agree_and_a_known_error_is_measured")
def test_wrenches_of_another_time_than_the_efforts_agree(
    chain: Readings, models: Mapping[str, Path], tmp_path: Path
) -> None:
    """Wrenches that act until the times of their rows, as sensors after a step, beside instantaneous efforts."""
    before = prescribed(start=-0.005)
    columns = chain.columns({name: before.by(name) for name in before.joints}, DRIVES)
    path = written(tmp_path, columns)
    path.write_text('# effort_time = "instantaneous"\n' + path.read_text())
    found = judge(models["chain"], path, accuracy=5e-3)
    assert found.agrees, str(found)
    times = found.figures.set_index("actuator")["effort_time"].to_dict()
    assert (times["elbow"], times["elbow.wrench"]) == ("instantaneous", "held-until:0.01")


@pytest.mark.usefixtures("tables_only")
@pytest.mark.evidence("a command of its own", seconds=3.5)
def test_the_command_has_a_line_per_connection(
    four_bar: Readings, models: Mapping[str, Path], tmp_path: Path, loopcheck: Command
) -> None:
    options = ("--accuracy", "1%", "--jobs", "1", "--out", tmp_path / "out")
    path = written(tmp_path, loop(four_bar), "on=child point=tree_com axes=world")
    status, out, _ = loopcheck("judge", models["four_bar"], path, *options)
    assert status == 0, out
    assert [line.split()[1] for line in out.splitlines() if ".wrench" in line and "│" in line] == [
        "crank.wrench", "coupler.wrench", "rocker.wrench", "C.wrench",
    ]  # fmt: skip
    summary, logs = (pd.read_csv(tmp_path / "out" / f"{name}.csv") for name in ("summary", "logs"))
    (row,) = summary[summary["actuator"] == "C.wrench"].to_dict("records")
    assert (row["source"], row["verdict"], row["unit"]) == ("log/run", "agree", "N")
    assert [row["max_error"]] == logs[logs["actuator"] == "C.wrench"]["largest"].to_list()
    path = written(tmp_path, loop(four_bar), "")
    status, _, err = loopcheck("judge", models["four_bar"], path, *options)
    assert (status, len(err.splitlines())) == (2, 1)
    assert "fits the motion" in err or "fit the motion alike" in err
