"""`make site`: the course as static HTML in build/site, by Jupyter Book, with the outputs that are saved.

What is on it follows from the tree: the README in front; the lessons by part, each with its exercise and its steps; the
glossary, the records, CONTRIBUTING.md. Solutions stay out, so that the search finds none. Nothing is executed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
STYLE = Path(__file__).with_suffix(".css")

# The title of each part, and the first number that is no longer of it.
PARTS = {"A · Move bytes": 8, "B · Reduce rows": 15, "C · Hopper": 19, "D · Train": 22, "E · Prove": 26, "Beyond": 100}
FRONT, GLOSSARY, RECORDS = "README", "notebooks/glossary", "records/index"
BEHIND = (GLOSSARY, RECORDS, "CONTRIBUTING")

CONFIG = {
    "title": "quack_lite",
    "author": "The quack_lite authors",
    "copyright": "2026",
    "only_build_toc_files": True,
    "execute": {"execute_notebooks": "off"},
    "parse": {"myst_enable_extensions": ["deflist", "dollarmath"]},
    "html": {"use_multitoc_numbering": False},
    "sphinx": {
        "recursive_update": True,
        "config": {
            "nb_ipywidgets_js": {},  # what a widget needs would come from the network
            "nb_merge_streams": True,
            "highlight_language": "none",
            "myst_heading_anchors": 3,
            "smartquotes": False,
            "html_theme_options": {"navbar_persistent": []},  # the search stands in the sidebar already
        },
    },
}

LINK = re.compile(r"(?<!!)\[(?P<words>[^\[\]]*)\]\((?P<target>[\w./-]+)(?P<place>#[\w-]*)?\)")
IN_WORK = re.compile(r"(?<!\[)`(work/(\w+)\.ipynb)`")
MENTION = re.compile(r"\b([Ll]esson (\d\d?))\b(?!\])")
WIDGET = "application/vnd.jupyter.widget-view+json"
STILL = "*The picture stands still here. In JupyterLab it has a slider or buttons, and answers.*"


def contents(root: Path = ROOT) -> dict:
    """The table of contents in Jupyter Book's form: pages without their endings."""
    chapters: dict[str, list[dict]] = {caption: [] for caption in PARTS}
    for key, pages in sorted(_by_key(root).items()):
        first, *rest = ({"file": page} for page in pages)
        chapters[_part(key)].append(first | ({"sections": rest} if rest else {}))
    chapters["To look up"] = [{"file": page} for page in BEHIND]
    parts = [{"caption": caption, "chapters": entries} for caption, entries in chapters.items() if entries]
    return {"format": "jb-book", "root": FRONT, "parts": parts}


def _by_key(root: Path) -> dict[str, list[str]]:
    """{"05": lesson, exercise and steps of number 5}; what has no number has its own name as key."""
    found: dict[str, list[str]] = {}
    for pattern in ("notebooks/*.ipynb", "exercises/*.ipynb", "notebooks/steps/*.py"):
        for path in sorted(root.glob(pattern)):
            key = path.name[:2] if path.name[:2].isdecimal() else path.stem
            found.setdefault(key, []).append(path.relative_to(root).with_suffix("").as_posix())
    return found


def _part(key: str) -> str:
    """A lesson's part by its number, a project's by its letter (project_a_adamw is of A), the last for all else."""
    *_, last = PARTS
    if key.isdecimal():
        return next(caption for caption, end in PARTS.items() if int(key) < end)
    project = re.match(r"project_(\w)_", key)
    return next((caption for caption in PARTS if project and caption.startswith(f"{project[1].upper()} ·")), last)


def sources(root: Path = ROOT) -> dict[str, str]:
    """{page: the file that it is made from, in the book's source}."""
    names = [FRONT, *(page for pages in _by_key(root).values() for page in pages), *BEHIND]
    return {name: name + (".ipynb" if (root / f"{name}.ipynb").exists() else ".md") for name in names}


def rewritten(text: str, folder: str, root: Path = ROOT) -> str:
    """Markdown of a file in `folder` as the site needs it.

    Links to what stands elsewhere on the site lead there; a lesson mentioned by its number and an exercise by its place
    in work/ become links; a link to a file that only the repository has keeps its words. A link to a file that is
    nowhere stays as it is, and Sphinx complains.
    """
    there = sources(root)
    lessons = {int(page[10:12]): page for page in there if re.match(r"notebooks/\d\d_", page)}

    def link(words: str, page: str, place: str = "") -> str:
        return f"[{words}]({os.path.relpath(there[page], folder or '.')}{place})"

    def moved(match: re.Match) -> str:
        path = os.path.normpath(PurePosixPath(folder, match["target"]))
        page = RECORDS if path == "records" else re.sub("^work/", "exercises/", path).rpartition(".")[0]
        if page in there:
            return link(match["words"], page, match["place"] or "")
        stays = path.startswith("records/") or not (root / path).exists()
        return match[0] if stays else match["words"]

    def exercise(match: re.Match) -> str:
        page = f"exercises/{match[2]}"
        return link(f"`{match[1]}`", page) if page in there else match[0]

    def lesson(match: re.Match) -> str:
        page = lessons.get(int(match[2]))
        return link(match[1], page) if page else match[0]

    return MENTION.sub(lesson, IN_WORK.sub(exercise, LINK.sub(moved, text)))


