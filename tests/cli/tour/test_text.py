import pytest

from weft.cli.tour.document import document
from weft.cli.tour.reader import Reader
from weft.cli.tour.text import Cell, html, page, pages

PAGES = {each.name: each for each in pages()}


@pytest.fixture(scope="module")
def reader():
    found = Reader()
    yield found
    found.close()


FORGET = "for name in [each for each in globals() if not each.startswith('__')]: del globals()[name]"


@pytest.mark.parametrize("name", PAGES)
def test_cells_of_a_page_print_what_it_says(reader, name):
    list(reader.run(FORGET))  # each page stands alone
    for cell in PAGES[name].cells:
        events = list(reader.run(cell.code))
        assert [each["error"] for each in events if "error" in each] == []
        assert "".join(each.get("text", "") for each in events) == cell.output
        assert any("svg" in each for each in events) == ("torch.viz." in cell.code)


def test_the_founding_subjects_have_pages():
    assert list(PAGES) == [
        *("storage", "views", "dtypes", "broadcasting", "indexing"),
        *("autograd", "training", "devices", "files"),
    ]


def test_a_page():
    source = "# Title\n\nText `a < b`.\n\n```python\nprint(1)\n```\n```output\n1\n```\n\n## End\n\n- one\n- [two](views)\n"
    read = page("name", source)
    assert read.title == "Title"
    assert read.parts == [
        "<p>Text <code>a &lt; b</code>.</p>",
        Cell("print(1)\n", "1\n"),
        '<h2>End</h2><ul><li>one</li><li><a href="#views">two</a></li></ul>',
    ]


def test_stars_in_code_are_no_emphasis():
    assert html("`a ** b ** c` and **strong**") == (
        "<p><code>a ** b ** c</code> and <strong>strong</strong></p>"
    )


def test_mistakes_in_a_page_are_refused():
    with pytest.raises(ValueError, match="page name: a block of 'output' does not follow a cell"):
        page("name", "# T\n```output\n1\n```\n")


def test_the_document_is_complete():
    text = document("a nonce")
    assert '<script nonce="a nonce">' in text
    assert "<!--" not in text
    assert text.count("<section ") == len(PAGES)
    for address in ("http:", "https:", "src=", "@import", "url("):
        assert address not in text
