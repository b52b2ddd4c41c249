"""The report in headless Chromium: it loads, sorts, shows, highlights, stays quick."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from factories import training_chain

from lpsched import SolveParams, compare
from lpsched.core.graph import Graph, Link
from lpsched.report import Case, render
from lpsched.solve import Comparison, pareto_front

pytestmark = pytest.mark.browser

METHODS = ("pipedream", "optimal")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--window-size=1300,1400",
)

EVERY_BAR = "return document.querySelectorAll('.barlayer .point').length === 5000"


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    from selenium import webdriver  # noqa: PLC0415 - an extra of its own
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(which("chromedriver")))
    yield driver
    driver.quit()


def case(graph: Graph, methods: tuple[str, ...] = METHODS) -> Case:
    params = SolveParams(objective=("period",), time_limit=5)
    front = pareto_front(training_chain(3), ("period", "communication"), params)
    return Case(
        graph=graph, rows=compare(graph, methods=methods, params=params), front=front
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three layers on two devices, transfers of 1 tick."""
    path = tmp_path_factory.mktemp("page") / "small.html"
    path.write_text(render([case(training_chain(3, link=Link(latency=1)))]))
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """42 layers, 125 ops, 40 iterations: 5,000 bars."""
    path = tmp_path_factory.mktemp("page") / "large.html"
    graph = training_chain(42, devices=8)
    path.write_text(render([case(graph, ("pipedream",))], iterations=40))
    return path


def opened(driver: Any, path: Path) -> Any:  # noqa: ANN401 - selenium has no types
    """Load a page and wait until every open chart is drawn."""
    from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415

    driver.get(path.as_uri())
    drawn = (
        "return [...document.querySelectorAll('details.method[open] .chart')]"
        ".every((node) => node.querySelector('.barlayer .point') !== null)"
    )
    for chart in found(driver, "details.method[open] .chart"):
        driver.execute_script("arguments[0].scrollIntoView()", chart)
    WebDriverWait(driver, 60).until(lambda d: d.execute_script(drawn))
    assert [e for e in driver.get_log("browser") if e["level"] == "SEVERE"] == []
    return driver


def found(driver: Any, selector: str) -> list[Any]:  # noqa: ANN401
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    elements: list[Any] = driver.find_elements(By.CSS_SELECTOR, selector)
    return elements


def press(driver: Any, element: Any) -> None:  # noqa: ANN401
    """Bring an element to the middle of the window and press it."""
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def settled(driver: Any, script: str) -> Any:  # noqa: ANN401
    """Wait until a script returns something true; return that."""
    from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415

    return WebDriverWait(driver, 30).until(lambda d: d.execute_script(script))


def shapes(driver: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Rectangles over the bars of the first chart, without the veil."""
    every: list[dict[str, Any]] = driver.execute_script(
        "return lpsched.charts[0].node.layout.shapes"
    )
    return [s for s in every if s["type"] == "rect" and s["xref"] == "x"]


def test_the_page_loads_without_errors_and_draws_its_charts(
    driver: Any,  # noqa: ANN401
    small: Path,
) -> None:
    page = opened(driver, small)
    assert "chain3 on 2 devices" in page.title
    assert len(found(page, ".chart .barlayer")) == 2
    assert len(found(page, ".front .point")) >= 2
    requests = page.execute_script(
        "return performance.getEntriesByType('resource').map((r) => r.name)"
    )
    assert [name for name in requests if not name.startswith(("data:", "blob:"))] == []


def test_no_column_of_the_table_is_hidden_and_nothing_lies_on_a_name(
    driver: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    """Figures as long as a real network's; the window is 1300 pixels wide."""
    big = case(training_chain(3, devices=8))
    rows = [
        dataclasses.replace(
            row,
            method="least-communication@pipedream",
            objective=dict.fromkeys(row.objective, 10**10),
        )
        for row in big.rows
    ]
    wide = Comparison([*big.rows, *rows], baseline="pipedream")
    path = tmp_path / "wide.html"
    path.write_text(render([dataclasses.replace(big, rows=wide)]))
    page = opened(driver, path)
    hidden = (
        "const table = document.querySelector('.wide');"
        "return table.scrollWidth - table.clientWidth"
    )
    assert page.execute_script(hidden) <= 0
    room = (
        "const chart = document.querySelector('details.method[open] .chart');"
        "const box = (node) => node.getBoundingClientRect();"
        "const names = [...chart.querySelectorAll('.annotation-text')].map(box);"
        "return [names.length, Math.min(...names.map((name) => name.top)) -"
        " box(chart.querySelector('.modebar')).bottom]"
    )
    count, pixels = page.execute_script(room)
    assert count == 3
    assert pixels >= 0


def test_the_table_sorts_by_numbers_both_ways(driver: Any, small: Path) -> None:  # noqa: ANN401
    page = opened(driver, small)
    heads = found(page, "table.sortable th button")
    (period,) = (i for i, head in enumerate(heads) if head.text.startswith("period"))

    def column() -> list[int]:
        cells = found(page, f"table.sortable tbody td:nth-child({period + 1})")
        return [int(cell.text.replace(",", "")) for cell in cells]

    before = column()
    for _ in range(2):
        press(page, heads[period])
        before = sorted(before, reverse=_ == 1)
        assert column() == before
    assert column() == sorted(column(), reverse=True)
    assert len(set(column())) > 1
    sides = [h.get_attribute("aria-sort") for h in found(page, "table.sortable th")]
    assert sides[period] == "descending"
    assert set(sides) == {"descending", None}


def test_the_pointer_shows_what_an_op_waits_for(driver: Any, small: Path) -> None:  # noqa: ANN401
    from selenium.webdriver import ActionChains  # noqa: PLC0415

    page = opened(driver, small)
    bar = found(page, ".chart .barlayer .point path")[0]
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", bar)
    ActionChains(page).move_to_element(bar).move_by_offset(2, 2).perform()
    shown = settled(
        page, "return document.querySelector('.chart .hoverlayer')?.textContent"
    )
    assert re.search(r"layer \d, device d\diteration \d+, lap \d", shown)
    for words in ("start", "duration 2 tick", "may move", "waits for"):
        assert words in shown


def test_a_press_makes_an_op_its_operands_and_its_users_stand_out(
    driver: Any,  # noqa: ANN401
    small: Path,
) -> None:
    """W2 of iteration n uses a1 and a2, g3 and its weights; F2, I2 and W2 use it."""
    page = opened(driver, small)
    page.execute_script(
        "const {run} = window.chart = lpsched.charts[0];"
        "const op = run.ops.find((op) => op.id === 'W2');"
        "chart.choose(run.bar(op, Math.floor(run.iterations / 2)))"
    )
    settled(page, "return chart.node.layout.shapes.some((s) => s.type === 'rect')")
    (sentence,) = (p.text for p in found(page, ".chosen") if p.text)
    assert sentence.startswith("W2, iteration ")
    used, users = re.findall(r"It uses (.*) \(dashed\); (.*) \(dotted\)", sentence)[0]
    assert {text.split()[0] for text in used.split(", ")} == {"F1", "F2", "I3", "W2"}
    assert {text.split()[0] for text in users.split(", ")} <= {"F2", "I2", "W2"}
    dashes = [shape["line"]["dash"] for shape in shapes(page)]
    assert dashes.count("solid") == 1
    assert dashes.count("dash") >= 4


def test_keys_go_from_op_to_op_and_escape_clears(driver: Any, small: Path) -> None:  # noqa: ANN401
    from selenium.webdriver import Keys  # noqa: PLC0415

    page = opened(driver, small)
    chart = found(page, "details.method[open] .chart")[0]
    page.execute_script("arguments[0].focus()", chart)
    told = []
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ESCAPE):
        page.switch_to.active_element.send_keys(key)
        told.append(found(page, ".chosen")[0].text)
    assert told[0] != told[1]
    assert "on d0" in told[1]
    assert "on d1" in told[2]
    assert told[3] == ""
    assert shapes(page) == []


