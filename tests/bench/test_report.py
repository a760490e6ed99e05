"""The benchmark's rows and bounds."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from report import Row, asked, holds, line, write_json  # noqa: E402


def test_ratio_to_the_peer_decides():
    assert holds(Row("matmul 512x512x512, 1 core", 90, "GFLOP/s", "OpenBLAS Zen", 100))
    assert holds(Row("matmul 512x512x512, 1 core", 80, "GFLOP/s", "OpenBLAS Zen", 100)) is False
    assert holds(Row("matmul 8x4096x4096, 1 core", 90, "GFLOP/s", "OpenBLAS Zen", 100)) is False
    assert holds(Row("one replay, Unix socket", 250, "us", "gRPC stream echo", 100))
    assert holds(Row("one replay, Unix socket", 350, "us", "gRPC stream echo", 100)) is False


def test_without_a_peer_the_value_decides():
    assert holds(Row("replay of 100 small kernels, a kernel", 1.9, "us"))
    assert holds(Row("replay of 100 small kernels, a kernel", 2.1, "us")) is False
    assert holds(Row("convnet step, kernels", 61, "kernels")) is False


def test_a_row_nothing_is_asked_of():
    row = Row("pipelined replays, Unix socket", 40, "thousand/s", "gRPC stream messages", 200)
    assert holds(row) is None and asked(row) == ""
    assert "0.20 x" in line(row)


def test_json_has_what_is_needed(tmp_path):
    write_json([Row("a", 2, "us", "b", 4), Row("c", 1, "s")], tmp_path / "rows.json")
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert rows[0] == {"name": "a", "value": 2, "unit": "us", "peer": "b", "peer_value": 4, "ratio": 0.5}
    assert rows[1]["ratio"] is None
