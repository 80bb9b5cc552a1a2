"""The report contains the results of the tables, in HTML and in Markdown, without other files."""

import html
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from loopcheck.robots.errors import OutputError
from loopcheck.validation.check.closing import closing_lines, in_plain_words
from loopcheck.validation.check.sections.audit import first_divergence
from loopcheck.validation.check.sections.cases import _ladder_table, looks_of_sources
from loopcheck.validation.check.study import run
from loopcheck.validation.common import results as result_tables
from loopcheck.validation.common.results import TABLES, Results, table
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.verdicts import CaseVerdict, case_verdicts, verdict_counts
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import Workers, worker_pool
from loopcheck.validation.frame.preload import PRELOAD
from loopcheck.validation.report import figures, pages, schematic
from loopcheck.validation.report.blocks import Block, Section
from loopcheck.validation.report.pages import completed
from tests.validation.conftest import exit_status, write_report

REFERENCE = "analytic/noc"
HOSTILE = 'lost <script>alert("q9")</script> & $x_1$ | the rest'
CASE = {"robot": "bar", "variant": "default", "mode": "up", "configuration": "vertical"}
Row = dict[str, Any]
EMPTY = Results(**{name: table(name, []) for name in TABLES}, run={})


class Page(HTMLParser):
    """Visible parts of the page: rows of tables, attributes, headings."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.rows: list[list[tuple[str, str]]] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._cell: list[str] | None = None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.tags.append((tag, found))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._cell = [found.get("class", "").strip(), ""]

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell:
            self.rows[-1].append((" ".join(self._cell[1].split()), self._cell[0]))
            self._cell = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._cell:
            self._cell[1] += data

    def attributes(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def summary_row(source: str, verdict: str, error: float = np.nan, **changed: Any) -> Row:
    numbers = dict.fromkeys(("closure_drift", "tracking_error", "wall_time"), np.nan)
    row = {**CASE, "source": source, "reference": REFERENCE, "actuator": "m1", "unit": "N"}
    scales = {"peak": 2.0, "case_peak": 2.0, "scale": 2.0}
    errors = {"max_error": 2 * error, "rms_error": error, "relative_error": error, "tolerance": 1e-9}
    return {**row, **scales, **errors, "verdict": verdict, **numbers, "note": "", **changed}


def effort_rows(source: str, offset: float) -> Iterator[Row]:
    for actuator in ("m1", "m2"):
        for t in np.linspace(0, 1, 11):
            effort = np.sin(3 * t) + 1 + offset
            yield {**CASE, "source": source, "actuator": actuator, "unit": "N", "t": t, "effort": effort}


def task_rows() -> Iterator[Row]:
    at = {"robot": "bar", "variant": "default", "mode": "up"}
    for name, unit in (("height $h$", "m"), ("θ", "rad")):
        for t in np.linspace(0, 1, 11):
            yield {**at, "t": t, "coordinate": name, "unit": unit, "x": t**3, "xd": 3 * t**2, "xdd": 6 * t}


def task_effort_rows() -> Iterator[Row]:
    for source in (REFERENCE, "a/kkt"):
        for name, unit in (("height $h$", "N"), ("θ", "N m")):
            for t in np.linspace(0, 1, 11):
                yield {**CASE, "source": source, "coordinate": name, "unit": unit, "t": t, "effort": 3 * t}


def point_rows() -> Iterator[Row]:
    """A bar that turns by 1 rad about the origin, in the plane XZ."""
    for t in np.linspace(0, 1, 11):
        end = {"x": np.cos(t), "y": 0.1, "z": np.sin(t)}
        at = {"robot": "bar", "variant": "default", "mode": "up", "t": t}
        yield {**at, "body": "world", "point": "pivot", "x": 0.0, "y": 0.1, "z": 0.0}
        yield {**at, "body": "arm", "point": "pivot", "x": 0.0, "y": 0.1, "z": 0.0}
        yield {**at, "body": "arm", "point": "end", **end}
        yield {**at, "body": "trace", "point": "P", **end}


def ladder_rows() -> Iterator[Row]:
    """A ladder of order 2: e = dt² so that the change is 3 dt² and the index 1.25 · 3 dt² / 3."""
    numbers = dict.fromkeys(("closure_drift", "tracking_error", "wall_time"), np.nan)
    for k, dt in enumerate((0.04, 0.02, 0.01)):
        change, order = (3 * dt**2 if k else np.nan), (2.0 if k == 2 else np.nan)
        steps = {"dt": dt, "relative_error": dt**2, "change": change, "order": order}
        yield {**CASE, "source": "a/forward", **steps, **numbers}


def audit_row(engine: str, tier: str, quantity: str, error: float, verdict: str) -> Row:
    what = {"engine": engine, "tier": tier, "quantity": quantity, "element": "m1", "unit": "-"}
    numbers = {"wanted": 1.0, "found": 1.0 + error, "error": error, "tolerance": 1e-10}
    return {**CASE, **what, **numbers, "verdict": verdict, "note": ""}


def audit_rows() -> Iterator[Row]:
    """Engine `a` leaves the reference by its default route alone."""
    yield audit_row("a", "static", "mass", 1e-15, "agree")
    yield audit_row("a", "instantaneous", "mass matrix", 3e-14, "agree")
    yield audit_row("a", "instantaneous", "effort, kkt", 1e-14, "agree")
    yield audit_row("a", "trajectory", "effort, default", 0.4, "informational")


@pytest.fixture(scope="module")
def results() -> Results:
    rows: list[Mapping[str, Any]] = [
        summary_row(REFERENCE, "reference", note="power imbalance 3.0e-15 of the acting powers"),
        summary_row(REFERENCE, "reference", actuator="m2"),
        summary_row("a/kkt", "agree", 3.1e-15),
        summary_row("a/kkt", "disagree", 0.25, actuator="m2", note=HOSTILE),
        summary_row("a/forward", "agree", 4.2e-10),
        summary_row("a/forward", "agree", 5.3e-10, actuator="m2"),
        summary_row("a/default", "informational", 1000.0, tolerance=np.nan),
        summary_row("b/kkt", "not run", note="the engine is not installed"),
        summary_row("b/forward", "not comparable", note="a loop was dropped"),
    ]
    efforts: list[Mapping[str, Any]] = [
        row
        for source, offset in ((REFERENCE, 0.0), ("a/kkt", 0.2), ("a/forward", 1e-9), ("a/default", 2000.0))
        for row in effort_rows(source, offset)
    ]
    run = {
        "command": ["loopcheck", "check", "bar"],
        "start": "2026-01-02T03:04:05+00:00",
        "versions": {"python": "3.11.7"},
        "settings": {"a/forward": {"step": "10 ms"}},
        "sources": {REFERENCE: "The reference."},
        "tolerances": {
            "file": "t.toml",
            "sha256": "ab" * 32,
            "routes": {"a/kkt": {"relative_error": 1e-9, "reason": "why"}},
        },
        "models": {"bar": {"file": "bar.xml", "sha256": "cd" * 32}},
        "robots": {
            "bar": {"title": "A <bar>", "assumptions": ["No friction."], "errata": [{"key": "sign", "equation": "(7)"}]}
        },
    }
    return Results(
        efforts=table("efforts", efforts),
        free_motion=table("free_motion", []),
        motion=table("motion", []),
        task=table("task", list(task_rows())),
        task_efforts=table("task_efforts", list(task_effort_rows())),
        summary=table("summary", rows),
        ladder=table("ladder", list(ladder_rows())),
        audit=table("audit", list(audit_rows())),
        points=table("points", list(point_rows())),
        reactions=table("reactions", []),
        connections=table("connections", []),
        run=run,
    )


@pytest.fixture(scope="module")
def folder(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "new"
    write_report(results, path, all_figures=True)
    return path


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page(folder / "report.html")


@pytest.fixture(scope="module")
def markdown(folder: Path) -> str:
    return (folder / "report.md").read_text(encoding="utf-8")


@pytest.mark.extended("test_a_figure_whose_worker_dies_is_lost_alone")
def test_several_workers_write_the_same_bytes(
    results: Results, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "FEW", 0)
    write_report(results, tmp_path, Workers(jobs=2), all_figures=True)
    for name in ("report.html", "report.md"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_figure_whose_worker_dies_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FEW", 0)  # in this process, the task would end the tests without a message
    inside = Section(title="", anchor="", blocks=[Task(list, (["made"],))])
    blocks: list[Block] = ["before", Task(os._exit, (1,)), inside, "after"]
    with worker_pool(Workers(jobs=2), preload=PRELOAD) as pool:
        (part,) = completed([Section(title="", anchor="", blocks=blocks)], pool)
    before, lost, inner, after = part.blocks
    assert (before, after) == ("before", "after")
    assert isinstance(lost, str)
    assert lost.startswith("Not drawn: its process died")
    assert isinstance(inner, Section)
    assert inner.blocks == ["made"]


def test_matrix_shows_the_worst_actuator_of_each_source(page: Page) -> None:
    first = next(k for k, row in enumerate(page.rows) if [text for text, _ in row] == ["source", "vertical"])
    matrix = {row[0][0]: row[1] for row in page.rows[first + 1 : first + 8] if len(row) == 2}
    assert matrix["a/kkt"] == ("disagree 2.5e-01", "disagree")
    assert matrix["a/forward"] == ("agree 5.3e-10", "agree")
    assert matrix["a/default"] == ("unusable 1.0e+03", "informational")
    assert matrix["b/kkt"] == ("not run", "not-run")
    assert matrix["b/forward"] == ("not comparable", "not-comparable")
    assert matrix[REFERENCE] == ("reference", "reference")


def test_the_headline_is_in_plain_words(tmp_path: Path) -> None:
    """A sentence, then the unmodified simulation, agreement and disagreement, the same on the page and in Markdown."""
    rows = [
        summary_row(REFERENCE, "reference"),
        summary_row("x/kkt", "agree", 3e-15),
        summary_row("y/kkt", "disagree", 2e-4),
        summary_row("mujoco/as_is", "informational", 0.214, tolerance=np.nan),
    ]
    results = only("summary", rows)
    write_report(results, tmp_path)
    page, markdown = Page(tmp_path / "report.html"), (tmp_path / "report.md").read_text(encoding="utf-8")
    first, *more = [in_plain_words(results), *map(str, closing_lines(results))]
    assert first.startswith("Simulated as it is, MuJoCo is 21 % off at")
    assert more[0].startswith("Unmodified simulation: mujoco/as_is is off by 21 %")
    assert f"<p>{first}</p>" in html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    for line in (first, *more):
        assert line in page.text
        assert line in markdown
    assert "Agreement: 1 of 2 comparisons" in more[1]


def test_the_headline_counts_no_error_that_is_expected(tmp_path: Path) -> None:
    """A case marked as not comparable by its robot says nothing about a source's agreement elsewhere."""
    rows = [summary_row("x/kkt", "agree", 1e-12), summary_row("x/kkt", "not comparable", 0.5, mode="singular")]
    run = {"robots": {"bar": {"expected": {"singular": "not comparable"}}}}
    write_report(replace(only("summary", rows), run=run), tmp_path)
    text = Page(tmp_path / "report.html").text
    assert "Agreement: 1 of 1 comparisons with the reference agree, largest error 1.0e-12 of the effort scale" in text