def test_the_critical_cycle_and_the_transfers_appear_on_demand(
    driver: Any,  # noqa: ANN401
    small: Path,
) -> None:
    page = opened(driver, small)
    arrows = "lpsched.charts[0].node.layout.shapes.filter((s) => s.type === 'path')"
    assert page.execute_script(f"return {arrows}.length") == 0
    for name in ("cycle", "transfers"):
        box = found(page, f"details.method[open] input[name={name}]")[0]
        press(page, box)
        settled(page, f"return {arrows}.length > 0")
        assert bool(shapes(page)) == (name == "cycle")
        press(page, box)
        settled(page, f"return {arrows}.length === 0")


def test_buttons_show_the_parts_of_the_run(driver: Any, small: Path) -> None:  # noqa: ANN401
    page = opened(driver, small)
    buttons = found(page, "details.method[open] .views")[0].find_elements(
        "css selector", "button"
    )
    names = [button.text for button in buttons]
    assert names == ["whole run", "prologue", "kernel", "epilogue", "one period"]
    ranges = []
    for button in buttons:
        press(page, button)
        range_of = "return lpsched.charts[0].node.layout.xaxis.range"
        ranges.append([float(x) for x in page.execute_script(range_of)])
    whole, prologue, kernel, epilogue, period = ranges
    assert prologue == [whole[0], kernel[0]]
    assert epilogue == [kernel[1], whole[1]]
    assert (kernel[1] - kernel[0]) == 4 * (period[1] - period[0])


def test_in_the_dark_the_ground_is_dark_and_on_paper_it_is_light(
    driver: Any,  # noqa: ANN401
    small: Path,
) -> None:
    page = opened(driver, small)
    ground = "return lpsched.charts[0].node.layout.paper_bgcolor"
    assert page.execute_script(ground) == "#ffffff"
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [dark]})
    settled(page, f"{ground} !== '#ffffff'")
    page.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert page.execute_script(ground) == "#ffffff"
    page.execute_script("dispatchEvent(new Event('afterprint'))")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_of_five_thousand_bars_only_those_in_view_are_drawn(
    driver: Any,  # noqa: ANN401
    large: Path,
) -> None:
    page = opened(driver, large)
    count = "return lpsched.charts[0].run.bars.length"
    assert page.execute_script(count) == 5_000
    drawn = len(found(page, ".chart .barlayer .point"))
    assert 0 < drawn < 1_500
    (whole, *_) = found(page, ".views button")
    press(page, whole)
    assert settled(page, EVERY_BAR)


def test_highlighting_among_five_thousand_bars_does_not_draw_them_again(
    driver: Any,  # noqa: ANN401
    large: Path,
) -> None:
    page = opened(driver, large)
    press(page, found(page, ".views button")[0])
    settled(page, EVERY_BAR)
    page.execute_script(
        "document.querySelector('.barlayer .point').dataset.mark = 'old';"
        "const {run} = lpsched.charts[0]; lpsched.charts[0].choose(run.bars[2500])"
    )
    settled(page, "return lpsched.charts[0].node.layout.shapes.length > 3")
    assert len(found(page, ".barlayer .point[data-mark=old]")) == 1
    assert shapes(page)
