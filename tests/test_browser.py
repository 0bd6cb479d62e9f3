"""The first lesson in a real browser, on a copy of the course: `make lab`, Run All Cells, no error, figures visible.

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
NOT_COPIED = shutil.ignore_patterns(".*", "work", "__pycache__", "*.egg-info")
PLACES = ("compiler", "gpu", "hopper")
PROGRAMS = ("chromium", "chromedriver", "make")

MODEL = "return jupyterapp.shell.currentWidget?.content?.model?.toJSON?.() ?? null"
KERNEL = "return jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status ?? null"
WIDTHS = """
const images = [...document.querySelectorAll('.jp-OutputArea-output img')];
images.forEach(image => image.scrollIntoView());
return images.map(image => image.naturalWidth);
"""


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
