"""Public names and their parameters do not change by accident: a change shows in review."""

import pathlib

from public_api import listing


def test_the_public_names_and_their_parameters_are_the_listed_ones():
    text = (pathlib.Path(__file__).resolve().parent / "public_api.txt").read_text()
    before, now = set(text.splitlines()), set(listing())
    assert now == before, (
        f"gone: {sorted(before - now)}; new: {sorted(now - before)}; if that is meant, "
        "run public_api.py anew")
