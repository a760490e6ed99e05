"""Copies the pages of the documentation site into a folder, under their paths in the repository.

usage: python deploy/site/stage.py FOLDER

The pages are those that docs/mkdocs.yml lists, and all documents that these link to. A link to a source file or a folder becomes
one to a page that shows it. The reference of the Python client is generated from its docstrings (python_reference.py), so the
client's packages must be installed. An unknown target of a link is an error.
"""

import os
import pathlib
import re
import shutil
import sys

import python_reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = {".cc": "cpp", ".h": "cpp", ".py": "python", ".toml": "toml", ".yml": "yaml", ".proto": "protobuf", ".service": "ini"}
IMAGES = (".png", ".svg")
# Its links are those of the bundle's folder (deploy/bundle); the site has a list of the files instead.
NOT_PAGES = ("deploy/portable/README.md",)
# Blocks and spans of code, comments, and the targets of links.
TOKENS = re.compile(r"^ *(`{3,})[^\n]*\n.*?^ *\1 *$|`[^`\n]+`|<!--.*?-->|\]\((?P<target>[^()\s]+)\)", re.MULTILINE | re.DOTALL)


class WrongLinkError(Exception):
    """A link to nothing."""


def listed_pages() -> list[str]:
    """Returns the paths of the pages in the site's navigation."""
    return re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", (ROOT / "docs/mkdocs.yml").read_text(), re.MULTILINE)


def source_page(path: str) -> str:
    """Returns a page that shows a source file, or lists a folder; it is not found by searching."""
    shown = ROOT / path
    page = f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    if shown.is_dir():
        return page + "".join(f"- `{file.name}`\n" for file in sorted(shown.iterdir()))
    return page + f"``````{LANGUAGES.get(shown.suffix, 'text')}\n{shown.read_text()}``````\n"


class Stage:
    """The folder of the pages, and the pages that are still to be copied."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.waiting: list[str] = []
        self.seen: set[str] = set()

    def write(self, path: str, text: str) -> None:
        """Writes a page."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def want(self, path: str) -> str:
        """Returns the page for a path of the repository, which will be copied."""
        if not (ROOT / path).exists():
            raise WrongLinkError(f"there is no {path}")
        if (ROOT / path / "README.md").is_file() and f"{path}/README.md" not in NOT_PAGES:
            path += "/README.md"
        elif pathlib.PurePath(path).suffix not in (".md", *IMAGES):
            path += "/index.md" if (ROOT / path).is_dir() else ".md"
        if path not in self.seen:
            self.seen.add(path)
            self.waiting.append(path)
        return path

    def linked(self, text: str, path: str) -> str:
        """Returns a page's text with links to pages of the site, and without comments."""
        here = os.path.dirname(path)

        def replace(found: "re.Match[str]") -> str:
            target = found["target"]
            if found[0].startswith("<!--"):
                return ""
            if target is None or re.match(r"\w+:|#", target):
                return found[0]
            file, mark, anchor = target.partition("#")
            try:
                page = self.want(os.path.normpath(os.path.join(here, file)))
            except WrongLinkError as error:
                raise WrongLinkError(f"{path} links to {target}: {error}") from None
            return f"]({os.path.relpath(page, here or '.')}{mark}{anchor})"

        return TOKENS.sub(replace, text)

    def copy(self, path: str) -> None:
        """Copies a page of the repository, or makes that of a source file."""
        if path.endswith(IMAGES):
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.folder / path)
        elif (ROOT / path).is_file():
            self.write(path, four_spaces(self.linked((ROOT / path).read_text(), path)))
        else:
            self.write(path, self.linked(source_page(re.sub(r"(/index)?\.md$", "", path)), path))


def four_spaces(text: str) -> str:
    """Returns a page whose lists are nested by four spaces, with a blank line after an item of several paragraphs.

    MkDocs needs both; in the repository items are nested by the width of their bullets.
    """
    lines: list[str] = []
    columns: list[int] = []  # where the text of each open item begins
    fence = ""
    has_paragraphs = False  # the open item
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if line.strip() and not fence:
            while columns and indent < columns[-1]:
                columns.pop()
                if has_paragraphs and lines[-1]:
                    lines.append("")
                has_paragraphs = False
        has_paragraphs |= bool(columns) and not line.strip()
        depth = len(columns)
        lines.append(" " * 4 * depth + line[columns[-1] if columns else 0:] if line.strip() else "")
        if found := re.match(r" *(`{3,})", line):
            fence = "" if fence and found[1] == fence else fence or found[1]
        elif not fence and (item := re.match(r" *(?:[-*]|\d+\.) +", line)):
            columns.append(item.end())
    return "\n".join(lines)


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    stage = Stage(folder)
    for path, text in python_reference.pages().items():
        stage.write(path, text)
    try:
        for page in listed_pages():
            if not (folder / page).exists():
                stage.want(page)
        while stage.waiting:
            stage.copy(stage.waiting.pop())
    except WrongLinkError as error:
        print(f"deploy/site: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