def overview(**found: CaseVerdict) -> str:
    """The picture of all sources, each with a finding."""
    svg = figures.overview_figure({source: [finding] for source, finding in found.items()})
    assert svg is not None
    return svg


def test_the_overview_has_a_row_for_every_source(page: Page) -> None:
    (picture,) = [image for image in page.attributes("img") if image["alt"].startswith("largest error of each source")]
    for row in ("a/kkt disagree 0.25", "a/forward agree 5.30e-10", "a/default informational 1000", "b/kkt not run"):
        assert row in picture["alt"]
    svg = overview(
        reference=CaseVerdict("reference", np.nan, np.nan, ""), lost=CaseVerdict("not run", np.nan, 1e-9, "")
    )
    for text in ("reference", "lost", "not run", "within tolerance", "largest relative error [-]"):
        assert f"<!-- {text} -->" in svg  # the letters are paths, with the text beside them


def test_marks_of_the_overview_stand_at_errors_and_tolerances() -> None:
    """An error at the tolerance stands on its line, a thousandfold error as far to the right as on the axis."""
    places = []
    for error in (1e-9, 1e-6, 1e-3):
        svg = overview(x=CaseVerdict("agree", error, 1e-6, ""))
        places.append([*stroke_and_mark(svg)])
    (stroke, low), (same_stroke, same), (_, high) = places
    assert stroke == same_stroke == pytest.approx(same, abs=0.02)
    assert same - low == pytest.approx(high - same, abs=0.02)
    assert high - low > 30


