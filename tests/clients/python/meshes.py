"""The meshes for tests of several devices; conftest.py has the daemon."""

import kiln

FOUR = [f"cpu:{i}" for i in range(4)]
THREE = kiln.Mesh("data", FOUR[:3])
GRID = kiln.Mesh(("data", "model"), [FOUR[:2], FOUR[2:]])
