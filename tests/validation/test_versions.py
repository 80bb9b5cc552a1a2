"""`loopcheck versions`: terms of a model, their comparison, releases, the cache, pins and the command."""

import importlib.metadata
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from loopcheck import engines
from loopcheck.robots.errors import HarnessError
from loopcheck.validation.execution import uv
from loopcheck.validation.execution.progress import NoDisplay
from loopcheck.validation.gate.pytest_plugin import Failure, pytest_collect_file
from loopcheck.validation.versions import changelog, runs
from loopcheck.validation.versions import releases as listing
from loopcheck.validation.versions.comparison import Comparison, Dump, TermChange, compare
from loopcheck.validation.versions.dump import dump, packed, unpacked
from loopcheck.validation.versions.pins import read_pins
from loopcheck.validation.versions.releases import Releases, releases
from loopcheck.validation.versions.result import ModelResult, VersionsResult, rows
from loopcheck.validation.versions.runs import Model, Runs
from loopcheck.validation.versions.versions import Request, versions
from tests.json_outputs import valid_output, validator
from tests.validation.conftest import Command

FILES = Path(__file__).with_name("releases")
HERE = importlib.metadata.version("mujoco")
MUJOCO: Any = engines.part("mujoco", "release_terms")
CHANGES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("mujoco", "weld_of_turned_bodies.xml"): {"3.0.0": "D", "3.0.1": "aref", "3.7.0": "aref"},
    ("mujoco", "inertia_frame.urdf"): {"3.1.3": "M", "3.14.0": "M"},
    ("mujoco", "site_connect.xml"): {"3.2.5": "D", "3.7.0": "aref"},
    ("mujoco", "slider_crank.xml"): {"3.0.0": "step", "3.2.5": "step"},
    ("mujoco", "native_collision.xml"): {"3.3.0": "J", "4.0.0": "J"},
    ("mujoco", "four_bar.xml"): {"3.7.0": "aref"},
    ("mujoco", "spinning_body.xml"): {"3.7.0": "step", "3.8.1": "step"},
    ("mujoco", "pgs_legs.xml"): {"3.3.6": "step", "3.8.1": "solver", "3.9.0": "solver", "3.11.0": "solver"},
    ("mujoco", "dampratio.xml"): {"3.15.0": "actuator force"},
    ("mujoco", "rk4_ball.xml"): {"4.0.0": "step"},
    ("mujoco", "wrapped_sphere.xml"): {"3.2.3": "tendon length"},
    ("mujoco", "wrapped_tendon.xml"): {"4.0.0": "tendon length"},
    ("mujoco", "clamped_servo.xml"): {"3.5.0": "step"},
    ("mujoco", "compensated_tool.xml"): {"3.4.0": "passive", "3.5.0": "passive"},
    ("mujoco", "margins.xml"): {"3.5.0": "contacts"},
    ("mujoco", "stacked_boxes.xml"): {"3.1.0": "contacts", "3.4.0": "aref", "3.12.0": "contacts"},
    ("mujoco", "mesh_inertia.xml"): {"3.0.1": "M", "3.3.1": "M", "3.14.0": "M"},
    ("mujoco", "elliptic_slip.xml"): {"3.11.0": "solver"},
    ("pinocchio", "hinge_reference.xml"): {"4.0.0": "places"},
    ("dart", "floating_base.urdf"): {"6.17.0": "M"},
}
"""First changed term of each release up to 4.0.0 of MuJoCo that changes a file, by engine and file."""
BETWEEN = {"mujoco": ("2.3.7", "4.0.0"), "pinocchio": ("3.8.0", "4.1.0"), "dart": ("6.16.6", "6.17.1")}


def of_text(text: str, states: Any = None, count: int = 4) -> Dump:
    """The terms of a model in the installed MuJoCo, as a release of it writes them."""
    part = type("Part", (), {**{name: staticmethod(f) for name, f in vars(MUJOCO).items() if callable(f)}})
    part.read = staticmethod(MUJOCO.mujoco.MjModel.from_xml_string)  # type: ignore[attr-defined]
    found: Dump = dump(part, text, states, count, 0)
    return found


