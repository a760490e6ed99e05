"""Records the values that PyTorch 2.x computes for the tests, and its names.

usage: /path/to/python/with/torch tests/clients/python/pytorch/record.py
"""

import fnmatch
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
import torch_cases  # noqa: E402
import torch_distributions  # noqa: E402
import torch_edges  # noqa: E402
import torch_functions  # noqa: E402

warnings.simplefilter("ignore")


def record_values():
    """Writes recorded.npz: the values of all expressions, and PyTorch's errors."""
    arrays, counts = {}, {}
    for expression in torch_cases.expressions():
        torch.manual_seed(0)
        try:
            found = torch_cases.evaluate(torch, expression, torch_cases.inputs(torch))
        except Exception as error:
            print(f"{expression}: {type(error).__name__}: {str(error)[:100]}")
            continue
        counts[expression] = len(found)
        for i, array in enumerate(found):
            arrays[f"{len(counts) - 1}.{i}"] = array
    arrays["expressions"] = np.asarray(json.dumps(counts))
    np.savez_compressed(HERE / "recorded.npz", **arrays)


def record_edges():
    """Writes recorded_edges.npz: the values of torch_edges.py. Raises if PyTorch accepts a refused expression."""
    arrays, counts = {}, {}
    for number, expression in enumerate(torch_edges.expressions()):
        found = torch_cases.flat(eval(expression, torch_edges.names(torch)))
        counts[expression] = len(found)
        for i, array in enumerate(found):
            arrays[f"{number}.{i}"] = array
    for expression in torch_edges.refused():
        try:
            value = torch_cases.flat(eval(expression, torch_edges.names(torch)))
        except Exception:
            continue
        raise ValueError(f"PyTorch computes {expression}: {value}")
    arrays["expressions"] = np.asarray(json.dumps([counts, torch_edges.refused()]))
    np.savez_compressed(HERE / "recorded_edges.npz", **arrays)


def record_functions():
    """Writes recorded_functions.npz: the results of torch_functions.py and torch_distributions.py."""
    arrays, counts = {}, {}
    for module in (torch_functions, torch_distributions):
        for name, case in module.cases(torch).items():
            found = torch_cases.flat(case())
            counts[f"{module.__name__}/{name}"] = len(found)
            for i, array in enumerate(found):
                arrays[f"{len(counts) - 1}.{i}"] = array
    arrays["cases"] = np.asarray(json.dumps(counts))
    np.savez_compressed(HERE / "recorded_functions.npz", **arrays)


# Names that have nothing to do with dense tensors of real numbers: reasons, and patterns of names.
OUTSIDE = {
    "complex numbers": "cdouble cfloat chalf complex complex32 complex64 complex128 bcomplex32 imag polar stft istft view_as_* eig "
                       "eigvals Complex*",
    "sparse tensors": "*sparse* *crow_indices* *ccol_indices* col_indices* row_indices* indices* values* coalesce is_coalesced dense_dim smm "
                      "dsmm hsmm hspmm spmm saddmm sspaddmm _nnz",
    "quantized and packed numbers": "*quant* q_* qscheme int_repr qint* quint* fbgemm_* bits* bit int1 int2 int3 int4 int5 int6 int7 "
                                    "uint1 uint2 uint3 uint4 uint5 uint6 uint7 float4_* float8_e4m3fnuz float8_e5m2fnuz "
                                    "float8_e8m0fnu fake_* fused_moving_avg* Q* scaled_* ScalingType SwizzleType",
    "kernels of PyTorch's backends": "cudnn_* mkldnn_* miopen_* native_* batch_norm_* to_mkldnn ipu mtia xpu is_vulkan_available "
                                     "convolution init_num_threads sym_constrain* record_stream module_load",
    "TorchScript, export and PyTorch's own machinery":
        "*Type *Storage* Alias* Aggregation* Argument* Benchmark* Block BufferDict CallStack Capsule Code Compilation* Complete* "
        "Concrete* DeepCopy* Deserialization* DeviceObjType Disable* Dispatch* ErrorReport Exclude* ExecutionPlan FatalError FileCheck "
        "FunctionSchema Future Gradient Graph* IODescriptor JITException LiteScript* Locking* Logger* ModuleDict Node Noop* OperatorInfo "
        "ParameterDict PyTorchFile* Script* Serialization* StaticModule StreamObj* Sym* Tag Throughput* TracingState Type Use Value "
        "autocast_*crement* classproperty clear_autocast_cache compiled_with* fork wait get_file_path import_ir* is_anomaly* "
        "is_autocast_*_enabled is_autocast_cache* get_autocast_* merge_type* parse_* prepare_multi* profiler_* set_anomaly* "
        "set_autocast_* sym_* thread_safe_generator unify_type* to_dlpack from_file hash_tensor storage storage_type untyped_storage "
        "const_data_ptr grad_dtype slice_inverse DType Tensor assert_int_or_pair boolean_dispatch handle_torch* has_torch* "
        "functional_datapipe guaranteed* *DataPipe DataChunk argument_validation non_deterministic runtime_validation* "
        "get_device_module get_deterministic* set_deterministic* is_deterministic* get_device reinforce resize resize_as volatile name "
        "index map2_ Uninitialized* to_padded_tensor ipu as_subclass",
    "removed or replaced in PyTorch 2": "eig lstsq lu qr symeig solve matrix_rank Container NLLLoss2d cholesky",
    "several processes": "DataParallel",
}


def outside(name):
    """Returns the reason if a name has nothing to do with dense tensors of real numbers."""
    for reason, patterns in OUTSIDE.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split()):
            return reason
    return None


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
        "torch.func": torch.func.__all__,
        "torch.autograd.functional": torch.autograd.functional.__all__,
        "torch.distributions": torch.distributions.__all__,
        "torch.utils.data": sorted(name for name in torch.utils.data.__all__ if not name.startswith("_")),
    }
    own = ("torch.nn", "torch.linalg", "torch.nn.init", "torch.optim", "torch.nn.utils", "torch.distributions")
    lines = []
    for space, names in spaces.items():
        kept = [name for name in sorted(set(names)) if not outside(name) or (
            space in own and outside(name) != "several processes" and name not in ("eig", "eigvals") and not name.startswith(
                ("Uninit", "Container", "NLLLoss2d", "polar")))]
        lines.append(f"{json.dumps(space)}: {json.dumps(kept)}")
    version = torch.__version__.split("+")[0]
    body = ",\n".join([f'"version": "{version}"', *lines])
    (HERE / "names.json").write_text(f"{{\n{body}\n}}\n")


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


def record_checkpoint():
    """Writes checkpoint.pth: state dicts of a model and an optimizer, as PyTorch saves them."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for i, value in enumerate(model.state_dict().values()):
            value.copy_(torch.arange(value.numel()).reshape(value.shape) + i)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.25)
    model(torch.arange(6.0).reshape(2, 3)).sum().backward()
    optimizer.step()
    base = torch.arange(6.0)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "note": "text",
                "half": torch.tensor([1.5, 2.5], dtype=torch.bfloat16), "turned": base.reshape(2, 3).t(), "part": base[2:4],
                "flags": torch.tensor([True, False]), "size": torch.Size([2, 3]), "dtype": torch.float32,
                "device": torch.device("cpu"), "parameter": torch.nn.Parameter(torch.ones(2)), "empty": torch.zeros(0, 2)},
               HERE / "checkpoint.pth")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for part in sys.argv[1:] or ("values", "edges", "functions", "names", "losses", "checkpoint"):
        globals()[f"record_{part}"]()
