"""The site in a real browser, as wide as a phone and a desktop: it fits, loads no foreign content, can be searched."""

import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

pytest.importorskip("itables")

from docs.transmission_tables import FILE
from tests.docs.collections import write_atlas
from tests.site_links import broken_links, foreign_resources
from tests.validation.test_browser import CHROMIUM, CONTRAST

ROOT = Path(__file__).parent.parent.parent
CONF = """
extensions = ["myst_parser", "docs.site.extension"]
root_doc, project, html_title = "README", "loopcheck", "loopcheck"
include_patterns = ["README.md", "docs/pages/**.md", "robots/transmissions/README.md"]
html_theme = "furo"
"""
LINKED = ("docs/pages/atlas", "docs/pages/gallery", "docs/pages/engines", "docs/pages/transmissions")
SOURCES = "robots/transmissions/README"
FRONT = "\n".join(["# Front", "", "```{toctree}", *LINKED, SOURCES, "```", ""])
ANKLE = "unitree_g1_ankle_left"
PAGES: tuple[str, ...] = ("atlas", "gallery", "engines", "transmissions", f"transmissions/{ANKLE}")
PAGES += ("robots/leg", "robots/leg-copy", "robots/hand", "engines/mujoco")
PHONE, DESK = 390, 1400
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small atlas as a site, built without a warning."""
    root, folder = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("site")
    write_atlas(root)
    (root / "conf.py").write_text(CONF, encoding="utf-8")
    (root / "README.md").write_text(FRONT, encoding="utf-8")
    (root / SOURCES).parent.mkdir(parents=True)
    (root / f"{SOURCES}.md").write_text("# Sources\n", encoding="utf-8")
    figures = pd.read_csv(FILE)
    (root / "docs" / "transmissions").mkdir()
    figures[figures["transmission"] == ANKLE].to_csv(root / FILE.relative_to(ROOT), index=False)
    command = [sys.executable, "-m", "sphinx", "-q", "--fail-on-warning", "--keep-going", str(root), str(folder)]
    made = run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[PHONE, DESK])
def page(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of a given width; its errors and its requests to a server fail the test."""
    context = chromium.new_context(viewport={"width": request.param, "height": 844})
    complaints: list[str] = []
    context.on("console", lambda message: complaints.append(message.text))
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on(
        "request",
        lambda asked: None if asked.url.startswith(("file:", "data:", "blob:")) else complaints.append(asked.url),
    )
    yield context.new_page()
    context.close()
    assert complaints == []


def test_links_lead_somewhere_and_nothing_comes_from_elsewhere(site: Path) -> None:
    assert len(list(site.rglob("*.html"))) > len(PAGES)
    assert [*broken_links(site), *foreign_resources(site)] == []


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<p id="there">', encoding="utf-8")
    links = ("other.html#there", "other.html#gone", "gone.html", "https://example.org/gone", "#gone")
    text = "".join(f'<a href="{link}">x</a>' for link in links)
    (tmp_path / "page.html").write_text(f'{text}<img alt="" src="https://example.org/x.png">', encoding="utf-8")
    assert sorted(broken_links(tmp_path)) == [
        f"page.html: {link}" for link in ("#gone", "gone.html", "other.html#gone")
    ]
    assert list(foreign_resources(tmp_path)) == ["page.html: https://example.org/x.png"]


@in_a_browser
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(PHONE, marks=pytest.mark.evidence("pages of the site in a browser", seconds=4)),
        pytest.param(DESK, marks=pytest.mark.extended("test_every_page_fits_its_screen[390]")),
    ],
    indirect=True,
)
def test_every_page_fits_its_screen(page: Page, site: Path) -> None:
    assert page.viewport_size is not None
    for name in PAGES:
        page.goto((site / "docs" / "pages" / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"], name
        wider = "[...document.querySelectorAll('.content')].filter(each => each.scrollWidth > each.clientWidth).length"
        assert page.evaluate(wider) == 0, name
        for picture in page.locator("img").all():
            assert picture.evaluate("each => each.complete && each.naturalWidth > 0"), name
            assert picture.get_attribute("alt"), name


@pytest.mark.extended("test_every_page_fits_its_screen")
@in_a_browser
def test_the_table_of_robots_is_searched_sorted_and_filtered(page: Page, site: Path) -> None:
    page.goto((site / "docs" / "pages" / "atlas.html").as_uri())
    rows = page.locator("table.searchable tbody tr")
    names = rows.locator("td:first-child")
    expect(names).to_have_text(["arm", "foot", "leg", "leg-copy", "hand"])  # 12, 2.5 and 0.31 %, then those without
    page.get_by_label("Search:").fill("copy")
    expect(rows).to_have_count(1)
    page.get_by_label("Search:").fill("")
    expect(rows).to_have_count(5)
    page.locator("th", has_text="Licence").locator(".dtcc-button").click()
    page.locator(".dtcc-list-buttons button", has_text="not stated").click()
    expect(names).to_have_text(["hand"])
    rows.get_by_role("link").click()
    assert page.url.endswith("/robots/hand.html")


@pytest.mark.extended("test_every_page_fits_its_screen")
@in_a_browser
def test_what_foreign_tables_hold_is_text(page: Page, site: Path) -> None:
    for name, place in (("robots/hand", "dd"), ("robots/leg", "tr.note"), ("engines/mujoco", "td.note")):
        page.goto((site / "docs" / "pages" / f"{name}.html").as_uri())
        note = page.locator(place, has_text="document.title").first
        assert "<script>document.title = 'taken'</script> ~~~ # {raw} `html` **x** {{ 1 + 1 }}" in str(
            note.text_content()
        )
        assert "taken" not in page.title()
        assert page.locator("h1").count() == 1


@pytest.mark.extended("test_every_page_fits_its_screen")
@in_a_browser
def test_text_can_be_read_in_light_and_dark(page: Page, site: Path) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.goto((site / "docs" / "pages" / "robots" / "leg.html").as_uri())
        contrasts: dict[str, float] = page.locator("article").evaluate(CONTRAST)
        assert len(contrasts) > 10
        assert {text: contrast for text, contrast in contrasts.items() if contrast < 4.5} == {}
        marks = page.locator("article .verdict").evaluate_all("each => each.map(one => getComputedStyle(one).color)")
        assert len(set(marks)) == 4  # agree, disagree, not comparable, informational


@pytest.mark.extended("test_every_page_fits_its_screen")
@in_a_browser
def test_without_script_the_table_is_whole(chromium: Browser, site: Path) -> None:
    page = chromium.new_page(java_script_enabled=False)
    page.goto((site / "docs" / "pages" / "atlas.html").as_uri())
    expect(page.locator("table.searchable tbody tr")).to_have_count(5)
    page.close()
