"""Contents of the site from tables: numbers unchanged, a single name per robot, no trace of the machine."""

import csv
import json
import math
import re
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from docs.kept_tables import keep
from docs.site.entries import SPECS, read_collections
from docs.site.pages import FILES, write_site
from docs.site.texts import place
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.catalogue import CATALOGUE, names
from loopcheck.robots.errors import OutputError
from loopcheck.robots.robot import load
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.verdicts import SEVERITY, summary_verdicts
from loopcheck.validation.report.geometry import point_rows, pose_rows
from loopcheck.validation.report.schematic import linkage_figure
from tests.conftest import MODELS
from tests.docs.collections import COMMIT, VERSIONS, comparison, loss, model, write_atlas, write_collection
from tests.test_documents import want_accepted

DOCS = CATALOGUE.parent / "docs"
TABLES = [path for folder in ("catalogue", "atlas") for path in sorted((DOCS / folder).glob("*")) if path.is_file()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawings of a small atlas; its pages stand beside them."""
    root = tmp_path_factory.mktemp("site")
    write_atlas(root)
    write_site(read_collections([root / "docs" / "atlas"]), root)
    return root / FILES / "atlas"


def test_the_page_of_a_robot_has_what_the_tables_hold(files: Path) -> None:
    page = (files.parents[1] / "robots" / "leg.md").read_text(encoding="utf-8")
    rows = {row[0]: row for row in re.findall(r"<tr><td>(?:<a [^>]*>)?([\w/]+)(.*?)</tr>", page, re.DOTALL)}
    assert set(rows) == {"mujoco/kkt", "mujoco/forward", "mujoco/as_is", "pybullet/forward"}
    for source, verdict, error in (
        ("mujoco/kkt", "agree", "1.00e-12"),
        ("mujoco/forward", "disagree", "0.002"),
        ("mujoco/as_is", "informational", "0.0031"),
        ("pybullet/forward", "not comparable", ""),
    ):
        assert verdict in rows[source][1]
        assert error in rows[source][1]
    assert f"https://github.com/someone/legs/blob/{COMMIT}/a%20b/leg%231.xml" in page
    assert "the model has 2 kg, the engine 1.5 kg" in page
    pages = {path.stem for path in (files.parents[1] / "robots").glob("*.md")}
    assert pages == {"arm", "foot", "hand", "leg", "leg-copy"}


@pytest.mark.evidence("pages of the catalogue", seconds=1)
def test_the_command_on_the_page_of_a_robot_is_accepted(tmp_path: Path) -> None:
    write_atlas(tmp_path)
    write_site(read_collections([tmp_path / "docs" / "atlas", DOCS / "catalogue"]), tmp_path)
    pages = (tmp_path / "docs" / "pages" / "robots").glob("*.md")
    commands = {path.stem: re.findall("<code>(loopcheck [^<]*)", path.read_text(encoding="utf-8")) for path in pages}
    assert commands.keys() >= {"3prr", "leg"}
    for name, (command,) in commands.items():
        assert command.endswith(f" {name}")
        want_accepted(command)


def test_a_patched_model_is_called_so(files: Path) -> None:
    page = (files.parents[1] / "robots" / "arm.md").read_text(encoding="utf-8")
    assert "With the unmodified file, but in a vacuum, the efforts of MuJoCo 4.0.1 have an error of up to 12 %" in page
    assert "<dt>Computed</dt><dd>in a vacuum: SHA-256" in page


def test_tuned_settings_have_a_cost_only_beside_that_of_the_file(files: Path) -> None:
    leg, foot = ((files.parents[1] / "robots" / f"{name}.md").read_text(encoding="utf-8") for name in ("leg", "foot"))
    assert "With tuned settings, the error is 0.1 %, at 2.3 times the solver iterations." in leg
    assert "With tuned settings, the error is 1 %." in foot


def test_a_robot_is_drawn_from_its_points_and_only_then(files: Path) -> None:
    assert {path.name for path in files.glob("*.svg")} == {"leg.svg", "as-is.svg"}


def test_a_robot_that_is_gone_is_gone_from_the_site(files: Path, tmp_path: Path) -> None:
    write_atlas(tmp_path)
    entries = read_collections([tmp_path / "docs" / "atlas"])
    write_site(entries, tmp_path)
    write_site([entry for entry in entries if entry.name != "hand"], tmp_path)
    assert not list(tmp_path.rglob("hand*"))
    assert list(tmp_path.rglob("leg.md"))


@pytest.mark.parametrize(("thickness", "has_axes"), [(0.05, True), (0.3, False)])
def test_what_stands_still_is_drawn_flat_if_it_is_thin(thickness: float, has_axes: bool) -> None:
    """Without a motion no other data shows the plane of a robot; seen askew, the axes would be the paper's."""
    corners = [(0.0, 0.0, 0.0), (0.0, 1.0, thickness), (1.0, 1.0, 0.0)]
    rows = [{"t": 0.0, "body": "b", "point": f"p{k}", "x": x, "y": y, "z": z} for k, (x, y, z) in enumerate(corners)]
    assert ("matplotlib.axis" in str(linkage_figure(pd.DataFrame(rows)))) == has_axes


def test_a_pose_has_the_points_of_a_motion_that_begins_there() -> None:
    case = cases_of([MODELS / "four_bar.xml"])[0]
    motion = prescribe(case, dt=0.5)
    first = [row for row in point_rows(case.mechanism, motion, None) if row["t"] == motion.t[0]]
    assert list(pose_rows(case.mechanism, motion.q[0])) == first


def test_the_axis_of_errors_is_logarithmic() -> None:
    assert place(1e-3) - place(1e-5) == pytest.approx(place(1e-9) - place(1e-11))
    assert 0 < place(1e-12) < place(1.0) < 100
    assert (place(0.0), place(1e-300), place(math.inf)) == (0, 0, 100)
    assert math.isnan(place(math.nan))


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("leg", ("names must be unique .*, got 'leg' twice")),
        ("../leg", "ids must consist of .*'../leg'"),
        ("Leg", "ids must .*'Leg'"),
    ],
)
def test_names_that_make_no_addresses_are_refused(second: str, message: str, tmp_path: Path) -> None:
    write_collection(tmp_path / "one", atlas=[model("leg")])
    write_collection(tmp_path / "two", atlas=[model(second)])
    with pytest.raises(OutputError, match=message):
        read_collections([tmp_path / "one", tmp_path / "two"])


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    write_collection(tmp_path / "one", summary=[comparison("leg", "mujoco/kkt", 0.1, "agree")])
    (tmp_path / "one" / "atlas.csv").write_text("id,repository\nleg,x/y\n", encoding="utf-8")
    with pytest.raises(OutputError, match=r"atlas\.csv: must be a table"):
        read_collections([tmp_path / "one"])


