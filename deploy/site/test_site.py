"""Builds the site, and looks at its pages: they load nothing from other hosts, and each link leads to a page."""

import html.parser
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SITE = ROOT / "build" / "site"
sys.path[:0] = [str(ROOT / "tests"), str(HERE)]

import commands  # noqa: E402
import reasons  # noqa: E402
import stage  # noqa: E402
from kilnd_process import program  # noqa: E402
from once import once  # noqa: E402

TROUBLESHOOTING = ROOT / "docs/guides/troubleshooting.md"


class Page(html.parser.HTMLParser):
    """The loads, links and anchors of a page."""

    # Attributes by which a browser loads a file by itself. A `link` is loaded except as a mere relation.
    LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
             "object": "data", "use": "href"}
    RELATIONS = {"canonical", "next", "prev", "alternate"}

    def __init__(self, text: str):
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.classes |= set(values.get("class", "").split())
        if tag in self.LOADS and self.LOADS[tag] in values:
            self.loads.append(values[self.LOADS[tag]])
        self.loads += [entry.split()[0] for entry in values.get("srcset", "").split(",") if entry.strip()]
        if tag == "link" and not set(values.get("rel", "").split()) <= self.RELATIONS:
            self.loads.append(values.get("href", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.loads += re.findall(r"url\(['\"]?([^'\")]+)", values.get("style", ""))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages of the site by their paths. One of pytest's processes builds it."""

    def build(_):
        done = subprocess.run([HERE / "build"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    once(tmp_path_factory, "site", build)
    return {path: Page(path.read_text()) for path in SITE.rglob("*.html")}


def elsewhere(address: str) -> bool:
    """Returns True for an address of another host."""
    return bool(urllib.parse.urlsplit(address).netloc)


def test_there_is_a_page_for_each_entry(pages):
    for page in stage.listed_pages():
        made = SITE / re.sub(r"README\.md$", "index.html", page).replace(".md", ".html")
        assert made in pages, page


def test_each_document_is_in_the_navigation():
    documents = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(documents) > 30
    assert sorted(documents - set(stage.listed_pages())) == []


def test_each_link_leads_to_a_page_and_an_anchor_of_it(pages):
    wrong = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links begin with the address of the site
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path))) if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors):
                wrong.append(f"{path.relative_to(SITE)}: {link}")
    assert wrong == []


def test_no_page_loads_anything_from_another_host(pages):
    wrong = [f"{path.relative_to(SITE)}: {load}" for path, page in pages.items() for load in page.loads if elsewhere(load)]
    styles = [(path, path.read_text()) for path in SITE.rglob("*.css")]
    styles += [(path, style) for path in pages for style in re.findall(r"<style[^>]*>(.*?)</style>", path.read_text(), re.DOTALL)]
    wrong += [f"{path.relative_to(SITE)}: {load}" for path, style in styles
              for load in re.findall(r"(?:url\(|@import )\s*['\"]?([^'\")\s;]+)", style) if elsewhere(load)]
    assert wrong == []
    # The theme's script would load Mermaid for a diagram, and the facts of a repository that the configuration names.
    assert not any("mermaid" in page.classes for page in pages.values())
    assert "repo_url" not in (ROOT / "docs/mkdocs.yml").read_text()


def test_what_loads_is_found():
    page = Page('<script src="//a.example/x.js"></script><link rel="stylesheet" href="https://b.example/y.css">'
                '<link rel="canonical" href="https://c.example/"><img srcset="https://d.example/z.png 2x">'
                '<p style="background: url(https://e.example/w.png)"><a href="https://f.example/">')  # fmt: skip
    assert [urllib.parse.urlsplit(load).netloc for load in page.loads if elsewhere(load)] == [
        "a.example", "b.example", "d.example", "e.example"]  # fmt: skip


def test_a_link_to_nothing_is_an_error(tmp_path):
    with pytest.raises(stage.WrongLinkError, match=r"README.md links to docs/nothing.md: there is no docs/nothing.md"):
        stage.Stage(tmp_path).linked("[a](docs/nothing.md) `[b](c)`", "README.md")


@pytest.mark.parametrize("target", ["b.md", "a.md#b"])
def test_mkdocs_finds_a_wrong_link(pages, tmp_path, target):
    """With the flags of the build, and its configuration."""
    flags = re.search(r"/mkdocs\" (build .*) --config-file", (HERE / "build").read_text())[1].split()
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/a.md").write_text(f"# A\n\n[b]({target})\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT}/docs/mkdocs.yml\ndocs_dir: pages\nsite_dir: site\nnav: [a.md]\n")  # fmt: skip
    done = subprocess.run([ROOT / "build/site_tools/bin/mkdocs", *flags, "--config-file", tmp_path / "mkdocs.yml"],
                          capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "true"})
    assert done.returncode != 0
    assert target in done.stderr


def test_comments_are_left_out(tmp_path):
    assert stage.Stage(tmp_path).linked("<!-- run\na\n-->\n\n`<!-- b -->`\n", "README.md") == "\n\n`<!-- b -->`\n"


def test_lists_are_nested_by_four_spaces():
    text = "1. One\n   more\n\n   ```sh\n   ls\n     a\n   ```\n   - two\n\nEnd\n"
    assert stage.four_spaces(text) == "1. One\n    more\n\n    ```sh\n    ls\n      a\n    ```\n    - two\n\nEnd\n"


def test_no_markdown_is_left_in_pages(pages):
    """Finds what MkDocs has not understood, such as a list in the middle of a paragraph."""
    wrong = []
    for path in pages:
        text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", path.read_text(), flags=re.DOTALL)
        wrong += [f"{path.relative_to(SITE)}: {found[0]!r}" for found in re.finditer(r"```|<p>(?:- |\| |\d+\. ).*|\n(?:- |\| ).*|\]\(\S*", text)]
    assert wrong == []


def test_commands_is_up_to_date():
    assert (ROOT / "docs/commands.md").read_text() == commands.page(program("clients/cli/kiln")), (
        "run: python3 deploy/site/commands.py build/release/clients/cli/kiln > docs/commands.md")


def test_each_reason_of_an_error_has_a_cause_and_a_remedy():
    described = reasons.described(TROUBLESHOOTING.read_text())
    known = reasons.reasons()
    assert len(known) > 100
    assert sorted(known - set(described)) == [], "docs/guides/troubleshooting.md lacks these, or OTHERS of deploy/site/reasons.py does"
    assert sorted(set(described) - known) == [], "the sources have no such reasons"
    assert [reason for reason, texts in described.items() if not all(texts)] == []


def test_each_literal_that_is_no_reason_is_there():
    assert sorted(set(reasons.OTHERS) - set(reasons.literals())) == []
