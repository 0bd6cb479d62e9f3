"""A real browser on a copy of the course: `make lab`, lessons run from top to bottom, widgets that answer, an exercise.

Needs chromium and chromedriver; in CI they must be there. Screenshots go to the folder that SCREENSHOTS names.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from quack_lite import machine
from quack_lite.grading import progress

ROOT = Path(__file__).parents[1]
CI = os.environ.get("CI") == "true"
LIMIT = 100  # seconds for each wait
NOT_COPIED = shutil.ignore_patterns(".*", "build", "work", "__pycache__", "*.egg-info")
PLACES = ("compiler", "gpu", "hopper")
PROGRAMS = ("chromium", "chromedriver", "make")
LESSONS = ("00_start_here", "08_warp_reduction")

MODEL = "return jupyterapp.shell.currentWidget?.content?.model?.toJSON?.() ?? null"
KERNEL = "return jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status ?? null"
# Of the cell that is scrolled to: JupyterLab takes cells that are out of sight out of the page.
SCROLL = """
const notebook = jupyterapp.shell.currentWidget.content;
notebook.activeCellIndex = arguments[0];
notebook.scrollToItem(arguments[0]).catch(() => {});
"""
IN_CELL = """
const cell = jupyterapp.shell.currentWidget.content.widgets[arguments[0]];
return [...cell.node.querySelectorAll(arguments[1])];
"""
SOURCES = """
const cell = jupyterapp.shell.currentWidget.content.widgets[arguments[0]];
return [...cell.node.querySelectorAll('.jp-OutputArea-output img')].map(image => image.src);
"""
WIDTHS = """
const images = [...jupyterapp.shell.currentWidget.node.querySelectorAll('.jp-OutputArea-output img')];
images.forEach(image => image.scrollIntoView());
return images.map(image => image.naturalWidth);
"""
# Of the notebook in front: JupyterLab opens again what was open before, another lesson with its pictures.
PICTURES = """
const images = [...jupyterapp.shell.currentWidget.node.querySelectorAll('.jp-OutputArea-output img')];
return images.map(image => image.src);
"""
PROGRAM = """
import numpy as np
from quack_lite import draw, simt

def neighbours(b, x, y):
    v = b.ld_global(x, b.tid)
    b.st_global(y, b.tid, v + b.shfl_bfly(v, 1))
"""
STEPS = "draw.step_through(neighbours, np.arange(32.0, dtype=np.float32), simt.empty(32, 'float32'), grid=1, block=32)"
WIDGETS = [PROGRAM, "draw.explore_plan()", "draw.explore_layout()", STEPS]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of the course whose lessons here have no outputs yet: what is seen later was made in the browser."""
    if not list((ROOT / "notebooks").glob("*.ipynb")):
        pytest.skip("there is no lesson yet")
    copy = tmp_path_factory.mktemp("browser") / "course"
    shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
    for name in LESSONS:
        path = copy / "notebooks" / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, path)
    return copy


