"""A real browser on a copy of the course: `make lab`, Run All Cells, no error, figures visible, widgets that answer.

Needs chromium and chromedriver; in CI they must be there.
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

from quack_lite import desk, machine

ROOT = Path(__file__).parents[1]
CI = os.environ.get("CI") == "true"
LIMIT = 100  # seconds for each wait
NOT_COPIED = shutil.ignore_patterns(".*", "build", "work", "__pycache__", "*.egg-info")
PLACES = ("compiler", "gpu", "hopper")
PROGRAMS = ("chromium", "chromedriver", "make")

MODEL = "return jupyterapp.shell.currentWidget?.content?.model?.toJSON?.() ?? null"
KERNEL = "return jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status ?? null"
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


@pytest.fixture
def course(tmp_path):
    """A copy of the course whose first lesson has no outputs yet: what is seen later was made in the browser."""
    if not list((ROOT / "notebooks").glob("*.ipynb")):
        pytest.skip("there is no lesson yet")
    copy = tmp_path / "course"
    shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
    path = desk.first_lesson(copy)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)
    return copy


@pytest.fixture
def address(course, tmp_path):
    """The address that `make lab ARGS=--no-browser` prints."""
    log = tmp_path / "lab.log"
    arguments = f"--no-browser --port={free_port()} --LabApp.expose_app_in_browser=True"
    command = ["make", f"PYTHON={sys.executable}", "lab", f"ARGS={arguments}"]
    with log.open("w") as out:
        server = subprocess.Popen(command, cwd=course, stdout=out, stderr=out, start_new_session=True)
    try:
        yield wait_for(lambda: printed_address(log), f"no address of JupyterLab in {log}")
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.fixture
def browser(tmp_path):
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
    yield driver
    driver.quit()


@pytest.fixture
def widgets(course, address):
    """The address of a notebook in the course that shows the three widgets."""
    cells = [nbformat.v4.new_code_cell(source) for source in WIDGETS]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.write(notebook, course / "notebooks" / "widgets.ipynb")
    return re.sub(r"/lab/tree/[^?]+", "/lab/tree/notebooks/widgets.ipynb", address)


@pytest.fixture
def page(browser, address, tmp_path, request):
    """The lesson opened; a test that fails leaves a screenshot beside the server's log."""
    browser.get(address)
    before = request.session.testsfailed
    yield browser
    if request.session.testsfailed > before:
        browser.save_screenshot(str(tmp_path / "failed.png"))


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
    """Clicks Run, Run All Cells; waits until each cell has run, or one has raised."""
    from selenium.webdriver.common.by import By

    wait_for(lambda: page.execute_script("return window.jupyterapp !== undefined"), "JupyterLab did not start")
    wait_for(lambda: page.execute_script(MODEL), "the lesson did not open")
    wait_for(lambda: page.execute_script(KERNEL) == "idle", "no kernel started")
    page.find_element(By.XPATH, "//div[contains(@class, 'lm-MenuBar-itemLabel') and text()='Run']").click()
    item = (By.CSS_SELECTOR, "li[data-command='runmenu:run-all']")
    wait_for(lambda: page.find_elements(*item), "the menu Run has no Run All Cells")
    page.find_element(*item).click()

    def finished():
        cells = code_cells(page)
        ran = all(cell["execution_count"] for cell in cells if cell["source"].strip())
        return errors(cells) or ran and page.execute_script(KERNEL) == "idle"

    wait_for(finished, "the lesson did not come to its end")


def missing_place(cell):
    """The place that a cell's tag asks for and this machine lacks, or None."""
    tags = cell["metadata"].get("tags", [])
    return next((place for place in PLACES if place in tags and not machine.places()[place]), None)


def test_the_first_lesson_runs_from_top_to_bottom(page):
    run_all_cells(page)
    cells = code_cells(page)
    assert errors(cells) == []
    for cell in cells:
        if place := missing_place(cell):
            (output,) = cell["outputs"]
            assert output["output_type"] == "stream" and machine.reasons(place) in "".join(output["text"])
            assert len("".join(output["text"]).splitlines()) == 1
    wait_for(lambda: any(width > 0 for width in page.execute_script(WIDTHS)), "no figure is visible")
    assert all(width > 0 for width in page.execute_script(WIDTHS))


def changes_picture(page, number, act):
    """Whether the picture of that number becomes another one after act()."""
    before = page.execute_script(PICTURES)[number]
    act()
    return wait_for(lambda: page.execute_script(PICTURES)[number] != before, f"picture {number} stays as it was")


def test_a_slider_that_moves_changes_its_picture(browser, widgets, tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.get(widgets)
    run_all_cells(browser)
    assert errors(code_cells(browser)) == []
    wait_for(lambda: len(browser.execute_script(PICTURES)) == 3, "a widget shows no picture")
    plan, _, step = (browser.find_elements(By.CSS_SELECTOR, ".noUi-handle")[place] for place in range(3))
    banks = browser.find_element(By.XPATH, "//button[contains(., 'banks')]")
    assert changes_picture(browser, 0, lambda: plan.send_keys(Keys.PAGE_DOWN))
    assert changes_picture(browser, 1, banks.click)
    assert changes_picture(browser, 2, lambda: step.send_keys(Keys.ARROW_RIGHT))
    browser.save_screenshot(str(tmp_path / "widgets.png"))
    assert all(width > 0 for width in browser.execute_script(WIDTHS))
