"""make slides: what begins a slide, what fits on one, and a browser that asks for nothing outside of the folder."""

import json
import os
import re
import shutil
import struct
from base64 import b64encode
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from test_site import Page

from quack_lite import site, slides

ROOT = Path(__file__).parents[1]
CI = os.environ.get("CI") == "true"
LESSONS = [ROOT / "notebooks" / name for name in ("00_start_here.ipynb", "05_bytes_in_flight.ipynb")]
needs_reveal = pytest.mark.skipif(not CI and slides.reveal() is None, reason="no reveal.js here: make .venv/slides")
NEXT = """
const slide = Reveal.getCurrentSlide();
const images = [...slide.querySelectorAll('img')].map(one => one.getBoundingClientRect().width / one.naturalWidth);
const said = slide.innerText.slice(0, 60), size = [slide.scrollWidth, slide.scrollHeight];
Reveal.next();
return [size, images, said];
"""


def picture(height, width=700):
    """A cell that shows a picture of this many pixels; only its first bytes are looked at."""
    png = b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)).decode()
    data = {"image/png": png, "text/plain": "Bars.", site.WIDGET: {"model_id": "1"}}
    return new_code_cell("draw()", outputs=[new_output("display_data", data)])


def kinds(*cells):
    """The sources of each slide of a notebook, "!" before those of one that a heading begins."""
    made = slides.pages(slides.blocks(new_notebook(cells=list(cells))))
    slides.arrange(made)
    begins = ["!" if page[0].cell.metadata.slideshow.slide_type == "slide" else "" for page in made]
    return [mark + "|".join(part.cell.source or "=" for part in page) for mark, page in zip(begins, made, strict=True)]


def test_a_heading_begins_a_slide_and_so_does_a_text_with_code_behind_it():
    text = new_markdown_cell
    assert kinds(text("# A"), text("One:"), new_code_cell("1"), text("So.\n\n## B\n\nTwo."), new_code_cell("2")) == [
        "!# A",
        "One:|1|So.",
        "!## B\n\nTwo.|2",
    ]


def test_what_is_too_much_for_one_goes_on_to_the_next_and_code_goes_with_its_picture():
    long = "\n".join(f"x{n} = {n}" for n in range(12))
    assert kinds(new_markdown_cell("Text."), new_code_cell(long), picture(400)) == [f"!Text.|{long}", "draw()|="]


def sizes(*cells):
    arranged = slides.arrange(slides.pages(slides.blocks(new_notebook(cells=list(cells)))))
    return [output.metadata["image/png"] for cell in arranged for output in cell.get("outputs", [])], arranged


def test_a_picture_takes_the_room_that_is_left_and_is_described():
    assert sizes(picture(200))[0] == [{"alt": "Bars.", "width": 1050, "height": 300}]
    (tall,), _ = sizes(picture(500))
    assert 500 < tall["height"] < slides.HEIGHT


def test_what_is_too_tall_is_smaller_and_what_would_be_illegible_scrolls():
    (large,), arranged = sizes(picture(800))
    assert large["height"] == slides.LEAST * 800 and slides.SMALLEST < arranged[-1].metadata["fit"] < 1
    (huge,), arranged = sizes(picture(2000))
    assert huge["height"] == 2000 and "fit" not in arranged[-1].metadata
    _, arranged = sizes(new_code_cell("\n".join("1" * 60)))
    assert arranged[0].metadata["fit"] == slides.SMALLEST


def test_a_link_into_the_repository_keeps_its_words_and_one_to_elsewhere_stays():
    (part,) = slides.blocks(new_notebook(cells=[new_markdown_cell("[a](../work/a.ipynb) [b](https://b.org/x)")]))
    assert part.cell.source == "a [b](https://b.org/x)"


def test_without_reveal_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(slides, "reveal", lambda: None)
    assert slides.main([]) == 2
    assert "requirements-slides.txt" in capsys.readouterr().err


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "slides"
    slides.build(folder, slides.reveal(), LESSONS)
    return folder


@needs_reveal
def test_every_lesson_has_its_slides_and_they_load_what_is_in_the_folder(built):
    pages = {path.name: Page(path.read_text()) for path in built.glob("*.html")}
    assert set(pages) == {"index.html", *(path.with_suffix(".html").name for path in LESSONS)}
    assert set(pages["index.html"].links) == set(pages) - {"index.html"}
    loaded = {address for page in pages.values() for address in page.loads if not address.startswith("data:")}
    assert "reveal/dist/reveal.js" in loaded
    assert all((built / address).is_file() for address in loaded)
    styles = "".join(path.read_text() for path in built.rglob("*.css"))
    assert all(address.startswith("data:") for address in re.findall(r"url\(['\"]?([^)]+)", styles))


def requests(driver):
    """The addresses that the browser has asked for since the last call."""
    said = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [event["params"]["request"]["url"] for event in said if event["method"] == "Network.requestWillBeSent"]


@needs_reveal
def test_a_browser_asks_for_nothing_else_and_every_slide_fits(built):
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing and not CI:
        pytest.skip(f"not found: {', '.join(missing)}")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1280,863"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        for lesson in LESSONS:
            driver.get((built / lesson.with_suffix(".html").name).as_uri())
            count = driver.execute_script("return Reveal.getTotalSlides()")
            assert count > 20
            looked = [driver.execute_script(NEXT) for _ in range(count)]
            assert not [(size, said) for size, _, said in looked if size[0] > 1281 or size[1] > 721]
            assert all(share > 0.88 for _, images, _ in looked for share in images)
            asked = requests(driver)
            assert f"{built.as_uri()}/reveal/dist/reveal.js" in asked
            assert [address for address in asked if not address.startswith((built.as_uri(), "data:"))] == []
        if folder := os.environ.get("SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            driver.execute_script("Reveal.slide(2)")
            driver.save_screenshot(f"{folder}/slides.png")
    finally:
        driver.quit()