def stroke_and_mark(svg: str) -> Iterator[float]:
    """Places of the tolerance and the error of the only row [pt]."""
    (stroke,) = re.findall(
        r'<path d="M ([\d.]+) [\d.]+ \nL \1 [\d.]+ \n" clip-path="[^"]*" style="[^"]*stroke: #000000', svg
    )
    marks = re.findall(r'<use xlink:href="#[^"]*" x="([\d.]+)" y="[\d.]+" style="fill: #0072b2', svg)
    yield float(stroke)
    yield float(marks[0])  # the other is of the legend


def test_verdicts_differ_in_shape_or_filling() -> None:
    looks = [(mark["marker"], mark.get("markerfacecolor", "")) for mark in figures.VERDICT_MARKS.values()]
    assert len(set(looks)) == len(figures.VERDICT_MARKS)
    assert {verdict for verdict, mark in figures.VERDICT_MARKS.items() if mark.get("markerfacecolor") == "white"} == {
        "as expected",
        "informational",
    }


def test_the_first_divergence_of_each_engine_is_named(page: Page) -> None:
    told = next(row for row in page.rows if len(row) == 5 and row[1][0] == "a")
    assert [text for text, _ in told[2:]] == [
        "agree 1.0e-15 (mass)",
        "agree 3.0e-14 (mass matrix)",
        "default: trajectory, effort of m1 off by 4.0e-01 of its scale",
    ]


