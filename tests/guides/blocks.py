"""Reads the blocks of code of the guides.

usage: python tests/guides/blocks.py > tests/guides/not_run.txt

All blocks of a page run in their order (run_page.py): `python` in one process, `pycon` as doctests among them, `sh` by bash. A
comment in the page may say more about the block after it:

    <!-- not run: REASON -->      the reason is in not_run.txt, too
    <!-- background -->           the shell's block goes on while the next ones run, until the page ends
    <!-- file NAME -->            the block is written to a file
    <!-- run
    CODE
    -->                           Python that runs but is not shown

A block without a language, or `text`, shows output. Blocks of other languages must be files or not run.
"""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("README.md", "clients/python/README.md",
         *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs/guides").glob("*.md")))  # fmt: skip
RUN = ("python", "pycon", "sh")
SHOWN = ("", "text")

_BLOCK = re.compile(r"^<!-- run\n(?P<hidden>.*?)^-->$|(?:^<!-- (?P<note>[^\n]*?) -->\n+)?^ *```(?P<language>\w*)\n(?P<code>.*?)^ *```$",
                    re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of code; `line` is its first line in the page."""

    line: int
    language: str
    code: str
    note: str = ""

    def why_not_run(self) -> "str | None":
        """Returns the reason why it does not run; None if it does, or shows output."""
        return self.note.split(": ", 1)[1] if self.note.startswith("not run: ") else None

    def mistake(self) -> "str | None":
        """Returns what is wrong with the block's language and note."""
        known = self.note in ("", "background") or re.match(r"not run: \S|file \S+$", self.note)
        if not known:
            return f"the comment \"{self.note}\" is unknown"
        if self.note == "background" and self.language != "sh":
            return "only a shell's block can run in the background"
        if self.language in SHOWN:
            return "a block of output needs no comment" if self.note else None
        if self.language not in RUN and not self.note:
            return f"{self.language} cannot run: is it a file, or is there a reason for not running it?"
        return None


def blocks_of(text: str) -> "list[Block]":
    """Returns all blocks of a page."""
    blocks = []
    for found in _BLOCK.finditer(text):
        if found["hidden"] is not None:
            blocks.append(Block(text.count("\n", 0, found.start("hidden")) + 1, "python", found["hidden"]))
        else:
            line = text.count("\n", 0, found.start("code")) + 1
            blocks.append(Block(line, found["language"], found["code"], found["note"] or ""))
    return blocks


def twenty_lines() -> str:
    """Returns the README's first training program, which guides start from."""
    found = re.search(r"## Twenty lines\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found
    return found[1]


def not_run() -> "list[str]":
    """Returns a line for each block that does not run: its page, its beginning, and the reason."""
    return [f"{page}: `{block.code.splitlines()[0]}`: {reason}"
            for page in PAGES for block in blocks_of((ROOT / page).read_text())
            if (reason := block.why_not_run()) is not None]  # fmt: skip


if __name__ == "__main__":
    print("\n".join(not_run()))