def test_a_note_is_kept_once_and_shown_with_all_its_rows(tmp_path: Path) -> None:
    notes = ["said of both, with a comma", "said of both, with a comma", "", "said of one"]
    rows = [comparison("leg", f"dart/{k}", 0.1, "not comparable", note=note) for k, note in enumerate(notes)]
    audit = [loss("leg", "dart", notes[0])]
    frames = {name: SPECS[name].frame(of_it) for name, of_it in (("summary", rows), ("audit", audit))}
    keep(tmp_path, {"atlas": SPECS["atlas"].frame([model("leg")]), **frames}, {"command": [], "versions": VERSIONS})
    assert sum(path.read_text(encoding="utf-8").count(notes[0]) for path in tmp_path.iterdir()) == 1
    [entry] = read_collections([tmp_path])
    assert [finding.note for of_case in entry.verdicts.values() for finding in of_case.values()] == notes
    assert list(entry.audit["note"]) == [notes[0]]
    (tmp_path / "notes.csv").write_text("key,note\n0,said\n", encoding="utf-8")
    with pytest.raises(OutputError, match=r"notes\.csv: each key must have a note, missing: 1"):
        read_collections([tmp_path])


def test_what_is_kept_of_a_source_says_what_all_its_rows_say(tmp_path: Path) -> None:
    """A run with every kind of verdict, NaN errors, zero scales, and notes of a single actuator."""
    rng = np.random.default_rng(23)
    rows = [
        comparison(
            "leg",
            f"engine{k // 12}/{route}",
            rng.choice([math.nan, 1e-3, 1e-9, 2.0], p=[0.1, 0.3, 0.3, 0.3]),
            "reference" if route == "exact" else str(rng.choice(SEVERITY[:-1])),
            actuator=f"motor {k}",
            tolerance=rng.choice([1e-6, 1e-3]),
            scale=rng.choice([0.0, 2.0]),
            note=str(rng.choice(["", "soft", "closure drift"])),
        )
        for k in range(96)
        for route in ("exact", "kkt", "forward")
    ]
    frames = {"summary": SPECS["summary"].frame(rows), "audit": SPECS["audit"].frame([])}
    keep(tmp_path, {"atlas": SPECS["atlas"].frame([model("leg")]), **frames}, {"command": [], "versions": VERSIONS})
    [entry] = read_collections([tmp_path])
    assert repr(entry.verdicts) == repr(summary_verdicts(frames["summary"], {}))  # NaN is equal to itself as a text
    kept = pd.read_csv(tmp_path / "summary.csv")
    assert (kept["verdict"] == "reference").sum() == 96
    assert len(kept) < 0.75 * len(rows)