def test_a_lost_loop_is_the_first_divergence() -> None:
    static = audit_row("b", "static", "constraint rows", 3.0, "disagree")
    later = audit_row("b", "instantaneous", "mass matrix", 0.2, "disagree")
    assert first_divergence(table("audit", [static, later]).to_dict("records")) == "static: constraint rows of m1"


def test_disagreement_shows_in_ledger_and_in_the_table_of_its_case(page: Page) -> None:
    told = [row for row in page.rows if ("disagree", "disagree") in row]
    assert {row[0][0] for row in told} == {"bar, vertical, mode up", "a/kkt"}
    assert all(HOSTILE in {text for text, _ in row} for row in told)


def test_both_files_state_the_same_counts(results: Results, page: Page, markdown: str) -> None:
    counts = verdict_counts(results)
    assert counts == {
        "agree": 1, "disagree": 1, "not comparable": 1, "not run": 1, "not supported": 0, "as expected": 0,
        "informational": 1,
    }  # fmt: skip
    sentence = "Of 4 judged comparisons with the reference: 1 agree, 1 disagree, 1 not comparable, 1 not run."
    assert sentence in page.text
    assert sentence in markdown
    k = next(k for k, row in enumerate(page.rows) if [text for text, _ in row] == list(counts))
    assert [text for text, _ in page.rows[k + 1]] == [str(n) for n in counts.values()]


def test_text_of_a_note_stays_text(page: Page, folder: Path, markdown: str) -> None:
    pytest.importorskip("plotly")  # for all scripts
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert 'alert("q9")' not in text
    assert text.count("<script") == len(page.attributes("script")) == 5  # efforts, errors, movie, library, ours
    assert "<script" not in markdown
    line = next(line for line in markdown.splitlines() if line.startswith("| a/kkt ") and "lost" in line)
    assert r"&lt;script>" in line
    assert len(re.findall(r"(?<!\\)\|", line)) == 16  # 15 columns


def test_page_loads_nothing(page: Page) -> None:
    sources = [attributes["src"] for _, attributes in page.tags if "src" in attributes]
    links = [attributes["href"] for _, attributes in page.tags if "href" in attributes]
    assert len(sources) == len(page.attributes("img")) > 0
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object"}