def write_source(book: Path, root: Path = ROOT) -> None:
    """Makes the folder `book` anew, with everything that Jupyter Book needs."""
    shutil.rmtree(book, ignore_errors=True)
    for folder in ("_static", "records", "notebooks/steps", "exercises"):
        (book / folder).mkdir(parents=True)
    for page, source in sources(root).items():
        (book / source).write_text(_text(page, root), encoding="utf-8")
    for path in (*root.glob("records/*.json"), *root.glob("records/*.png")):
        shutil.copyfile(path, book / "records" / path.name)
    shutil.copyfile(STYLE, book / "_static" / STYLE.name)
    # JSON is YAML.
    (book / "_config.yml").write_text(json.dumps(CONFIG))
    (book / "_toc.yml").write_text(json.dumps(contents(root)))


def _text(page: str, root: Path) -> str:
    folder = page.rpartition("/")[0]
    if (root / f"{page}.ipynb").exists():
        return _notebook(root / f"{page}.ipynb", folder, root)
    if folder == "notebooks/steps":
        return _steps(root / f"{page}.py")
    if page == RECORDS:
        return _records(root)
    text = (root / f"{page}.md").read_text(encoding="utf-8")
    if page == GLOSSARY:
        text = re.sub(r"\((\d\d)\)$", lambda match: f"(lesson {int(match[1])})", text, flags=re.M)
    return rewritten(text, folder, root)


def _notebook(path: Path, folder: str, root: Path) -> str:
    """A notebook with its links as the site has them, and descriptions of pictures where MyST-NB looks for them.

    Of a widget the picture stays, with a line that says so.
    """
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = rewritten(cell.source, folder, root)
        outputs = cell.get("outputs", [])
        if said := " ".join(filter(None, map(description, outputs))):
            cell.metadata["mystnb"] = {"image": {"alt": said}}
        for output in list(outputs):
            if output.get("data", {}).pop(WIDGET, None):
                outputs.append(nbformat.v4.new_output("display_data", {"text/markdown": STILL}))
    return nbformat.writes(notebook)


def description(output: dict) -> str:
    """What a picture shows, in the words that were saved with it; empty for other outputs."""
    data = output.get("data", {})
    if "image/png" not in data:
        return ""
    plain = data.get("text/plain", "")
    return output["metadata"].get("image/png", {}).get("alt") or ("" if plain.startswith("<") else plain)


def _steps(path: Path) -> str:
    number = int(path.stem)
    says = f"What `lesson.steps({number})` loads: the kernels between the first of the lesson and its last."
    return f"# {number} · Its kernels, step by step\n\n{says}\n\n````python\n{path.read_text(encoding='utf-8')}````\n"


def _records(root: Path) -> str:
    """A page with the pictures of records/, and a link to the numbers of each."""
    lines = ["# Records", "", "Measured on the machine and the day that each title names.", ""]
    for path in sorted(root.glob("records/*.png")):
        name = re.sub(r"^bench_(\w+?)(_backward)?_(\w+\d\d)$", r"\1\2 \3", path.stem).replace("_backward", " backward")
        lines += [f"## {name}", "", f"![{name}]({path.name})", "", f"[The numbers]({path.stem}.json)", ""]
    return "\n".join(lines)


def build(site: Path, book: Path, root: Path = ROOT) -> int:
    """Writes the book's source and makes the site of it; after a warning of Sphinx it is 1, and an older site stays."""
    write_source(book, root)
    start = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    options = ["--warningiserror", "--keep-going", "--quiet"]
    # The summary names the book's folder, where nobody should look; what is wrong comes on stderr.
    status = subprocess.run([*start, "build", *options, str(book)], stdout=subprocess.DEVNULL).returncode
    if status == 0:
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(book / "_build" / "html", site)
    return min(status, 1)


def main() -> int:
    """Builds the site and says where its first page is."""
    import importlib.util

    if importlib.util.find_spec("jupyter_book") is None:
        print("make site: no Jupyter Book here: pip install -r requirements-site.txt", file=sys.stderr)
        return 2
    status = build(ROOT / "build" / "site", ROOT / "build" / "book")
    print("build/site/index.html" if status == 0 else "make site: Sphinx warns, see above; build/site is as it was.")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
