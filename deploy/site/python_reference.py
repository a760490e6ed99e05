"""Makes the pages of the Python client's public names from their docstrings."""

import importlib
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "clients/python"), str(ROOT / "tests/clients/python")]

import public_api  # noqa: E402

FOLDER = "docs/python"


def escaped(line: str) -> str:
    """Returns a line of a docstring, in which Markdown sees nothing but code in backquotes."""
    return re.sub(r"`[^`]*`|([*_<\[\]])", lambda found: "\\" + found[1] if found[1] else found[0], line)


def markdown(docstring: str) -> str:
    """Returns a docstring with its examples as blocks of code."""
    lines: list[str] = []
    in_example = False
    for line in docstring.split("\n"):
        if in_example and not line.strip():
            lines.append("```")
            in_example = False
        elif not in_example and line.startswith(">>>"):
            lines += ["", "```pycon"]
            in_example = True
        lines.append(line if in_example else escaped(line))
    return "\n".join([*lines, "```"] if in_example else lines) + "\n"


def entry(level: int, name: str, value: object) -> str:
    """Returns the section of a name."""
    text = f"{'#' * level} {escaped(name)}\n\n"
    kind = "class " if inspect.isclass(value) else ""
    if kind or inspect.isroutine(value):
        text += f"```python\n{kind}{name}{public_api.parameters(value)}\n```\n\n"
    return text + markdown(inspect.getdoc(value) or "") + "\n"


def page(module_name: str, described: dict[int, tuple[str, str]]) -> str:
    """Returns the page of a module. A name of an earlier page is a link to it; `described` has page and name by id."""
    module = importlib.import_module(module_name)
    text = f"# {module_name}\n\n{markdown(inspect.getdoc(module) or '')}\n"
    elsewhere: list[str] = []
    listed = [(name, getattr(module, name)) for name in public_api.names_of(module)]
    classes = {value for _, value in listed if inspect.isclass(value)}
    for name, value in listed:
        if inspect.ismodule(value) or not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if id(value) in described:
            where, first = described[id(value)]
            elsewhere.append(f"[`{name}`]({where}.md#{first.lower()})")
            continue
        described[id(value)] = module_name, name
        text += entry(2, name, value)
        if inspect.isclass(value):
            for member, function in sorted(public_api.members(value, classes).items()):
                if inspect.getdoc(function):
                    text += entry(3, f"{name}.{member}", function)
    if elsewhere:
        text += f"## Also in {module_name}\n\n{', '.join(elsewhere)}\n"
    return text


def pages() -> dict[str, str]:
    """Returns all pages by their paths."""
    described: dict[int, tuple[str, str]] = {}
    made = {f"{FOLDER}/{name}.md": page(name, described) for name in public_api.MODULES}
    summaries = [f"- [`{name}`]({name}.md): {(inspect.getdoc(importlib.import_module(name)) or '').splitlines()[0]}\n"
                 for name in public_api.MODULES]
    made[f"{FOLDER}/index.md"] = (
        "# Python modules\n\nThe public names of the client with their docstrings, whose examples are run by the tests. "
        "`help(kiln.nn.Linear)` shows the same.\n\n" + "".join(summaries))
    return made