def test_figures_have_alternative_text_and_captions(page: Page, markdown: str) -> None:
    images = page.attributes("img")
    assert len(images) == 7  # sources, drawing, task, efforts, errors, task efforts, convergence
    assert [svg["aria-label"] for svg in page.attributes("svg")] == ["bar, mode up, in motion, in the plane of X and Z"]
    assert all(image["alt"] for image in images)
    assert "a/kkt exceeds the axes" not in page.text
    assert "a/default exceeds the axes (up to 2002 N)" in page.text
    assert "a/default exceeds the axes (up to 2002 N)" in markdown


def test_the_answer_leads_to_the_case_that_is_drawn(tmp_path: Path) -> None:
    """The worst case with efforts: neither the first case, nor a lost case, which has none."""
    errors = {"up": 1e-12, "down": 5e-10, "lost": np.nan}
    rows = [summary_row("a/kkt", "agree" if error > 0 else "not run", error, mode=m) for m, error in errors.items()]
    efforts = [
        {**row, "mode": m}
        for m in ("up", "down")
        for source in (REFERENCE, "a/kkt")
        for row in effort_rows(source, 0.1)
    ]
    write_report(replace(only("summary", rows), efforts=table("efforts", efforts)), tmp_path)
    page = Page(tmp_path / "report.html")
    drawn = [image["alt"] for image in page.attributes("img")][1:]
    assert drawn == ["bar, vertical, mode down: effort of m1, m2 over time from analytic/noc, a/kkt"]
    assert re.findall(r'<a href="(.*)">vertical</a>', (tmp_path / "report.html").read_text(encoding="utf-8")) == [
        "#case-2"
    ]
    assert "No efforts." in page.text


@pytest.mark.extended("test_errors_are_relative_to_the_scale_and_limits_to_the_reference")
def test_the_efforts_on_the_task_are_those_of_the_actuators(tmp_path: Path) -> None:
    """Power in is power out, for every source, from the tables of a run alone."""
    cases = cases_of(("2t1r",), configurations=("horizontal",))
    result_tables.write(
        run(cases, source_names=("analytic/paper", "mujoco/inverse"), dt=0.05, workers=Workers(jobs=1)), tmp_path
    )
    read = result_tables.read(tmp_path)
    on_task = read.task_efforts.merge(read.task, on=["t", "coordinate"], suffixes=("", "_x"))
    driven = read.efforts.merge(read.motion, left_on=["t", "actuator"], right_on=["t", "joint"])
    power_out = (on_task["effort"] * on_task["xd"]).groupby([on_task["source"], on_task["t"]]).sum()
    power_in = (driven["effort"] * driven["qd"]).groupby([driven["source"], driven["t"]]).sum()
    assert set(read.task_efforts["source"]) == {REFERENCE, "analytic/paper", "mujoco/inverse"}
    np.testing.assert_allclose(power_out, power_in, atol=1e-10 * np.abs(power_in).max())
    write_report(read, tmp_path, all_figures=True)
    pictures = [image["alt"] for image in Page(tmp_path / "report.html").attributes("img")]
    assert "2t1r, mode home: y, z, θ with rates and accelerations over time" in pictures


def test_sections_tell_of_robot_sources_and_provenance(page: Page, markdown: str) -> None:
    facts = (
        "No friction.",
        "(7)",
        "loopcheck check bar",
        "10 ms",
        "ab" * 32,
        "cd" * 32,
        "3.11.7",
        "why",
        "2026-01-02T03:04:05",
    )
    for fact in facts:
        assert fact in page.text
        assert fact in markdown
    assert "A <bar>" in page.text


def test_grid_convergence_index(page: Page) -> None:
    header = next(row for row in page.rows if ("step [s]", "") in row)
    rungs = [
        dict(zip([h for h, _ in header], [text for text, _ in row], strict=True))
        for row in page.rows
        if len(row) == len(header)
    ]
    index = [rung["grid-convergence index [-]"] for rung in rungs if rung["source"] == "a/forward"]
    assert index == ["–", "–", "1.25e-04"]


def test_two_steps_have_no_order_and_no_grid_convergence_index(results: Results) -> None:
    two = results.ladder.iloc[:2]
    columns, rows = _ladder_table(two)
    shown = [dict(zip(columns, (cell.text for cell in row), strict=True)) for row in rows]
    assert [(row["order [-]"], row["grid-convergence index [-]"]) for row in shown] == [("–", "–")] * 2
    assert [row["change [-]"] for row in shown] == ["–", "0.0012"]
    drawn = [figures.ladder_figure({"case": rungs}, looks_of_sources(results)) for rungs in (two, results.ladder)]
    assert ["order 2" in str(svg) for svg in drawn] == [False, True]