@cache
def text_of(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


@cache
def original(name: str) -> Dump:
    return of_text(text_of(name))


def changed(name: str, old: str, new: str) -> Comparison:
    """The comparison of a file with an edited copy."""
    assert old in text_of(name)
    return compare(original(name), of_text(text_of(name).replace(old, new), original(name)["states"]))


def values(found: Dump, term: str) -> list[Any]:
    return [unpacked(text) for text in found["terms"][term]["values"]]


@pytest.mark.parametrize("name", ["four_bar.xml", "weld_of_turned_bodies.xml", "stacked_boxes.xml", "site_connect.xml"])
def test_the_terms_are_those_of_the_equations_of_motion(name: str) -> None:
    """M q̈ + bias = passive + joint force without constraints; with active soft rows, also Jᵀ D (aref - J q̈)."""
    found = original(name)
    of = {term: values(found, term) for term in found["terms"]}
    for k, smooth in enumerate(of["qacc without constraints"]):
        nv = len(smooth)
        M, J = of["M"][k].reshape(nv, nv), of["J"][k].reshape(-1, nv)
        free = of["passive"][k] + of["joint force"][k] - of["bias"][k]
        np.testing.assert_allclose(M @ smooth, free, rtol=0, atol=1e-9 * np.abs(free).max())
        force = of["D"][k] * (of["aref"][k] - J @ of["qacc"][k])
        if name == "stacked_boxes.xml":
            force = np.maximum(force, 0)  # contacts do not pull
        rest = M @ of["qacc"][k] - free - J.T @ force
        assert np.abs(rest).max() < 1e-5 * np.abs(free).max(), k


def test_the_step_and_the_settled_state_are_those_of_the_integrator() -> None:
    """Euler without damping: v + h q̈, and positions with the new rate."""
    found, h = original("four_bar.xml"), 0.002
    for (q, v, *_), qacc, step in zip(found["states"], values(found, "qacc"), values(found, "step"), strict=True):
        rate = unpacked(v) + h * qacc
        np.testing.assert_allclose(step, [*(unpacked(q) + h * rate), *rate], rtol=1e-6, atol=1e-9)


def test_every_second_pair_of_states_closes_the_loops_and_limits_hold() -> None:
    model = MUJOCO.mujoco.MjModel.from_xml_string(text_of("four_bar.xml"))
    data = MUJOCO.mujoco.MjData(model)
    gaps, slips = [], []
    for q, v, *_ in original("four_bar.xml")["states"]:
        data.qpos[:] = unpacked(q)
        MUJOCO.mujoco.mj_forward(model, data)
        gaps.append(np.abs(data.efc_pos[: data.nefc]).max())
        slips.append(np.abs(np.array(data.efc_J).reshape(-1, model.nv) @ unpacked(v)).max())
    assert max(gaps[:2]) < 1e-9 < 1e-3 < min(gaps[2:])
    assert max(slips[:2]) < 1e-9 < 1e-3 < min(slips[2:])
    joints = '<joint range="5 6" limited="true"/><joint type="ball"/>'
    limited = f'<mujoco><worldbody><body>{joints}<geom size=".1"/></body></worldbody></mujoco>'
    for q, *_ in of_text(limited)["states"]:
        hinge, *ball = unpacked(q)
        assert np.radians(5) < hinge < np.radians(6)
        assert np.linalg.norm(ball) == pytest.approx(1, abs=1e-12)
    assert of_text(limited)["states"] == of_text(limited)["states"]


def test_the_first_changed_term_has_its_size_and_elements() -> None:
    found = changed(
        "dampratio.xml",
        '.3 0 0" size=".03" mass="1"/></body></body>',
        '.3 0 0" size=".03" mass="1.000001"/></body></body>',
    )
    first, *others = found.terms
    light, heavy = (np.array(values(original("dampratio.xml"), "M")), np.array(values(of_text(
        text_of("dampratio.xml").replace('mass="1"/></body></body>', 'mass="1.000001"/></body></body>'),
        original("dampratio.xml")["states"]), "M")))  # fmt: skip
    assert (first.term, first.elements) == ("M", ("upper", "lower"))
    assert first.size == pytest.approx(np.abs(heavy - light).max() / np.abs(heavy).max(), rel=1e-12)
    assert 1e-7 < first.size < 1e-5
    assert {"bias", "qacc", "step"} <= {one.term for one in others}
    assert "body_mass" in found.fields


def test_a_change_of_a_part_in_1e11_is_noted_and_does_not_count() -> None:
    fine = changed("dampratio.xml", 'mass="1"', 'mass="1.00000000003"')
    assert (fine.terms, fine.finer[0].term) == ((), "M")
    assert 1e-12 < fine.finer[0].size < 1e-10
    assert changed("dampratio.xml", 'mass="1"', 'mass="1.00000001"').terms[0].size > 1e-9
    same = changed("dampratio.xml", "<mujoco>", "<mujoco> ")
    assert same == Comparison()


@pytest.mark.parametrize(
    ("name", "old", "new", "terms"),
    [
        ("four_bar.xml", "<mujoco>", '<mujoco><option integrator="RK4"/>', ["step"]),
        ("pgs_legs.xml", 'iterations="20"', 'iterations="21"', ["solver", "step"]),
        ("margins.xml", 'mass="1" margin=".02"', 'mass="1" margin="0"', ["contacts"]),
        ("pgs_legs.xml", 'frictionloss=".5"', 'frictionloss="0"', ["rows"]),
        ("four_bar.xml", '<joint name="rod"', '<joint name="more"/><joint name="rod"', ["sizes"]),
        ("wrapped_tendon.xml", 'springlength=".3"', 'springlength=".2"', ["passive"]),
        ("wrapped_tendon.xml", 'name="end" pos="-.185 0 .03"', 'name="end" pos="-.185 0 .04"', ["tendon length"]),
        ("dampratio.xml", 'kp="50"', 'kp="51"', ["actuator force", "joint force"]),
        ("site_connect.xml", "<equality><connect", '<equality><connect solimp=".8 .9 .1"', ["aref", "D"]),
    ],
)  # fmt: skip
def test_a_change_is_named_by_its_term(name: str, old: str, new: str, terms: list[str]) -> None:
    found = changed(name, old, new)
    assert [one.term for one in found.terms][: len(terms)] == terms
    assert (found.tight is not None) == (terms[0] == "solver")


def test_a_tighter_solver_shows_that_the_equations_are_the_same() -> None:
    found = changed("pgs_legs.xml", 'iterations="20"', 'iterations="25"')
    assert found.tight is not None
    assert found.tight < 0.01 * found.terms[0].size
    assert all(element.startswith(("leg", "trunk")) for element in found.terms[0].elements)


def test_a_field_without_an_effect_is_a_note() -> None:
    found = changed("four_bar.xml", '<geom type="capsule"', '<geom friction=".3" type="capsule"')
    assert (found.terms, found.fields) == ((), ("geom_friction",))


def a_dump(**terms: tuple[Sequence[Sequence[float]], Sequence[Sequence[str]]]) -> Dump:
    """A dump with terms as values by state and names by state."""
    return {
        "sizes": [1],
        "states": [["", ""]],
        "fields": {},
        "settled": "",
        "terms": {name: {"values": [*map(packed, of)], "names": [*names]} for name, (of, names) in terms.items()},
    }


def test_rows_are_compared_by_name_where_both_releases_have_them() -> None:
    """Two contacts in another order are the same; at a state with another row, J is not compared."""
    names = [["contact a - b", "contact c - d"]]
    before = a_dump(rows=([[], []], names), J=([[1, 2], [3, 4]], names))
    swapped = a_dump(rows=([[], []], [names[0][::-1]]), J=([[2, 1], [4, 3]], [names[0][::-1]]))
    assert compare(before, swapped).terms == ()
    more = [names[0], ["contact a - b", "limit of x"]]
    after = a_dump(rows=([[], []], more), J=([[1, 2], [9, 9]], more))
    (change,) = compare(before, after).terms
    assert change == TermChange("rows", 2 / 8, ("contact c - d", "limit of x"))
    fewer = a_dump(rows=([[], []], [names[0], ["contact a - b"]]), J=([[1, 2], [3]], [names[0], ["contact a - b"]]))
    assert compare(before, fewer).terms == (TermChange("contacts", 1 / 7, ("contact c - d",)),)


def test_round_off_in_a_force_that_is_zero_does_not_count_and_infinity_does() -> None:
    names = [["x"]]
    before, after = (
        a_dump(bias=([[bias]], names), passive=([[100.0]], names), M=([[mass]], names))
        for bias, mass in ((1e-15, 1.0), (3e-15, np.inf))
    )
    assert compare(before, after).terms == (TermChange("M", np.inf, ("x",)),)
    assert compare(after, after).terms == ()
    assert compare(a_dump(M=([[np.nan]], names)), a_dump(M=([[np.nan]], names))).terms == ()
    assert compare(a_dump(M=([[np.nan]], names)), a_dump(M=([[1.0]], names))).terms[0].size == np.inf


def test_a_release_is_compared_with_the_last_before_it_that_ran() -> None:
    one, two = (a_dump(M=([[value]], [["x"]])) for value in (1.0, 2.0))
    sequence = [
        ("1", one),
        ("2", {"refusal": "line 3"}),
        ("3", one),
        ("4", two),
        ("5", {"failure": "crash"}),
        ("6", one),
    ]
    found = [*rows(sequence)]
    assert [(row.verdict, row.before, row.again) for row in found] == [
        ("first", "", ""),
        ("not run", "", ""),
        ("same", "1", ""),
        ("changed", "3", ""),
        ("not run", "", ""),
        ("changed", "4", "3"),
    ]
    assert [row.reason for row in found if row.reason] == ["refuses the file: line 3", "crash"]
    for some, status in ((found, 1), (found[:2], 3), (found[::2][:2], 0)):  # a change comes before a missing release
        model = ModelResult(target="x", path=Path("x"), digest="", rows=tuple(some))
        assert VersionsResult(engine="mujoco", models=(model,)).exit_status == status
    pinned = [*rows([("4", two)], ("1 (pin)", one))]
    assert [(row.release, row.verdict) for row in pinned] == [("1 (pin)", "first"), ("4", "changed")]


class Index:
    """A package index with some releases, asked through uv."""

    def __init__(self, *found: str, error: str = "") -> None:
        self.found, self.error, self.asked = found, error, list[tuple[str, ...]]()

    def uv(self, arguments: Sequence[str], _: Path, requirement: str = "") -> str:
        self.asked.append((*arguments, requirement))
        if self.error and "--offline" not in arguments:
            raise uv.UvError(self.error)
        from packaging.requirements import Requirement
        from packaging.version import Version

        suited = [version for version in self.found if Requirement(requirement).specifier.contains(version)]
        if not suited:
            raise uv.UvError(f"No solution found when resolving: there is no version of {requirement}")
        return f"mujoco=={max(suited, key=Version)}\n"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    every = Index("3.9.0", "3.10.0", "3.10.1", "4.0.0", "2.3.7", *(f"3.0.{k}" for k in range(9)))
    monkeypatch.setattr(uv, "uv", every.uv)
    monkeypatch.setattr(listing, "chosen_python", lambda *_: sys.executable)
    return every


def test_releases_go_from_the_oldest_to_the_newest_of_the_named_ones(index: Index) -> None:
    assert releases("mujoco", ("3.9.0", "3.10.1")).versions == ("3.9.0", "3.10.0", "3.10.1")
    assert releases("mujoco", ("3.10.0",)).versions == ("3.10.0", "3.10.1", "4.0.0")
    assert releases("mujoco", ("2.0.0", "3.0.0")).versions == ("2.3.7", "3.0.0")
    assert releases("mujoco", ()).versions == (*(f"3.0.{k}" for k in range(3, 9)), "3.9.0", "3.10.0", "3.10.1", "4.0.0")
    assert len(releases("mujoco", ()).versions) == listing.DEFAULT
    assert releases("mujoco", ("3.0.1", "4.0.0"), only=True).versions == ("3.0.1", "4.0.0")
    with pytest.raises(HarnessError, match=r"no such release: .*3\.99"):
        releases("mujoco", ("3.9.0", "3.99"))
    with pytest.raises(HarnessError, match=r"the newest release is 4\.0\.0, got 5\.0"):
        releases("mujoco", ("5.0",))


def test_without_the_index_the_downloaded_releases_are_listed(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.error = "Request failed after 3 retries: tcp connect error"
    found = releases("mujoco", ("3.10.0",))
    assert (found.versions[0], found.offline) == ("3.10.0", True)
    monkeypatch.setattr(uv, "program", lambda: "uv")
    assert "--offline" in found.command("3.10.0")
    index.found = ()
    with pytest.raises(HarnessError, match="cannot be listed: Request failed"):
        releases("mujoco", ())


def test_every_release_runs_with_the_same_numpy_and_the_installed_one_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uv, "program", lambda: "uv")
    of = Releases(engine="mujoco", versions=(), python="/usr/bin/python3.11")
    assert {"--with=mujoco==3.2.0", f"--with=numpy=={listing.NUMPY}"} <= {*of.command("3.2.0")}
    assert "--with=numpy" in of.command("3.2.0", pinned=False)
    newer = Releases(engine="mujoco", versions=(), python="3.14")
    assert f"--with=numpy=={np.__version__}" in newer.command("3.2.0")
    assert of.command(HERE) == (sys.executable, "-I")
    pinocchio = Releases(engine="pinocchio", versions=(), python=sys.executable)
    assert "--with=cmeel-tinyxml2<11" in pinocchio.command("3.7.0")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Releases that this process computes; each call is listed. A file named `crash` ends the process, `slow` too."""
    calls: list[list[str]] = []

    def call(runner: Runs, command: Sequence[str], request: Path) -> str:
        content = json.loads(request.read_text(encoding="utf-8"))
        version = command[-1]
        calls.append([version, *(Path(path).name for path in content["files"])])
        if version == "absent":
            return "No solution found" if command[0] == "pinned" else "no wheels"
        with Path(content["out"]).open("w", encoding="utf-8") as out:
            for path, states in content["files"].items():
                if Path(path).stem == "crash":
                    out.write('{"half')
                    return f"{runs.SIGNAL} 11"
                found = dump(MUJOCO, path, states, 2, 0)
                out.write(json.dumps({"file": path, **found}) + "\n")
        return ""

    monkeypatch.setattr(Runs, "_call", call)
    monkeypatch.setattr(Releases, "command", lambda _, v, pinned=True: ("pinned" if pinned else "free", v))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return calls


def run(names: Iterable[Path], *of: str) -> dict[tuple[str, str], Dump]:
    models = [Model.from_file(path, "mujoco") for path in names]
    runner = Runs(releases=Releases(engine="mujoco", versions=of, python="3.11"), jobs=1)
    return {(version, path.stem): found for (version, path), found in runner.dumps(models, {}, NoDisplay()).items()}


def test_results_are_cached_by_model_and_release(fake: list[list[str]], tmp_path: Path) -> None:
    bar = Path(shutil.copy(FILES / "four_bar.xml", tmp_path / "bar.xml"))
    first = run([bar], "1", "2")
    assert fake == [["2", "bar.xml"], ["1", "bar.xml"]]  # the newest makes the states, and runs once
    assert first["1", "bar"] == first["2", "bar"]
    assert run([bar], "1", "2", "3")["3", "bar"]["states"] == first["1", "bar"]["states"]
    assert fake[2:] == [["3", "bar.xml"]]
    bar.write_text(text_of("four_bar.xml").replace('mass=".5"', 'mass=".6"'), encoding="utf-8")
    assert compare(first["2", "bar"], run([bar], "2")["2", "bar"]).terms[0].term == "M"
    assert fake[3:] == [["2", "bar.xml"]]


def test_an_included_file_and_a_mesh_are_part_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text("<mujocoinclude/>", encoding="utf-8")
    model = tmp_path / "m.xml"
    model.write_text('<mujoco><include file="part.xml"/><worldbody/></mujoco>', encoding="utf-8")
    before = Model.from_file(model, "mujoco").digest
    assert before == Model.from_file(model, "mujoco").digest
    (tmp_path / "part.xml").write_text("<mujocoinclude> </mujocoinclude>", encoding="utf-8")
    assert before != Model.from_file(model, "mujoco").digest


def test_a_crash_at_a_file_leaves_the_others_and_is_not_cached(fake: list[list[str]], tmp_path: Path) -> None:
    files = [Path(shutil.copy(FILES / "rk4_ball.xml", tmp_path / f"{name}.xml")) for name in ("a", "crash", "z")]
    found = run(files, "1")
    assert found["1", "crash"] == {"failure": "the process ends with signal 11"}
    assert found["1", "a"]["terms"] == found["1", "z"]["terms"]
    calls = len(fake)
    assert run(files, "1") == found
    assert [["1", "crash.xml"]] * (len(fake) - calls) == fake[calls:]
    assert len(fake) > calls


def test_a_model_that_cannot_move_is_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "still.xml"
    path.write_text("<mujoco><worldbody/></mujoco>", encoding="utf-8")
    failure = dump(engines.part("mujoco", "release_terms"), str(path), None, 2, 0)["failure"]
    assert "at least one degree of freedom" in failure


def test_a_refusal_is_cached_and_a_missing_release_has_its_reason(fake: list[list[str]], tmp_path: Path) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_text('<mujoco><worldbody><body nme="x"/></worldbody></mujoco>', encoding="utf-8")
    assert "unrecognized attribute: 'nme'" in run([bad], "1")["1", "bad"]["refusal"]
    calls = len(fake)
    run([bad], "1")
    assert len(fake) == calls
    assert run([FILES / "rk4_ball.xml"], "absent")["absent", "rk4_ball"] == {"failure": "no wheels"}


def test_a_long_process_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runner = Runs(releases=Releases(engine="mujoco", versions=(), python=""), time_limit=0.2)
    monkeypatch.setattr(runs, "PROGRAM", tmp_path / "slow.py")
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)", encoding="utf-8")
    assert runner._call((sys.executable, "-S"), tmp_path / "r.json") == (
        "the process takes longer than 0.2 s. Allow more with --time-limit"
    )
    (tmp_path / "slow.py").write_text("import os; os.kill(os.getpid(), 11)", encoding="utf-8")
    runner = Runs(releases=runner.releases)
    assert runner._call((sys.executable, "-S"), tmp_path / "r.json") == "the process ends with signal 11"
    (tmp_path / "slow.py").write_text("import sys; sys.exit(139)", encoding="utf-8")
    assert runner._call((sys.executable, "-S"), tmp_path / "r.json") == "the process ends with signal 11"
    (tmp_path / "slow.py").write_text("import nothing_here", encoding="utf-8")
    assert runner._call((sys.executable, "-S"), tmp_path / "r.json").startswith("ModuleNotFoundError")


LOG = """
Version 3.2.0 (May 1)
---------------------
1. :ref:`mj_step<x>` is faster for models with a connect.
2. Fixed a bug in the ``RK4`` integrator for ball joints. More words. And more.
- Fixed mjx connect constraint regularization.
- Removed the texture format of files.

Version 3.1.0 (April 1)
-----------------------
- Fixed the regularization of connect and weld constraints (:issue:`12`).
- Improved the line-search of the Newton solver.
"""


def test_the_changelog_line_has_words_of_the_term_and_the_file(tmp_path: Path) -> None:
    model = tmp_path / "m.xml"
    model.write_text('<mujoco><joint type="ball"/><connect/></mujoco>', encoding="utf-8")

    def line(term: str, before: str, after: str) -> str:
        return changelog.fitting_line(LOG, (before, after), [TermChange(term, 1.0, ("x",))], model)

    assert line("step", "3.1.0", "3.2.0") == "3.2.0: Fixed a bug in the RK4 integrator for ball joints."
    assert line("D", "3.0.0", "3.2.0") == "3.1.0: Fixed the regularization of connect and weld constraints (12)."
    assert line("D", "3.2.0", "3.0.0") == line("D", "3.0.0", "3.2.0")
    assert line("D", "3.1.0", "3.2.0") == ""
    assert line("sizes", "3.0.0", "3.2.0") == ""


def test_a_pin_is_compared_at_its_own_states(
    loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bar, pin = Path(shutil.copy(FILES / "four_bar.xml", tmp_path / "bar.xml")), tmp_path / "bar.pin.json"
    status, out, _ = loopcheck("versions", bar, "--pin", pin)
    assert (status, f"Pinned in mujoco {HERE}" in out) == (0, True)
    stored = read_pins(pin)[bar.resolve()]
    assert (stored.engine, stored.release) == ("mujoco", HERE)
    validator("loopcheck.baseline/1").validate(json.loads(pin.read_text(encoding="utf-8")))
    status, out, _ = loopcheck("versions", "--against", pin, "--format", "json")
    result = valid_output(out)
    assert (status, result["verdict"], len(result["models"][0]["releases"])) == (0, "no change", 2)
    content = json.loads(pin.read_text(encoding="utf-8"))
    terms = content["rows"][0]["dump"]["terms"]
    terms["M"]["values"][3] = packed(1.01 * unpacked(terms["M"]["values"][3]))
    pin.write_text(json.dumps(content), encoding="utf-8")
    status, out, _ = loopcheck("versions", bar, "--against", pin, "--format", "json")
    (change,) = valid_output(out)["models"][0]["releases"][1]["comparison"]["terms"]
    assert (status, change["term"]) == (1, "M")
    assert 1e-3 < change["size"] < 1e-2
    assert "has changed since" not in out
    content["rows"][0]["sha256"] = "0"
    pin.write_text(json.dumps(content), encoding="utf-8")
    assert "The model file has changed since it was pinned" in loopcheck("versions", "--against", pin)[1]
    found, _ = versions(Request(against=pin), NoDisplay())
    assert found.models[0].failures[0].startswith(f"{HERE} (pin) -> {HERE}: M changes by ")


def test_the_plugin_makes_a_test_of_a_pin(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = ["4.0.0 (pin) -> 4.1.0: M changes by 1.0e-01 at 'crank'"]
    result = SimpleNamespace(models=[SimpleNamespace(target="bar.xml", failures=changes)])
    asked: list[Request] = []

    def compared(request: Request, _: Any) -> tuple[Any, None]:
        asked.append(request)
        return result, None

    monkeypatch.setattr("loopcheck.validation.versions.versions.versions", compared)
    monkeypatch.setattr(request.config.option, "loopcheck", True)
    (tmp_path / "bar.pin.json").write_text("{}", encoding="utf-8")
    file = pytest_collect_file(tmp_path / "bar.pin.json", request.session)
    assert file is not None
    (item,) = file.collect()
    with pytest.raises(Failure, match=r"bar\.xml: 4\.0\.0 \(pin\) -> 4\.1\.0: M changes"):
        item.runtest()
    assert [one.against for one in asked] == [tmp_path / "bar.pin.json"]
    changes.clear()
    item.runtest()


def test_the_action_compares_its_pins(tmp_path: Path) -> None:
    steps = yaml.safe_load((FILES.parents[2] / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    (script,) = (step["run"] for step in steps if step.get("name") == "versions")
    for name, text in {"python": "true", "loopcheck": 'echo "$@" >> called; [ "${*: -1}" != changed.json ]'}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    surroundings = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    for pins, release, status in (("changed.json a.json", "", 1), ("a.json", "mujoco==3.2.0", 0)):
        of_step = {**surroundings, "PINS": pins, "RELEASE": release}
        command = ["bash", "-eo", "pipefail", "-c", script]
        assert subprocess.run(command, cwd=tmp_path, env=of_step, check=False).returncode == status
    called = (tmp_path / "called").read_text(encoding="utf-8").splitlines()
    assert called == [
        "versions --against changed.json",
        "versions --against a.json",
        "versions mujoco==3.2.0 --only --against a.json",
    ]


def test_a_damaged_pin_is_one_line(loopcheck: Command, tmp_path: Path) -> None:
    pin = tmp_path / "x.pin.json"
    row = {"file": "x.xml", "sha256": "", "engine": "mujoco", "release": "1", "largest": {}}
    whole = {"sizes": [1], "states": [[packed([1.0])]], "fields": {}, "settled": "", "terms": {}}
    bad: list[tuple[Any, str]] = [
        ({**whole, "states": [["§"]]}, "are damaged"),
        ({**whole, "states": []}, "are incomplete"),
        ({name: each for name, each in whole.items() if name != "settled"}, "are incomplete"),
        ({**whole, "terms": {"M": {"values": [packed([1.0])] * 2, "names": [["x"]]}}}, "are incomplete"),
        ({"states": [[packed([1.0])]], "terms": {}}, "are incomplete"),
        ({}, "are damaged"),
    ]
    for content, complaint in bad:
        head = {"schema": "loopcheck.baseline/1", "command": "versions"}
        pin.write_text(json.dumps({**head, "rows": [{**row, "dump": content}]}), encoding="utf-8")
        status, _, err = loopcheck("versions", "--against", pin)
        assert (status, err.count("\n"), complaint in err) == (2, 1, True), err
    pin.write_text("{}", encoding="utf-8")
    assert f"Write it with loopcheck versions --pin {pin.name}" in loopcheck("versions", "--against", pin)[2]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "a TARGET or --against must be given"),
        (("3ppr",), "'3ppr'. Did you mean '3prr'?"),
        (("nowhere.xml",), "nowhere.xml: the model file must exist"),
        (("3prr", "mujoco==new"), "engine must be ENGINE or ENGINE==VERSION, got 'mujoco==new'"),
        (("3prr", "dart==6", "mujoco==3.6.0"), "must be of one engine, got dart, mujoco"),
        (("3prr", "ode==1"), "unknown engine: 'ode'"),
        (("3prr", "drake==1.0"), "ENGINE must be one of dart, mujoco, pinocchio, pybullet"),
        (("3prr", "pybullet"), "must read the file itself, as URDF, got MJCF. Run: "),
        (("3prr", f"mujoco=={HERE}"), f"at least two releases must be compared, got mujoco {HERE}"),
        (("3prr", "--pin", "a", "--against", "b"), "One of --pin and --against must be given"),
        (("3prr", "--against", "nowhere.json"), "nowhere.json: must be a baseline in JSON"),
        (("EMPTY",), "the folder must contain robot.toml or model files, got none"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], complaint: str, loopcheck: Command, tmp_path: Path) -> None:
    status, _, err = loopcheck("versions", *(str(tmp_path) if word == "EMPTY" else word for word in arguments))
    assert (status, err.count("\n"), complaint in err) == (2, 1, True), err


def test_the_removed_study_names_the_command(loopcheck: Command) -> None:
    status, _, err = loopcheck("study", "versions", "3prr")
    assert (status, "It was removed: " in err, "versions compares the releases of an engine" in err) == (2, True, True)


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases 1 (refuses one file), 2 (lighter crank) and 3 (as installed)."""

    def dumps(_: Runs, models: Sequence[Model], *__: object) -> dict[tuple[str, Path], Dump]:
        found: dict[tuple[str, Path], Dump] = {}
        for model in models:
            text = model.path.read_text(encoding="utf-8")
            new = of_text(text)
            found["1", model.path] = {"refusal": "unrecognized attribute"} if "dampratio" in text else new
            found["2", model.path] = of_text(text.replace('mass=".5"', 'mass=".4"'), new["states"])
            found["3", model.path] = new
        return found

    monkeypatch.setattr(Runs, "dumps", dumps)
    monkeypatch.setattr("loopcheck.validation.versions.versions.changelog", lambda *_: "")
    monkeypatch.setattr(
        "loopcheck.validation.versions.versions.releases",
        lambda *_, **__: Releases(engine="mujoco", versions=("1", "2", "3"), python=""),
    )


@pytest.mark.usefixtures("three")
def test_the_output_names_release_term_and_element(loopcheck: Command, tmp_path: Path) -> None:
    for name in ("four_bar.xml", "dampratio.xml", "rk4_ball.xml"):
        shutil.copy(FILES / name, tmp_path)
    (tmp_path / "part.xml").write_text("<mujocoinclude/>", encoding="utf-8")
    status, out, _ = loopcheck("versions", tmp_path / "four_bar.xml")
    assert status == 1
    assert "2 of 2 upgrades change" in out
    assert "3 is equal to 1 again." in out
    (line,) = (line for line in out.splitlines() if line.startswith("│ 2 "))
    assert [cell.strip() for cell in line.split("│")[1:3]] == ["2", "M"]
    assert "crank" in line
    status, out, _ = loopcheck("versions", tmp_path / "dampratio.xml")
    assert (status, "Not run: 1 refuses the file: unrecognized attribute" in out) == (3, True)
    assert loopcheck("versions", tmp_path / "rk4_ball.xml")[0] == 0
    status, out, _ = loopcheck("versions", tmp_path, "--format", "json")
    result = valid_output(out)
    assert (status, [model["verdict"] for model in result["models"]]) == (1, ["not run", "changed", "no change"])
    assert "body_inertia, " in loopcheck("versions", tmp_path / "four_bar.xml", "--all")[1]


@pytest.mark.extended("test_a_change_is_named_by_its_term")
@pytest.mark.parametrize("engine", ["mujoco", "pinocchio", "dart"])
def test_the_releases_themselves_change_what_the_page_says(engine: str) -> None:
    """Releases are installed; skipped with the reason if they cannot be."""
    wanted = {file: changes for (name, file), changes in CHANGES.items() if name == engine}
    package = engines.distribution(engine)
    request = Request(
        targets=[str(FILES / file) for file in wanted],
        requirements=[f"{package}=={version}" for version in BETWEEN[engine]],
    )
    try:
        result, _ = versions(request, NoDisplay())
    except HarnessError as error:
        pytest.skip(str(error))
    lost = [row.reason for model in result.models for row in model.rows if row.reason and "refuses" not in row.reason]
    if lost:
        pytest.skip(lost[0])
    found = {
        Path(model.target).name: {row.release: row.comparison.terms[0].term for row in model.changes}
        for model in result.models
    }
    assert found == wanted
