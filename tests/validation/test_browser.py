"""The report in a real browser: no errors, working links and controls; also printed and without script."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from loopcheck.validation.check.study import run
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.execution.workers import Workers
from tests.conftest import MODELS
from tests.cpu_time import extended_but
from tests.validation.conftest import write_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const behind = (each) => { // the first ancestor that is not transparent
    for (; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (rgba(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const luminance = (colour) => [...rgba(colour)].slice(0, 3)
    .map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const texts = "h1, h2, p, li, td, th, a, summary, figcaption, figure > button, label, output, .badge";
  return Object.fromEntries([...document.querySelectorAll(texts)]
    .map((each) => {
      const [dim, bright] = [getComputedStyle(each).color, behind(each)].map(luminance).sort((a, b) => a - b);
      return [`${each.tagName} ${each.className} ${each.textContent.slice(0, 30)}`, (bright + 0.05) / (dim + 0.05)];
    }));
}"""
"""Contrast of each text with its background, as WCAG 2 defines it."""


@pytest.fixture(scope="module")
def results() -> Results:
    """Of an engine that agrees and an engine with an informational verdict."""
    return run(
        cases_of([MODELS / "four_bar.xml"])[1:],
        source_names=("mujoco/kkt", "mujoco/as_is"),
        dt=0.1,
        workers=Workers(jobs=1),
    )