@pytest.mark.extended("test_both_files_state_the_same_counts")
def test_same_tables_same_bytes(results: Results, folder: Path, tmp_path: Path) -> None:
    result_tables.write(results, tmp_path)
    write_report(result_tables.read(tmp_path), tmp_path, all_figures=True)
    for name in ("report.html", "report.md"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_expected_verdicts_do_not_count_and_missed_ones_disagree(results: Results) -> None:
    run = {"robots": {"bar": {"expected": {"up": "not comparable"}}}}
    found = case_verdicts(replace(results, run=run))["bar", "default", "up", "vertical"]
    assert found["b/forward"].verdict == "as expected"
    assert found["a/forward"].verdict == "disagree"
    assert found["a/forward"].note == "expected: not comparable"
    assert found["b/kkt"].verdict == "not run"


def test_reference_that_failed_counts(results: Results) -> None:
    failed = table("summary", [summary_row(REFERENCE, "disagree", note="power imbalance")])
    assert verdict_counts(replace(results, summary=failed))["disagree"] == 1


@pytest.mark.parametrize(
    ("verdicts", "expected", "status"),
    [
        (["agree", "informational"], "", 0),
        (["agree", "disagree", "not run"], "", 1),
        (["agree", "not run"], "", 3),
        (["agree", "not comparable"], "", 3),
        (["informational"], "", 3),
        ([], "", 3),
        (["not comparable", "not comparable"], "not comparable", 0),
        (["not comparable", "agree"], "not comparable", 1),
        (["not run"], "not comparable", 3),
    ],
)
def test_exit_status(results: Results, verdicts: list[str], expected: str, status: int) -> None:
    rows = [summary_row(f"engine/{k}", verdict) for k, verdict in enumerate(verdicts)]
    run = {"robots": {"bar": {"expected": {"up": expected}}}}
    assert exit_status(replace(results, summary=table("summary", rows), run=run)) == status


def only(name: str, rows: Iterable[Row]) -> Results:
    tables_of: dict[str, Any] = {name: table(name, list(rows))}
    return replace(EMPTY, **tables_of)


BARE = {
    "nothing at all": EMPTY,
    "robots without rows": replace(EMPTY, run={"robots": {"bar": None}, "tolerances": {}, "cpu": None}),
    "nothing ran": only("summary", [summary_row(REFERENCE, "not run"), summary_row("a/kkt", "not run", peak=np.nan)]),
    "no note": only("summary", [summary_row("a/kkt", "agree", 1e-12, note=None)]),
    "efforts without reference": replace(
        only("efforts", effort_rows("a/kkt", 0.0)), summary=table("summary", [summary_row("a/kkt", "not comparable")])
    ),
    "efforts on the task alone": only("task_efforts", task_effort_rows()),
    "task without numbers": only("task", [{**row, "xdd": np.nan} for row in task_rows()]),
    "steps without numbers": only("ladder", [{**row, "relative_error": np.nan} for row in ladder_rows()]),
    "points without numbers": only("points", [{**row, "z": np.nan} for row in point_rows()]),
    "one point": only("points", [next(point_rows())]),
}


@pytest.mark.parametrize("bare", BARE.values(), ids=BARE)
def test_a_bare_run_has_a_report(bare: Results, tmp_path: Path) -> None:
    write_report(bare, tmp_path, all_figures=True)
    page = Page(tmp_path / "report.html")
    assert "loopcheck" in page.text
    if not verdict_counts(bare)["agree"]:
        assert "agree with the reference" not in page.text


@pytest.mark.extended("test_exact_zeros_are_drawn_at_the_floor")
def test_strange_efforts_have_a_report(results: Results, tmp_path: Path) -> None:
    efforts = results.efforts.replace({"actuator": {"m1": "_$a$--<b>", "m2": "m₂"}})
    efforts.loc[efforts.index[30], "effort"] = np.inf
    efforts.loc[efforts["t"] == 1.0, "effort"] = 0.0
    repeated = pd.concat([efforts, efforts.iloc[:5]], ignore_index=True)
    write_report(replace(results, efforts=table("efforts", repeated)), tmp_path, all_figures=True)
    write_report(replace(results, efforts=table("efforts", efforts[efforts["t"] == 0.0])), tmp_path, all_figures=True)
    still = results.summary.assign(peak=0.0)
    at_rest = replace(results, summary=still, efforts=results.efforts.assign(effort=0.0))
    write_report(at_rest, tmp_path, all_figures=True)


def test_folder_that_cannot_be_written_is_named(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        write_report(results, tmp_path / "file")


def curves(results: Results) -> figures.Curves:
    found = figures.curves(results.efforts, results.summary)
    assert found is not None
    return found


def test_errors_are_relative_to_the_scale_and_limits_to_the_reference(results: Results) -> None:
    of = curves(results)
    assert of.errors["a/kkt"] == pytest.approx(np.full(11, 0.1))
    wanted = np.sin(3 * of.t) + 1
    low, high = of.limits(0) or (np.nan, np.nan)
    assert (low, high) == pytest.approx((wanted.min() - np.ptp(wanted) / 4, wanted.max() + np.ptp(wanted) / 4))
    assert set(of.beyond) == {"a/default"}


def test_exact_zeros_are_drawn_at_the_floor(results: Results) -> None:
    nothing = np.zeros((11, 2))
    styles = figures.looks([REFERENCE, "a/kkt"], reference=REFERENCE, informational=[])
    drawn = [
        figures.errors_figure(replace(curves(results), efforts={REFERENCE: nothing, "a/kkt": nothing + error}), styles)
        for error in (0.0, 1e-18, 1e-3)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_figures_are_svg_and_tell_all_sources_apart(results: Results) -> None:
    sources = [f"engine/{k}" for k in range(14)]
    styles = figures.looks([REFERENCE, *sources], reference=REFERENCE, informational=["engine/3"])
    looks = {
        (str(look.line["color"]), str(look.line.get("linestyle")), look.line.get("marker")) for look in styles.values()
    }
    assert len(looks) == len(sources) + 1
    of = curves(results)
    svg = figures.efforts_figure(of, figures.looks(list(of.efforts), reference=REFERENCE, informational=["a/default"]))
    assert svg is not None
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "metadata" not in svg


def test_scene_is_seen_in_the_plane_of_the_motion(results: Results) -> None:
    scene = schematic.scene(results.points)
    assert scene is not None
    assert scene.axes == ("X", "Z")
    assert scene.planar
    assert scene.path[-1] == pytest.approx([np.cos(1), np.sin(1)])
    assert schematic.turns(scene)["arm"][-1] == pytest.approx(np.degrees(1))


def test_bodies_are_drawn_by_their_hull() -> None:
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.5], [1.0, 1.0], [0.0, 1.0], [0.0, 1e-12], [0.0, 0.5]])
    assert schematic.corners(square) == pytest.approx(np.array([[0, 0], [1, 0], [1, 1], [0, 1]]))
    assert schematic.corners(square[[0, 2, 3]]) == pytest.approx(np.array([[0, 0], [1, 1]]))
    assert len(schematic.corners(square[[0, 5]])) == 1
    assert schematic.corners(np.full((2, 2), np.nan)).shape == (0, 2)


def test_motion_of_the_actuated_joints_is_drawn_once_for_modes_that_move_alike(
    results: Results, tmp_path: Path
) -> None:
    rows = [
        {"robot": "bar", "variant": "default", "mode": mode, "t": t, "joint": joint, "q": t**2, "qd": 2 * t, "qdd": 2.0}
        for mode in ("up", "down")
        for joint in ("j1", "passive")
        for t in np.linspace(0, 1, 11)
    ]
    run = {**results.run, "robots": {"bar": {"actuated": {"j1": "m"}}}}
    write_report(replace(EMPTY, motion=table("motion", rows), run=run), tmp_path, all_figures=True)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("position, velocity and acceleration of j1 over time") == 1
    figure = figures.motion_figure(table("motion", rows[:22]), {"j1": "m"})
    assert figure is not None
    for label in ("position [m]", "velocity [m/s]", "acceleration [m/s²]", "time [s]"):
        assert f"<!-- {label} -->" in figure  # the letters are paths, with the text beside them
