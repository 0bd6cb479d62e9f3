"""make site: the contents follow from the tree, and in what Jupyter Book makes of them every link leads somewhere."""

import importlib.util
import json
import os
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from quack_lite import site

CI = os.environ.get("CI") == "true"
needs_book = pytest.mark.skipif(
    not CI and importlib.util.find_spec("jupyter_book") is None, reason="Jupyter Book is not installed: make .venv/site"
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LESSON_4 = """# 4 · Why?

The exercise, `work/04_why.ipynb`, or [here](../work/04_why.ipynb). [Steps](steps/04.py), [a word](glossary.md#words).
[The source](../quack_lite/why.py). After lesson 12 comes [lesson 3](../README.md); `work/05_none.ipynb` and lesson 5
are not there."""


def written(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


@pytest.fixture
def tree(tmp_path):
    """A small course: lessons 4 and 12, an exercise and steps of 4, a project, the pages of every course."""
    root = tmp_path / "course"
    widget = {site.WIDGET: {"model_id": "1"}, "image/png": PIXEL, "text/plain": "Four lanes."}
    code = new_code_cell("1", outputs=[new_output("display_data", widget)], execution_count=1)
    written(root / "notebooks/12_how.ipynb", new_markdown_cell("# 12 · How?"))
    written(root / "notebooks/04_why.ipynb", new_markdown_cell(LESSON_4), code)
    written(root / "exercises/04_why.ipynb", new_markdown_cell("# 4 · Exercise"))
    written(root / "exercises/project_a_sum.ipynb", new_markdown_cell("# Project A"))
    files = {
        "README.md": "# A course\n\n[records](records), ![speed](records/bench_sum_bf16.png)",
        "CONTRIBUTING.md": "# Contributing",
        "notebooks/glossary.md": "# Words\n\n**why** (04)\n: A question.\n\n**what** (05)\n: Another.",
        "notebooks/steps/04.py": "x = 1\n",
        "quack_lite/why.py": "",
        "records/bench_sum_bf16.json": "{}",
        "records/bench_sum_bf16.png": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_contents_are_in_order_by_part(tree):
    contents = site.contents(tree)
    assert contents["root"] == "README"
    first, second, last = contents["parts"]
    lesson = {"file": "notebooks/04_why", "sections": [{"file": "exercises/04_why"}, {"file": "notebooks/steps/04"}]}
    assert first == {"caption": "A · Move bytes", "chapters": [lesson, {"file": "exercises/project_a_sum"}]}
    assert second == {"caption": "B · Reduce rows", "chapters": [{"file": "notebooks/12_how"}]}
    assert [chapter["file"] for chapter in last["chapters"]] == list(site.BEHIND)


def test_a_new_lesson_appears_by_itself(tree):
    written(tree / "notebooks/15_new.ipynb", new_markdown_cell("# 15 · New?"))
    assert {"caption": "C · Hopper", "chapters": [{"file": "notebooks/15_new"}]} in site.contents(tree)["parts"]
    assert "[lesson 15](15_new.ipynb)" in site.rewritten("See lesson 15.", "notebooks", tree)


@pytest.mark.parametrize(
    "key, part",
    [("00", "A"), ("07", "A"), ("08", "B"), ("18", "C"), ("21", "D"), ("25", "E"), ("26", "Beyond")]
    + [("project_a_adamw", "A"), ("project_c_x", "C"), ("phrasebook", "Beyond")],
)
def test_the_part_of_a_lesson(key, part):
    assert site._part(key).split(" ·")[0] == part


def test_no_solution_is_on_the_site_and_every_notebook_of_the_course_is():
    pages = site.sources()
    assert not [page for page in pages if page.startswith("solutions/")]
    course = [path for folder in ("notebooks", "exercises") for path in (site.ROOT / folder).glob("*.ipynb")]
    assert course and {path.relative_to(site.ROOT).as_posix() for path in course} <= set(pages.values())


def test_links_lead_to_where_things_stand_on_the_site(tree):
    text = site.rewritten(LESSON_4, "notebooks", tree)
    assert "exercise, [`work/04_why.ipynb`](../exercises/04_why.ipynb), or [here](../exercises/04_why.ipynb)." in text
    assert "[Steps](steps/04.md), [a word](glossary.md#words)." in text
    assert "\nThe source. After [lesson 12](12_how.ipynb) comes [lesson 3](../README.md); `work/05_none.ipynb`" in text
    assert "and lesson 5\n" in text
    assert site.rewritten("[all](records)", "", tree) == "[all](records/index.md)"
    for kept in ("[x](nowhere.md)", "[x](https://a.org/b.md)", "[x](#here)", "[x](records/a.json)", "kernel[grid](x)"):
        assert site.rewritten(kept, "", tree) == kept


def test_the_source_has_everything_and_no_widget(tree, tmp_path):
    book = tmp_path / "book"
    (book / "old").mkdir(parents=True)
    site.write_source(book, tree)
    assert not (book / "old").exists()
    assert json.loads((book / "_toc.yml").read_text()) == site.contents(tree)
    assert all((book / source).is_file() for source in site.sources(tree).values())
    assert "(04)" not in (book / "notebooks/glossary.md").read_text()
    assert "x = 1" in (book / "notebooks/steps/04.md").read_text()
    cell = nbformat.read(book / "notebooks/04_why.ipynb", as_version=4).cells[1]
    assert cell.metadata.mystnb.image.alt == "Four lanes."
    assert [list(output.data) for output in cell.outputs] == [["image/png", "text/plain"], ["text/markdown"]]


def test_without_jupyter_book_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert site.main() == 2
    assert "requirements-site.txt" in capsys.readouterr().err


class Page(HTMLParser):
    """What a page of HTML names: its ids, its links, and what a browser loads for it."""

    LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src"}

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get(self.LOADS.get(tag)):
            self.loads.append(given[self.LOADS[tag]])


def faults(folder):
    """A sentence for each link that leads nowhere, and for each thing that a page would load from elsewhere."""
    pages = {path.resolve(): Page(path.read_text()) for path in folder.rglob("*.html") if "_static" not in path.parts}
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for address in [*page.links, *page.loads]:
            parts = urlsplit(address)
            if parts.scheme == "data" or parts.netloc and address in page.links:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.netloc:
                yield f"{name} loads {address}"
            elif not target.exists():
                yield f"{name}: {address} leads nowhere"
            elif target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].ids:
                yield f"{name}: {address} names no place there"


@pytest.mark.parametrize(
    "text, says",
    [
        ('<a href="c.html">', "leads nowhere"),
        ('<a href="b.html#y">', "names no place"),
        ('<a href="#y">', "names no place"),
        ('<img src="x.png">', "leads nowhere"),
        ('<script src="https://cdn.org/a.js">', "loads https://cdn.org/a.js"),
        ('<link href="//cdn.org/a.css">', "loads //cdn.org/a.css"),
    ],
)
def test_a_planted_fault_of_a_page_is_found(tmp_path, text, says):
    (tmp_path / "b.html").write_text('<p id="x"><a href="b.html#x"><a href="https://a.org"><a href="#x">')
    (tmp_path / "a.html").write_text(text)
    (fault,) = faults(tmp_path)
    assert says in fault


@needs_book
def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere(tmp_path):
    assert site.build(tmp_path / "site", tmp_path / "book") == 0
    made = {path.relative_to(tmp_path / "site").with_suffix("").as_posix() for path in tmp_path.glob("site/**/*.html")}
    assert {"index", "search", *site.sources()} <= made
    assert list(faults(tmp_path / "site")) == []
    assert "Copyright 2026" in (tmp_path / "site/README.html").read_text()


@needs_book
def test_a_link_to_nowhere_stops_the_build_and_leaves_the_old_site(tree, tmp_path, capfd):
    old = tmp_path / "site/index.html"
    old.parent.mkdir()
    old.write_text("old")
    (tree / "README.md").write_text("# A course\n\n[x](nowhere.md)")
    assert site.build(tmp_path / "site", tmp_path / "book", tree) == 1
    (warning,) = [line for line in capfd.readouterr().err.splitlines() if "WARNING" in line]
    assert "nowhere.md" in warning
    assert old.read_text() == "old"
