"""`make slides`: each lesson as slides in build/slides, by nbconvert and reveal.js, with the outputs that are saved.

A heading begins a slide, and each text with code behind it one more. What is too much for one goes on to the next.
Nothing is executed, and all that a browser needs lies in the folder.
"""

import base64
import html
import importlib.util
import math
import re
import shutil
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quack_lite import site

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE, STYLE = (Path(__file__).with_name(f"slides{ending}") for ending in (".html.j2", ".css"))
FILES = ("dist/reset.css", "dist/reveal.css", "dist/reveal.js", "LICENSE")  # of reveal.js

# Pixels of a slide of 1280 x 720, as slides.css sets them: what is free, and the height of a line.
WIDTH, HEIGHT = 1200, 640
TEXT, CODE, OUTPUT, HEADING, GAP = 35, 26, 24, 64, 18
CHARACTERS, COLUMNS = 92, 104  # in a line of text, in one of code
LARGEST, LEAST = 1.5, 0.9  # a picture beside its own size
SMALLEST = 0.7  # what has a slide for itself; what is still too tall scrolls

INDEX = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>quack_lite, slides</title><link rel="stylesheet" href="slides.css">
</head><body class="index"><h1>quack_lite, slides</h1><ul>
{}
</ul><p>Space and the arrows go on, Escape shows all slides, F fills the screen.</p></body></html>
"""


class Block(NamedTuple):
    """What stays together: a cell of a slide, the height in pixels that it takes and the one that it may take.

    kind: "heading", "text", "code" or "output".
    """

    cell: "NotebookNode"
    kind: str
    least: float
    most: float


def blocks(notebook: "NotebookNode") -> list[Block]:
    """The parts of a notebook: texts, each split before its headings; the code of a cell; what it gave."""
    from nbformat.v4 import new_code_cell, new_markdown_cell

    found = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for text in re.split(r"(?m)^(?=#{1,3} )", site.LINK.sub(r"\g<words>", cell.source)):
                if text.strip():
                    kind, height = "heading" if text.startswith("#") else "text", _text_height(text)
                    found.append(Block(new_markdown_cell(text.strip()), kind, height, height))
        elif cell.cell_type == "code":
            if cell.source.strip():
                height = _lines(cell.source) * CODE + 2 * GAP
                found.append(Block(new_code_cell(cell.source), "code", height, height))
            outputs = [_output(output) for output in cell.outputs]
            least, most = (sum(_output_height(output, factor) for output in outputs) for factor in (LEAST, LARGEST))
            if most:
                found.append(Block(new_code_cell(outputs=outputs), "output", least, most))
    return found


def pages(parts: list[Block]) -> list[list[Block]]:
    """The blocks of each slide.

    A heading begins one, and so does a text that code follows. A text that ends a thought stays where there is room.
    Code goes with what it gave, if both fit on one.
    """
    made: list[list[Block]] = []
    room = 0.0
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        following = after.kind if after else "heading"
        wanted = part.least
        if part.kind == "code" and following == "output" and part.least + after.least <= HEIGHT:
            wanted += after.least
        begins = part.kind == "heading" or part.kind == "text" and following == "code"
        if not made or begins or wanted > room:
            made.append([])
            room = HEIGHT
        made[-1].append(part)
        room -= part.least
    return made


def arrange(made: list[list[Block]]) -> "list[NotebookNode]":
    """The cells with what nbconvert's slides ask of their metadata; pictures take the room that is left."""
    for number, page in enumerate(made):
        first = page[0].kind == "heading" or number == 0
        page[0].cell.metadata["slideshow"] = {"slide_type": "slide" if first else "subslide"}
        used, wished = sum(part.least for part in page), sum(part.most for part in page)
        share = min(1, max(0, HEIGHT - used) / (wished - used)) if wished > used else 0
        for part in page:
            _draw(part.cell, LEAST + (LARGEST - LEAST) * share, min(1, HEIGHT / used))
    return [part.cell for page in made for part in page]


