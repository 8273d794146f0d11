"""Hooks of MkDocs: the pages of the reference, and links to files that are not pages."""

import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))

import reference

_PAGES = reference.pages()


def on_config(config):
    """Put the pages of the reference into the navigation."""
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] = [{title: f"reference/{name}.md"} for name, title, _ in _PAGES]
    return config


def on_files(files, config):
    """Add the pages of the reference."""
    for name, _, text in _PAGES:
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown, page, **ignored):
    """Write links to files of the repository that are no pages as names of these files."""
    return re.sub(
        r"\[([^\]]*)\]\((?:\.\./)+((?:tests|bench|examples|weft)\b[^)]*|\w+\.toml)\)", r"\1 (`\2`)", markdown
    )