@pytest.fixture(scope="module")
def report(results: Results, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report."""
    folder = tmp_path_factory.mktemp("report")
    write_report(results, folder)
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser, report: str) -> Iterator[Page]:
    """The report, open; its errors and its requests to a server fail the test."""
    with _opened(chromium, report) as page:
        yield page


@contextmanager
def _opened(chromium: Browser, address: str) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1300, "height": 900})
    complaints = _listen(context)
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()
    assert complaints == []


def _listen(context: BrowserContext) -> list[str]:
    complaints: list[str] = []
    context.on("console", lambda message: complaints.append(message.text))
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on(
        "request", lambda asked: None if asked.url.startswith(("file:", "data:")) else complaints.append(asked.url)
    )
    return complaints


@pytest.mark.extended("test_the_first_screen_answers")
def test_every_link_leads_to_something_that_is_seen(page: Page) -> None:
    links = page.locator("a[href]")
    targets = {str(links.nth(k).get_attribute("href")) for k in range(links.count())}
    assert len(targets) > 5
    for target in targets:
        page.locator(f'a[href="{target}"]').first.click()
        assert page.url.endswith(target)
        expect(page.locator(target)).to_be_in_viewport()


@pytest.mark.evidence("one page in a browser", seconds=1.5)
@pytest.mark.parametrize(("width", "height"), [(1300, 900), (390, 844)])
@pytest.mark.parametrize("script", extended_but([True], [True, False], "test_the_first_screen_answers"))
def test_the_first_screen_answers(chromium: Browser, report: str, width: int, height: int, script: bool) -> None:
    """Headline and first picture are whole on a small screen, all pictures on a large one; no sideways scrolling."""
    page = chromium.new_page(viewport={"width": width, "height": height}, java_script_enabled=script)
    page.goto(report)
    answer = page.locator("#answer")
    headline, pictures = answer.locator("> p").first, answer.locator("> figure")
    expect(headline).to_have_text(re.compile("^Simulated as it is, MuJoCo is [0-9.]+ % off at 'motor'"))
    assert pictures.count() == 3  # the unmodified simulation, all sources, the robot
    for seen in (headline, *(pictures.nth(k) for k in range(3 if width > 1000 else 1))):
        expect(seen).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


@pytest.mark.extended("test_the_first_screen_answers")
def test_pictures_of_the_answer_can_be_read_on_a_telephone(chromium: Browser, report: str) -> None:
    """Their letters of 9 pt, 12 px in the picture's own size, are at least 9 px high, and the picture is not cut."""
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.goto(report)
    for picture in page.locator("#answer > figure:not(.movie) img").all():
        assert picture.evaluate("picture => 12 * picture.clientWidth / picture.naturalWidth") > 9
        assert picture.evaluate("picture => picture.closest('.scroll').scrollWidth") <= 390
    page.close()


@pytest.mark.extended("test_the_first_screen_answers")
def test_what_is_too_wide_shows_where_it_goes_on(chromium: Browser, report: str) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.goto(report)
    narrow, wide = page.locator("#answer table").first, page.locator("#ledger-rows table, #cases figure img").first
    outer = wide.locator("xpath=ancestor::div[contains(@class, 'wide')]")
    wide.scroll_into_view_if_needed()
    expect(outer).to_have_class("wide right scrolls")
    hint = "element => getComputedStyle(element.querySelector('.scroll'), '::before').display"
    assert outer.evaluate(hint) == "block"
    outer.locator("> .scroll").evaluate("scroll => scroll.scrollTo(1e4, 0)")
    expect(outer).to_have_class("wide scrolls left")
    expect(narrow.locator("xpath=ancestor::div[contains(@class, 'wide')]")).to_have_class("wide")
    page.close()


@pytest.mark.extended("test_the_first_screen_answers")
def test_contents_stand_at_the_side_or_are_folded(chromium: Browser, report: str) -> None:
    page = chromium.new_page(viewport={"width": 1300, "height": 900})
    page.goto(report)
    link, summary = page.get_by_role("link", name="Verdicts"), page.locator("nav summary")
    expect(link).to_be_visible()
    expect(summary).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(link).to_be_hidden()
    summary.click()
    expect(link).to_be_visible()
    page.close()


@pytest.mark.extended("test_the_first_screen_answers")
def test_a_figure_becomes_a_chart_and_back_by_keyboard(page: Page) -> None:
    figure = page.locator("figure:has(> script.chart)").first
    button, still, chart = (
        figure.locator("> button"),
        figure.locator(".scroll > img"),
        figure.locator(".js-plotly-plot"),
    )
    button.focus()
    page.keyboard.press("Enter")
    expect(chart).to_be_visible()
    expect(still).to_be_hidden()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert chart.locator(".main-svg").first.bounding_box()["width"] > 800  # type: ignore[index]
    lines = chart.locator(".scatterlayer .trace")
    expect(lines).to_have_count(3)
    box = figure.get_by_role("checkbox", name="mujoco/as_is")
    box.focus()
    page.keyboard.press("Space")
    expect(lines).to_have_count(2)
    page.keyboard.press("Space")
    expect(lines).to_have_count(3)
    button.click()
    expect(chart).to_be_hidden()
    expect(still).to_be_visible()


@pytest.mark.extended("test_the_first_screen_answers")
def test_a_chart_zooms_and_tells_numbers(page: Page) -> None:
    figure = page.locator("figure:has(> script.chart)").first
    figure.locator("> button").click()
    plot = figure.locator(".nsewdrag").first
    plot.scroll_into_view_if_needed()
    place = plot.bounding_box()
    assert place is not None
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    page.mouse.move(x, y)
    page.mouse.move(x + 1, y)
    numbers = figure.locator(".hoverlayer")
    for source in ("analytic/noc", "mujoco/kkt", "mujoco/as_is"):
        expect(numbers).to_contain_text(re.compile(rf"{source} : −?\d"))
    seen = "chart => chart.layout.xaxis.range[1] - chart.layout.xaxis.range[0]"
    chart = figure.locator(".js-plotly-plot")
    before = chart.evaluate(seen)
    page.mouse.down()
    page.mouse.move(x + place["width"] / 4, y, steps=5)
    page.mouse.up()
    page.wait_for_function(f"before => ({seen})(document.querySelector('.js-plotly-plot')) < 0.5 * before", arg=before)


@pytest.mark.extended("test_the_first_screen_answers")
def test_the_robot_moves_when_asked_to(page: Page) -> None:
    movie = page.locator("figure.movie").first
    button, slider, time = movie.get_by_role("button"), movie.get_by_label("time"), movie.locator("output")
    pose = "movie => [...movie.querySelectorAll('polygon')].map(each => each.getAttribute('points')).join()"
    first = movie.evaluate(pose)
    expect(time).to_have_text("t = 0.00 s")
    button.click()
    expect(button).to_have_text("Pause")
    expect(time).not_to_have_text("t = 0.00 s")
    button.click()
    expect(button).to_have_text("Play")
    assert movie.evaluate(pose) != first
    slider.focus()
    page.keyboard.press("Home")
    assert movie.evaluate(pose) == first
    page.keyboard.press("ArrowRight")
    expect(time).to_have_text("t = 0.10 s")
    assert movie.evaluate(pose) != first


@pytest.mark.extended("test_the_first_screen_answers")
def test_paper_shows_the_still_figures_and_what_is_folded(page: Page) -> None:
    page.locator("figure:has(> script.chart) > button").first.click()
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    page.emulate_media(media="print")
    for picture in page.locator("img, figure.movie > svg").all():
        expect(picture).to_be_visible()
    for gone in page.locator("figure button, .js-plotly-plot, figure.movie input, nav").all():
        expect(gone).to_be_hidden()
    for table in page.locator("table").all():
        expect(table).to_be_visible()


@pytest.mark.extended("test_the_first_screen_answers")
def test_without_script_figures_and_tables_are_there(chromium: Browser, report: str) -> None:
    page = chromium.new_page(java_script_enabled=False)
    page.goto(report)
    assert page.locator("img").count() == 3  # the unmodified simulation, all sources, efforts
    assert page.locator("figure button, .js-plotly-plot").count() == 0
    expect(page.locator("figure.movie > svg")).to_be_visible()
    for each in page.locator("img, section > .wide > .scroll > table").all():
        if each.evaluate("each => !each.closest('details:not([open])')"):
            expect(each).to_be_visible()
    page.close()


@pytest.mark.extended("test_the_first_screen_answers")
def test_all_text_can_be_read_in_light_and_dark(page: Page) -> None:
    page.locator("figure:has(> script.chart) > button").first.click()
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    paper = "getComputedStyle(document.body).backgroundColor"
    papers = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        papers.add(page.evaluate(paper))
        contrasts: dict[str, float] = page.evaluate(CONTRAST)
        assert {text: contrast for text, contrast in contrasts.items() if contrast < 4.5} == {}
    assert len(papers) == 2
