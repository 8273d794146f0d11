"""The documentation: what it names is there, its examples give what they say, and what it quotes is in the sources."""

import builtins
import doctest
import functools
import importlib
import inspect
import re
from pathlib import Path

import pytest

import weft

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# The text of each page by its path in docs/, and the README.
PAGES = {"README.md": (ROOT / "README.md").read_text()} | {
    page.relative_to(DOCS).as_posix(): page.read_text() for page in sorted(DOCS.rglob("*.md"))
}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SUFFIXES = (".py", ".md", ".txt", ".toml")
# A page that is made with the site, a script of the reader's, a name that stands for any, a node whose name PyTorch gives too.
FOREIGN = {"reference/index.md", "script.py", "weft.name", "SincBackward0"}


def folders():
    for name in ("weft", "tests", "bench", "examples", "docs"):
        yield from (path for path in (ROOT / name).rglob("*") if path.suffix in SUFFIXES)
    yield from (ROOT / "website").glob("*.py")
    yield from (ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "README.md")


@functools.cache
def sources():
    """The text of every file but the documentation."""
    files = (path for path in folders() if path.suffix != ".md" and path != Path(__file__))
    return "\n".join(path.read_text() for path in files)


@functools.cache
def words():
    return set(re.findall(r"\w+", sources())) | set(dir(builtins)) | FOREIGN


@functools.cache
def places():
    """Every file and folder, and every end of its path: `map.py`, `families/map.py`, `families`."""
    found = set()
    for path in folders():
        for each in (path, *path.relative_to(ROOT).parents):
            parts = (each.relative_to(ROOT) if each.is_absolute() else each).parts
            found |= {"/".join(parts[start:]) for start in range(len(parts))}
    return found


def absent():
    """The part of a page that lists what is not there."""
    return PAGES["differences.md"].partition("## Not there yet")[2]


def spans(page):
    """What a page has in backticks, outside of its blocks."""
    prose = re.sub(r"^    .*$", "", BLOCK.sub("", PAGES[page]), flags=re.MULTILINE)
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose)


def blocks(page):
    """The Python in fences of a page."""
    return [code for language, code in BLOCK.findall(PAGES[page]) if language == "python"]


def resolve(name):
    """The thing that `torch.nn.Linear` or `weft.io.load_hdf5` names. Raises: AttributeError, ImportError."""
    found = weft
    path = "weft"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(path)
    return found


@functools.cache
def anchors(path):
    """What links to the headings of a page name, as MkDocs makes it of them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", each).strip().lower()) for each in headings}


def test_the_site_has_every_page():
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "website" / "mkdocs.yml").read_text())
    assert sorted(listed) == sorted(set(PAGES) - {"README.md"})


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """To files, to headings of pages, and to the pages of the reference, which are made when the site is built."""
    here = ROOT / "README.md" if page == "README.md" else DOCS / page
    wrong = []
    for path, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", PAGES[page]):
        if "://" in path or path.startswith("reference/"):
            continue
        target = (here.parent / path).resolve() if path else here
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(f"{path}#{anchor}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page):
    """Paths anywhere on a page, and names of files and folders in backticks."""
    named = {word for span in spans(page) for word in span.split() if word.endswith((*SUFFIXES, "/"))}
    named |= set(re.findall(r"(?<![\w:/.~-])\w+/[\w/-]+\.(?:py|md|txt)\b", PAGES[page]))
    named = {each for each in named if re.fullmatch(r"\w[\w./-]*", each) and "NAME" not in each}
    assert {each for each in named if each.rstrip("/") not in places()} <= FOREIGN


@pytest.mark.parametrize("page", PAGES)
def test_names_exist(page):
    text = " ".join(spans(page))
    dotted = [each.rstrip(".") for each in re.findall(r"(?<![\w./])(?:torch|weft)\.[\w.]+", text)]
    missing = []
    for name in set(dotted) - FOREIGN:
        try:
            resolve(name)
        except (AttributeError, ImportError):
            missing.append(name)
    # Those that weft does not have yet are listed as such.
    listed = absent() if page == "differences.md" else ""
    assert [name for name in missing if f"`{name}`" not in listed] == []


@pytest.mark.parametrize("page", PAGES)
def test_identifiers_are_in_the_sources(page):
    """Of code in backticks; so a name that was changed is changed here, too."""
    listed = absent() if page == "differences.md" else ""
    missing = set()
    for span in spans(page):
        if re.fullmatch(r"[\w.]+(\(.*\))?", span) and span not in listed:
            names = re.findall(r"\b[A-Za-z_]\w+", span.partition("(")[0])
            missing |= {name for name in names if not {name, name.removesuffix("_")} & words()}
    assert missing == set()


@pytest.mark.parametrize("folder", ["engine", "families"])
def test_every_part_is_described(folder):
    modules = (path.stem for path in (ROOT / "weft" / folder).glob("*.py") if path.stem != "__init__")
    described = PAGES["architecture.md"] + PAGES["machine-code.md"]
    assert [name for name in modules if f"{name}.py`" not in described] == []


def test_what_is_said_to_be_missing_is():
    for name in set(re.findall(r"`(torch\.[\w.]+)`", absent())) - {"torch.distributed"}:
        try:
            found = resolve(name)
        except (AttributeError, ImportError):
            continue
        if inspect.ismodule(found):  # exists so that scripts can ask about what it names
            continue
        required = [
            each for each in inspect.signature(found).parameters.values() if each.default is each.empty
        ]
        with pytest.raises(NotImplementedError):
            found(*[None for each in required if each.kind is each.POSITIONAL_OR_KEYWORD])


@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in PAGES[page]])
def test_sessions_print_what_they_say(page):
    test = doctest.DocTestParser().get_doctest(PAGES[page].replace("\n```\n", "\n\n"), {}, page, page, 0)
    report = []
    failed = doctest.DocTestRunner().run(test, out=report.append).failed
    assert failed == 0, "".join(report)


@pytest.mark.parametrize("page", PAGES)
def test_code_runs_or_quotes(run, tmp_path, page):
    """A block either is a script or shows lines of the sources, `...` standing for what is left out."""
    for code in blocks(page):
        if ">>>" in code:
            continue
        if "import weft" in code:
            (tmp_path / "script.py").write_text(code)
            done = run(tmp_path / "script.py")
            assert done.returncode == 0, done.stderr
            printed = [
                line.partition("# ")[2] for line in code.splitlines() if line.strip().startswith("print")
            ]
            assert all(line in done.stdout for line in printed)
        else:
            assert [line for line in quoted(code) if line not in flat(sources())] == []


def quoted(code):
    """The lines of a quotation, but for what is left out, comments and the spaces of tables."""
    lines = (re.sub(r"(: \.\.\.|^\s*\.\.\.)$", "", line) for line in code.splitlines())
    return [flat(line) for line in lines if line.strip() and not line.strip().startswith("#")]


@functools.cache
def flat(text):
    return re.sub(r"\s+", "", text)
