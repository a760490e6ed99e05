"""Records the values that PyTorch 2.x computes for the tests, and its names.

usage: /path/to/python/with/torch tests/clients/python/pytorch/record.py
"""

import inspect
import io
import json
import pathlib
import runpy
import sys
import warnings

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cases  # noqa: E402

warnings.simplefilter("ignore")


def record_values():
    """Writes recorded.npz: the values of all expressions, and PyTorch's errors."""
    arrays, counts = {}, {}
    for expression in cases.expressions():
        torch.manual_seed(0)
        try:
            found = cases.evaluate(torch, expression, cases.inputs(torch))
        except Exception as error:
            print(f"{expression}: {type(error).__name__}: {str(error)[:100]}")
            continue
        counts[expression] = len(found)
        for i, array in enumerate(found):
            arrays[f"{len(counts) - 1}.{i}"] = array
    arrays["expressions"] = np.asarray(json.dumps(counts))
    np.savez_compressed(HERE / "recorded.npz", **arrays)


def public(module):
    """Returns the names of a module's functions and classes."""
    return sorted(name for name in dir(module) if not name.startswith("_") and callable(getattr(module, name))
                  and not inspect.ismodule(getattr(module, name))
                  and not getattr(getattr(module, name), "__module__", "torch").startswith(("typing", "collections", "builtins_")))


def record_names():
    """Writes names.json: the public names of PyTorch by namespace."""
    spaces = {
        "torch.Tensor": [name for name in dir(torch.Tensor) if not name.startswith("_")],
        "torch": [*public(torch), *sorted(name for name, value in vars(torch).items() if isinstance(value, torch.dtype))],
        "torch.nn": [name for name in public(torch.nn) if name[0].isupper()],
        "torch.nn.functional": public(torch.nn.functional),
        "torch.nn.init": [name for name in public(torch.nn.init) if name.endswith("_") or name == "calculate_gain"],
        "torch.nn.utils": sorted(torch.nn.utils.__all__),
        "torch.nn.utils.rnn": sorted(torch.nn.utils.rnn.__all__),
        "torch.optim": sorted(name for name in torch.optim.__all__ if name[0].isupper()),
        "torch.optim.lr_scheduler": sorted(torch.optim.lr_scheduler.__all__),
        "torch.linalg": public(torch.linalg),
        "torch.utils.data": sorted(name for name in torch.utils.data.__all__ if not name.startswith("_")),
    }
    lines = [f"{json.dumps(space)}: {json.dumps(sorted(set(names)))}" for space, names in spaces.items()]
    version = torch.__version__.split("+")[0]
    (HERE / "names.json").write_text('{\n"version": "%s",\n' % version + ",\n".join(lines) + "\n}\n")


def record_losses():
    """Writes losses.json: what the programs print."""
    losses = {}
    sys.path.insert(0, str(HERE / "programs"))
    for path in sorted((HERE / "programs").glob("*.py")):
        if path.stem == "shared":
            continue
        output, before = io.StringIO(), (sys.stdout, sys.argv)
        sys.stdout, sys.argv = output, [str(path)]
        try:
            torch.manual_seed(0)
            runpy.run_path(str(path), run_name="__main__")
        finally:
            sys.stdout, sys.argv = before
        losses[path.stem] = [float(line.split()[-1]) for line in output.getvalue().splitlines() if line.startswith("step")]
    (HERE / "losses.json").write_text(json.dumps(losses, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for part in sys.argv[1:] or ("values", "names", "losses"):
        globals()[f"record_{part}"]()