def _draw(cell: "NotebookNode", factor: float, fit: float) -> None:
    """Gives the pictures of a cell their size, and makes all of it smaller where it has to be."""
    pictures = [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
    if pictures and factor * fit < SMALLEST:
        factor, fit = 1, 1  # it scrolls in any case
    for output in pictures:
        width, height = (round(factor * pixels) for pixels in _size(output))
        output.metadata["image/png"] |= {"width": width, "height": height}
    if fit < 1:
        cell.metadata["fit"] = max(SMALLEST, fit)


def _lines(text: str) -> int:
    return sum(max(1, math.ceil(len(line) / COLUMNS)) for line in text.splitlines())


def _text_height(text: str) -> float:
    height = 0.0
    for line in filter(None, text.strip().splitlines()):
        if line.startswith("#"):
            height += HEADING * math.ceil(len(line) / (CHARACTERS / 1.8))
        else:
            height += TEXT * math.ceil(len(line) / CHARACTERS) + (9 if re.match(r"[|-]|\d", line) else GAP)
    return height


def _output(output: "NotebookNode") -> "NotebookNode":
    """An output without its widget, of which the picture stays, and with what the picture shows in words."""
    output.get("data", {}).pop(site.WIDGET, None)
    if "image/png" in output.get("data", {}):
        output.metadata["image/png"] = {"alt": site.description(output)}
    return output


def _size(output: "NotebookNode") -> tuple[int, int]:
    """Width and height of a picture in pixels."""
    return struct.unpack(">II", base64.b64decode(output.data["image/png"])[16:24])


def _output_height(output: "NotebookNode", factor: float) -> float:
    data = output.get("data", {})
    if "image/png" in data:
        return _size(output)[1] * factor + GAP
    said = output.get("text") or data.get("text/plain") or "\n".join(output.get("traceback", []))
    return _lines(said) * OUTPUT + GAP if said else 0


def title(notebook: "NotebookNode") -> str:
    """The first heading."""
    return next(cell.source for cell in notebook.cells if cell.cell_type == "markdown").splitlines()[0].lstrip("# ")


def build(folder: Path, reveal: Path, lessons: list[Path]) -> None:
    """Makes the folder anew: a page of slides a lesson, a list of them, reveal.js from where it is, and the style."""
    import nbformat
    from nbconvert.exporters import SlidesExporter
    from pygments.formatters import HtmlFormatter

    shutil.rmtree(folder, ignore_errors=True)
    for name in FILES:
        (folder / "reveal" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(reveal / name, folder / "reveal" / name)
    (folder / "slides.css").write_text(STYLE.read_text() + HtmlFormatter().get_style_defs(".highlight") + "\n")
    exporter = SlidesExporter(template_file=str(TEMPLATE), reveal_url_prefix="reveal")
    entries = []
    for lesson in lessons:
        notebook = nbformat.read(lesson, as_version=4)
        notebook.metadata["title"] = title(notebook)
        notebook.cells = arrange(pages(blocks(notebook)))
        (folder / f"{lesson.stem}.html").write_text(exporter.from_notebook_node(notebook)[0], encoding="utf-8")
        entries.append(f'<li><a href="{lesson.stem}.html">{html.escape(notebook.metadata["title"])}</a></li>')
    (folder / "index.html").write_text(INDEX.format("\n".join(entries)), encoding="utf-8")


def reveal() -> Path | None:
    """Where reveal.js is: sphinx-revealjs brings it in its wheel. None where that is not installed."""
    found = importlib.util.find_spec("sphinx_revealjs")
    return Path(found.submodule_search_locations[0]) / "_static" / "revealjs" if found else None


def main(arguments: list[str]) -> int:
    """Builds the slides of the notebooks given, or of all lessons, and says where they are."""
    there = reveal()
    if there is None:
        print("make slides: no reveal.js here: pip install --no-deps -r requirements-slides.txt", file=sys.stderr)
        return 2
    lessons = [Path(name) for name in arguments] or sorted(ROOT.glob("notebooks/*.ipynb"))
    build(ROOT / "build" / "slides", there, lessons)
    print("build/slides/index.html")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