def test_what_is_kept_says_nothing_of_where_it_was_made(tmp_path: Path) -> None:
    elsewhere = "/srv/some-checkout"  # of the run, not of the documents
    agreed, lost = (
        {"quantity": quantity, "verdict": verdict} for quantity, verdict in (("axis", "agree"), ("mass", "disagree"))
    )
    audit = [loss("leg", "pybullet", f"{elsewhere}/robots/leg.xml: x", **values) for values in (agreed, agreed, lost)]
    tables = {"atlas": [model("leg")], "summary": [comparison("leg", "mujoco/kkt", 0.1, "agree")], "audit": audit}
    frames = {name: SPECS[name].frame(rows) for name, rows in tables.items()}
    command = [
        "loopcheck",
        "atlas",
        "--remote",
        "file:///mirror",
        "--out",
        "/scratch/atlas",
        "--jobs",
        "1",
        "--out",
        "build/a",
    ]
    keep(tmp_path / "kept", frames, {"command": command, "versions": VERSIONS})
    [entry] = read_collections([tmp_path / "kept"])
    assert list(entry.audit["quantity"]) == ["axis", "mass"]
    assert set(entry.audit["note"]) == {"robots/leg.xml: x"}
    kept = json.loads((tmp_path / "kept" / "run.json").read_text(encoding="utf-8"))["command"]
    assert kept == ["loopcheck", "atlas", "--remote", "PLACE", "--out", "PLACE", "--jobs", "1", "--out", "build/a"]


def test_the_gallery_shows_the_robots_that_are_here() -> None:
    """Unmodified models: a model changed since its run is computed again before its results are shown."""
    with (DOCS / "catalogue" / "atlas.csv").open(encoding="utf-8", newline="") as file:
        models = {row["id"]: row["sha256"] for row in csv.DictReader(file)}
    paths = {name: load(name).folder / load(name).mjcf for name in names()}
    assert models == {name: sha256(path.read_bytes()).hexdigest() for name, path in paths.items()}


def test_the_error_as_is_is_the_largest_of_its_robot() -> None:
    with (DOCS / "catalogue" / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["source"] == "mujoco/as_is" and row["peak_error"]]
    largest = {
        name: max(float(row["peak_error"]) for row in rows if row["robot"] == name)
        for name in {row["robot"] for row in rows}
    }
    with (DOCS / "catalogue" / "atlas.csv").open(encoding="utf-8", newline="") as file:
        shown = {row["id"]: float(row["as_is_error"]) for row in csv.DictReader(file) if row["as_is_error"]}
    assert shown == largest


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_is_published_names_no_path_of_a_machine(path: Path) -> None:
    found_paths = re.findall(r"(?<![\w.])/(?:home|root|tmp|work|Users|usr|var)/\S*", path.read_text(encoding="utf-8"))
    assert found_paths == []
