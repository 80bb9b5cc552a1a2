"""The atlas: models are read as they compile, copies count once, and no model delays another."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.robot import load, representative_case
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.execution.workers import ALONE
from loopcheck.validation.frame.study import run_study
from loopcheck.validation.public_models.manifest import AtlasModel, Entry, Repository, entries
from loopcheck.validation.studies.atlas.model_pages import Page, let_one_stand_for_copies
from loopcheck.validation.studies.atlas.reading import ReadModel, read_model
from loopcheck.validation.studies.atlas.study import Atlas, sources_of
from loopcheck.validation.studies.atlas.tuning import tuned_cost
from tests.validation.atlas_repository import TEXTS, make_repository, write_manifest
from tests.validation.conftest import Command

MODELS = {
    "four-bar": ["four bar/four_bar.xml"],
    "twin": ["four bar/renamed.xml"],
    "heavier": ["four bar/heavier.xml"],
    "broken": ["broken.xml"],
    "no-actuator": ["with part/model.xml", "parts/part.xml"],
    "absent": ["absent.xml"],
}
BODIES = '<body name="a" mocap="true"/><body name="b"><joint name="j" axis="0 1 0"/><geom size="0.1"/></body>'
BODIES += '<body name="c" pos="1 0 0"><joint name="k" axis="0 1 0"/><geom size="0.1"/></body>'


@pytest.mark.parametrize(
    ("equality", "kind"),
    [
        ('<connect body1="b" body2="c" anchor="0 0 0"/>', "loops"),
        ('<weld body1="b" body2="c"/>', "loops"),
        ('<weld body1="a" body2="b"/>', "none"),
        ('<weld body1="b" body2="a"/>', "none"),
        ('<connect body1="b" body2="c" anchor="0 0 0" active="false"/>', "none"),
        ('<joint joint1="j" joint2="k"/>', "couplings"),
        ('<weld body1="a" body2="b"/><joint joint1="j" joint2="k"/>', "couplings"),
        ('<joint joint1="j" joint2="k"/><connect body1="b" body2="c" anchor="0 0 0"/>', "loops"),
    ],
)
def test_what_closes_a_model_is_counted_when_it_is_compiled(tmp_path: Path, equality: str, kind: str) -> None:
    world = f"<worldbody>{BODIES}</worldbody><equality>{equality}</equality>"
    default = '<default><equality solref="0.01 1"/></default>'
    assert _read(tmp_path, f"<mujoco>{default}{world}</mujoco>").kind == kind
    off = '<option><flag equality="disable"/></option>'
    assert _read(tmp_path, f"<mujoco>{off}{world}</mujoco>").kind == "none"


def test_a_copy_is_known_by_its_numbers(tmp_path: Path) -> None:
    text = TEXTS["four bar/four_bar.xml"]
    prints = {
        name: _read(tmp_path, changed).fingerprint
        for name, changed in {
            "itself": text,
            "renamed": text.replace('"rocker"', '"other"'),
            "stronger motor": text.replace('gear="-3"', 'gear="-4"'),
            "heavier": text.replace('mass="1.2"', 'mass="1.2002"'),
            "another axis": text.replace('axis="0 0 1" ref="10"', 'axis="0 0.001 1" ref="10"'),
            "another closure": text.replace('pos="0.1 0.3 0"', 'pos="0.1 0.301 0"'),
            "open": text.replace('<connect name="loop"', '<connect name="loop" active="false"'),
        }.items()
    }
    same = {name for name, of_one in prints.items() if of_one == prints["itself"]}
    assert same == {"itself", "renamed", "stronger motor"}


def test_a_pose_of_the_manifest_is_the_start(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(TEXTS["four bar/four_bar.xml"], encoding="utf-8")

    def start(**pose: tuple[float, ...]) -> ReadModel:
        return read_model(AtlasModel(id="model", path="model.xml", pose=pose), path)

    case = start(rocker=(0.4,)).case
    assert case is not None
    own = read_mechanism(ModelFile(path=path)).rest_position
    assert (case.mode, list(case.guess)) == ("pose", [*own[:2], 0.4])
    assert "unknown joint of model.xml: 'knee'. Known: crank" in start(knee=(1.0,)).reason
    assert "joint 'crank' must have 1 positions, got 2 numbers" in start(crank=(1.0, 2.0)).reason


def test_a_model_that_names_a_file_outside_its_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.xml").write_text("<mujoco/>")
    with pytest.raises(MechanismError, match=r"files must be in its own repository, got '.*outside.xml'"):
        _read(tmp_path, '<mujoco><include file="../outside.xml"/></mujoco>')
    with pytest.raises(MechanismError, match=r"files must be in its own repository, got '/etc/hosts'"):
        _read(tmp_path, '<mujoco><asset><mesh file="/etc/hosts"/></asset></mujoco>')


def test_a_copy_does_not_stand_for_what_it_has_copied() -> None:
    """Nor a model of unknown licence for a licensed model; an unread model is no copy."""
    pages = [_page("fork", copied_from="someone/else", licence="MIT"), _page("unknown"), _page("later", licence="MIT")]
    pages += [_page("last", licence="MIT"), _page("other", fingerprint="2"), _page("lost", fingerprint="")]
    let_one_stand_for_copies(pages)
    assert {page.name: page.copies for page in pages if page.verdict == "copy"} == dict.fromkeys(
        ("fork", "unknown", "last"), "later"
    )


@pytest.mark.extended("test_a_copy_does_not_stand_for_what_it_has_copied", "test_a_copy_is_known_by_its_numbers")
def test_none_stops_another_and_copies_count_once(
    loopcheck: Command, tmp_path: Path, tables_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    prepared: list[object] = []  # what draws the page of a run, which the models of an atlas do not get
    monkeypatch.setattr("loopcheck.validation.check.stages._prepare_page", lambda: prepared.append(1))
    commit = make_repository(tmp_path / "remotes")
    manifest = write_manifest(tmp_path / "models", commit, MODELS)
    options = ["--models", manifest, "--remote", f"file://{tmp_path}/remotes", "--engine", "mujoco", "--no-tuning"]
    status, out, err = loopcheck("study", "atlas", *options, "--out", tmp_path / "one")
    assert (status, err) == (3, ""), out
    assert prepared == []
    rows = pd.read_csv(tmp_path / "one/atlas.csv", keep_default_na=False).set_index("id").astype(str).T.to_dict()
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "four-bar": "agree",
        "twin": "copy",
        "heavier": "agree",
        "broken": "not comparable",
        "no-actuator": "not comparable",
        "absent": "not run",
    }
    assert rows["twin"]["copies_of"] == "four-bar"
    assert "the commit has no such file" in rows["absent"]["note"]
    assert "no actuators" in rows["no-actuator"]["note"]
    assert not any(str(tmp_path) in path.read_text() for path in (tmp_path / "one").glob("*.csv"))
    summary = pd.read_csv(tmp_path / "one/summary.csv")
    as_is = summary[(summary["source"] == "mujoco/as_is") & (summary["robot"] == "heavier")]
    assert float(rows["heavier"]["as_is_error"]) == as_is["peak_error"].max() > 1e-4


@pytest.mark.extended("tests/validation/test_cluster.py::test_a_task_whose_process_dies_takes_nothing_along")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_gives_what_one_machine_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads of a worker share the process that computes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    commit = make_repository(tmp_path / "remotes")
    models = entries((), write_manifest(tmp_path / "models", commit, {"four-bar": MODELS["four-bar"]}))
    named: dict[str, Any] = {
        "sources": ("analytic/noc", "mujoco/kkt"),
        "tunes": False,
        "remote": f"file://{tmp_path}/remotes",
    }
    here, _ = run_study(Atlas(entries=models, **named), tmp_path / "here", workers=ALONE)
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        there, _ = run_study(Atlas(entries=models, scheduler=address, **named), tmp_path / "there", workers=ALONE)
    assert there.record["tasks"]["computed"] == here.record["tasks"]["computed"] > 4
    for name in ("atlas", "audit"):
        pd.testing.assert_frame_equal(here.tables[name], there.tables[name], check_exact=True)
    assert set(there.tables["summary"]["verdict"]) == {"reference", "agree"}


def test_sources_stand_beside_those_of_engines() -> None:
    assert sources_of((), ()) == ()  # which stands for all
    named = sources_of(("mujoco",), ("pinocchio/kkt", "mujoco/kkt"))
    assert named[:2] == ("analytic/noc", "analytic/lagrange")
    assert {"mujoco/kkt", "mujoco/forward", "mujoco/as_is"} < set(named)
    assert (named[-1], len(set(named))) == ("pinocchio/kkt", len(named))


def _page(name: str, *, copied_from: str = "", licence: str = "", fingerprint: str = "1") -> Page:
    model = AtlasModel(id=name, path="model.xml", licence=licence)
    files, commit = {"model.xml": "0" * 64}, "0" * 40
    place = Repository(repository="a/b", commit=commit, copied_from=copied_from, models=(model,), files=files)
    reading = ReadModel(kind="loops", bodies=2, actuators=1, fingerprint=fingerprint)
    return Page(entry=Entry(repository=place, model=model), reading=reading if fingerprint else None)


def _read(tmp_path: Path, text: str) -> ReadModel:
    (tmp_path / "repository").mkdir(exist_ok=True)
    path = tmp_path / "repository/model.xml"
    path.write_text(text, encoding="utf-8")
    return read_model(AtlasModel(id="model", path="model.xml"), path)


def test_a_file_that_cannot_have_other_settings_is_a_reason_before_any_run(tmp_path: Path) -> None:
    """Both equalities of a replicated body come from a single element."""
    part = '<body name="a"><joint name="j"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
    text = (load("four_bar").folder / "four_bar.xml").read_text(encoding="utf-8")
    text = text.replace("</worldbody>", f'<replicate count="2" offset="1 0 0">{part}</replicate></worldbody>')
    text = re.sub("<keyframe>.*</keyframe>", "", text)  # a pose of the robot alone
    path = tmp_path / "four_bar.xml"
    path.write_text(text.replace("</equality>", '<joint joint1="j" name="e"/></equality>'), encoding="utf-8")
    assert "must be separate XML elements" in tuned_cost(case_of(path), cpu_limit=1e-3).reason


@pytest.mark.extended("test_a_file_that_cannot_have_other_settings_is_a_reason_before_any_run")
def test_a_tuning_without_time_names_the_best_settings_so_far() -> None:
    cost = tuned_cost(representative_case(load("four_bar")), cpu_limit=1e-3)
    assert np.isnan(cost.ratio)
    assert re.search(r"unproven: .*the limit is 0.001 s; the best settings so far have an error of \S+", cost.reason)