@pytest.fixture(scope="module")
def address(course):
    """The address that `make lab ARGS=--no-browser` prints."""
    log = course.parent / "lab.log"
    arguments = f"--no-browser --port={free_port()} --LabApp.expose_app_in_browser=True"
    command = ["make", f"PYTHON={sys.executable}", "lab", f"ARGS={arguments}"]
    with log.open("w") as out:
        server = subprocess.Popen(command, cwd=course, stdout=out, stderr=out, start_new_session=True)
    try:
        yield wait_for(lambda: printed_address(log), f"no address of JupyterLab in {log}")
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.fixture(scope="module")
def screenshots(course):
    """The folder that SCREENSHOTS names, or one beside the copy of the course."""
    folder = Path(os.environ.get("SCREENSHOTS") or course.parent / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def browser(screenshots, request):
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing and not CI:
        pytest.skip(f"not found: {', '.join(missing)} (Debian: apt-get install chromium chromium-driver make)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    # Chromium's sandbox does not work for root, nor /dev/shm in small containers.
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1400,1600"):
        options.add_argument(f"--{argument}")
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options, service)
    before = request.session.testsfailed
    yield driver
    if request.session.testsfailed > before:
        driver.save_screenshot(str(screenshots / f"failed_{request.node.name}.png"))
    driver.quit()


@pytest.fixture
def open_page(browser, address):
    """open_page(path) brings a notebook of the course to the front; its kernel has started."""

    def show(path):
        browser.get(re.sub(r"/lab/tree/[^?]+", f"/lab/tree/{path}", address) + "&reset")
        wait_for(lambda: browser.execute_script("return window.jupyterapp !== undefined"), "JupyterLab did not start")
        wait_for(lambda: browser.execute_script(MODEL), f"{path} did not open")
        wait_for(lambda: browser.execute_script(KERNEL) == "idle", "no kernel started")
        return browser

    return show


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def printed_address(log):
    match = re.search(r"http://127\.0\.0\.1:\d+/lab/tree/notebooks/\S+\?token=\w+", log.read_text())
    return match and match[0]


def wait_for(look, complaint):
    """The first true answer of look(); fails with the complaint after LIMIT seconds."""
    end = time.monotonic() + LIMIT
    while not (answer := look()):
        if time.monotonic() > end:
            pytest.fail(complaint)
        time.sleep(0.3)
    return answer


def code_cells(page):
    return [cell for cell in page.execute_script(MODEL)["cells"] if cell["cell_type"] == "code"]


def errors(cells):
    outputs = [output for cell in cells for output in cell["outputs"]]
    return [f"{output['ename']}: {output['evalue']}" for output in outputs if output["output_type"] == "error"]


def run_all_cells(page):
    """Clicks Run, Run All Cells; waits until each cell has run, or one has raised; returns the code cells."""
    from selenium.webdriver.common.by import By

    before = code_cells(page)[0]["execution_count"]
    page.find_element(By.XPATH, "//div[contains(@class, 'lm-MenuBar-itemLabel') and text()='Run']").click()
    item = (By.CSS_SELECTOR, "li[data-command='runmenu:run-all']")
    wait_for(lambda: page.find_elements(*item), "the menu Run has no Run All Cells")
    page.find_element(*item).click()

    def finished():
        cells = code_cells(page)
        if cells[0]["execution_count"] in (None, before) or page.execute_script(KERNEL) != "idle":
            return False
        return errors(cells) or all(cell["execution_count"] for cell in cells if cell["source"].strip())

    wait_for(finished, "the notebook did not come to its end")
    return code_cells(page)


def in_cell(page, number, selector):
    """The elements of a cell, after scrolling to it."""
    page.execute_script(SCROLL, number)
    found = wait_for(lambda: page.execute_script(IN_CELL, number, selector), f"cell {number} has no {selector}")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", found[0])
    return found


def number_of(page, words):
    """Which cell has these words in its source."""
    cells = page.execute_script(MODEL)["cells"]
    return next(number for number, cell in enumerate(cells) if words in cell["source"])


def write_in_cell(page, number, *lines):
    """Types lines in the place of what the cell has; JupyterLab indents what follows a colon."""
    from selenium.webdriver.common.keys import Keys

    (editor,) = in_cell(page, number, ".cm-content")
    editor.click()
    editor.send_keys(Keys.CONTROL, "a")
    editor.send_keys(Keys.NULL, Keys.ENTER.join(lines))
    written = page.execute_script(MODEL)["cells"][number]["source"]
    assert [line.strip() for line in written.splitlines()] == list(lines)


def missing_place(cell):
    """The place that a cell's tag asks for and this machine lacks, or None."""
    tags = cell["metadata"].get("tags", [])
    return next((place for place in PLACES if place in tags and not machine.places()[place]), None)


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_from_top_to_bottom(open_page, screenshots, name):
    page = open_page(f"notebooks/{name}.ipynb")
    cells = run_all_cells(page)
    assert errors(cells) == []
    for cell in cells:
        if place := missing_place(cell):
            (output,) = cell["outputs"]
            assert output["output_type"] == "stream" and machine.reasons(place) in "".join(output["text"])
            assert len("".join(output["text"]).splitlines()) == 1
    drawn = number_of(page, "draw.explore(" if name == LESSONS[0] else "draw.reduction(")
    in_cell(page, drawn, ".jp-OutputArea-output img")
    wait_for(lambda: any(width > 0 for width in page.execute_script(WIDTHS)), "no figure is visible")
    assert all(width > 0 for width in page.execute_script(WIDTHS))
    if name == LESSONS[0]:
        move_the_slider(page, drawn)
    in_cell(page, drawn, ".jp-OutputArea-output img")
    page.save_screenshot(str(screenshots / f"{name}.png"))


def move_the_slider(page, number):
    """The picture below a slider becomes another one when it is moved."""
    from selenium.webdriver.common.keys import Keys

    def pictures():
        return page.execute_script(SOURCES, number)  # in one call: the page replaces the element meanwhile

    before = wait_for(pictures, "the picture is gone")
    (handle,) = in_cell(page, number, ".noUi-handle")
    handle.send_keys(Keys.ARROW_RIGHT)
    wait_for(lambda: pictures() not in ([], before), "the slider moved and the picture stays as it was")


def test_an_exercise_is_done_wrong_and_then_right(open_page, course, screenshots):
    page = open_page("work/00_start_here.ipynb")
    answer, graded = number_of(page, "def fill_of_max"), number_of(page, 'check("start_here.max"')
    write_in_cell(page, answer, "def fill_of_max():", "return 0")
    assert errors(run_all_cells(page))[0].startswith("GradeFailed: ")
    shown = in_cell(page, graded, ".jp-OutputArea-output")[0].text
    assert shown.startswith("GradeFailed (start_here.max, value): of [-3, -1, -2] the largest came out as 0")
    page.save_screenshot(str(screenshots / "exercise_wrong.png"))
    write_in_cell(page, answer, "def fill_of_max():", "return -math.inf")
    (said,) = errors(run_all_cells(page))  # the second task has its stub still
    assert said.startswith("NotImplementedError")
    assert "start_here.max passed" in in_cell(page, graded, ".jp-OutputArea-output")[0].text
    assert "Jupyter news" not in page.page_source  # JupyterLab's own question would lie over the cells
    page.save_screenshot(str(screenshots / "exercise_right.png"))
    assert progress.Progress(course / "work" / "progress.json").passed("start_here.max")


def changes_picture(page, number, act):
    """Whether the picture of that number becomes another one after act()."""
    before = page.execute_script(PICTURES)[number]
    act()
    return wait_for(lambda: page.execute_script(PICTURES)[number] != before, f"picture {number} stays as it was")


def test_a_slider_that_moves_changes_its_picture(open_page, course, screenshots):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    cells = [nbformat.v4.new_code_cell(source) for source in WIDGETS]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), course / "notebooks" / "widgets.ipynb")
    page = open_page("notebooks/widgets.ipynb")
    assert errors(run_all_cells(page)) == []
    wait_for(lambda: len(page.execute_script(PICTURES)) == 3, "a widget shows no picture")
    plan, _, step = (page.find_elements(By.CSS_SELECTOR, ".noUi-handle")[place] for place in range(3))
    banks = page.find_element(By.XPATH, "//button[contains(., 'banks')]")
    assert changes_picture(page, 0, lambda: plan.send_keys(Keys.PAGE_DOWN))
    assert changes_picture(page, 1, banks.click)
    assert changes_picture(page, 2, lambda: step.send_keys(Keys.ARROW_RIGHT))
    page.save_screenshot(str(screenshots / "widgets.png"))
    assert all(width > 0 for width in page.execute_script(WIDTHS))
