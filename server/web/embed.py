#!/usr/bin/env python3
"""Writes a C++ source that has files as constants (page_files.h).

usage: embed.py SOURCE FILE... --licences PACKAGE...

Libraries of Debian's packages are files like the page's own. The file licences.txt is made of the packages' copyright files.
Names of files in index.html are prefixed with the version, so that browsers may keep files for as long as they like.
"""

import argparse
import hashlib
import pathlib

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
DOCUMENTS = pathlib.Path("/usr/share/doc")
VERSION_MARK = b"@VERSION@"  # in index.html
LITERAL_BYTES_MAX = 96


def escaped(data: bytes) -> str:
    """Returns the bytes as the inside of a string literal."""
    plain = {ord(c): c for c in map(chr, range(32, 127)) if c not in '"\\?'}
    return "".join(plain.get(byte) or f"\\{byte:03o}" for byte in data)


def literal(data: bytes) -> str:
    """Returns the bytes as string literals, one a line."""
    pieces = [data[i : i + LITERAL_BYTES_MAX] for i in range(0, len(data), LITERAL_BYTES_MAX)] or [b""]
    return "\n".join(f'    "{escaped(piece)}"' for piece in pieces)


def licences_of(packages: list[str]) -> bytes:
    """Returns the copyright files of Debian's packages, each after its name."""
    texts = [f"== {package}\n\n".encode() + (DOCUMENTS / package / "copyright").read_bytes() for package in packages]
    return b"\n".join(texts)


def source_of(files: dict[str, bytes]) -> str:
    """Returns the C++ source."""
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name} {len(data)}\n".encode() + data)
    version = digest.hexdigest()[:16]
    files["index.html"] = files["index.html"].replace(VERSION_MARK, version.encode())
    rows = "\n".join(
        f'  {{"{name}", "{TYPES[pathlib.Path(name).suffix]}", {{\n{literal(data)},\n    {len(data)}}}}},'
        for name, data in sorted(files.items())
    )
    return f"""// Written by server/web/embed.py.
#include "server/web/page_files.h"

namespace kiln::web {{

static constexpr PageFile kFiles[] = {{
{rows}
}};

absl::Span<const PageFile> PageFiles() {{ return kFiles; }}
absl::string_view PageVersion() {{ return "{version}"; }}

}}  // namespace kiln::web
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--licences", nargs="+", required=True)
    arguments = parser.parse_args()
    files = {file.name: file.read_bytes() for file in arguments.files}
    files["licences.txt"] = licences_of(arguments.licences)
    arguments.source.write_text(source_of(files))


if __name__ == "__main__":
    main()
