"""torch.backends: settings of PyTorch's own libraries, which Kiln does not use."""

from typing import Any

from kiln._graph import matmul_precision
from kiln.torch import _device


class _Settings:
    """Settings that may be set, and read again."""

    def __init__(self, available: bool, **values: Any) -> None:
        self._available = available
        vars(self).update(values)

    def is_available(self) -> bool:
        """Returns whether PyTorch's library is used."""
        return self._available

    is_built = is_available

    def version(self) -> None:
        """Returns None: the library is not used."""

    def flags(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a context without effect."""
        return _Context()


class _Context:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


class _Matmul:
    """torch.backends.cuda.matmul: allow_tf32 is the precision of float32 products."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may be less precise."""
        return matmul_precision.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, wanted: bool) -> None:
        matmul_precision.set_float32_matmul_precision("high" if wanted else "highest")


class _Cuda(_Settings):
    def is_built(self) -> bool:
        """Returns whether there is an accelerator."""
        return bool(_device.accelerators())

    def sdp_kernel(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a context without effect."""
        return _Context()

    def _set(self, wanted: bool) -> None:
        """Does nothing: Kiln has one implementation of attention."""

    def _get(self) -> bool:
        """Returns True."""
        return True

    enable_flash_sdp = enable_math_sdp = enable_mem_efficient_sdp = enable_cudnn_sdp = _set
    flash_sdp_enabled = math_sdp_enabled = mem_efficient_sdp_enabled = _get


cudnn = _Settings(False, enabled=True, benchmark=False, deterministic=True, allow_tf32=True,
                  benchmark_limit=10)
cuda = _Cuda(False, matmul=_Matmul())
mps = _Settings(False)
mkl = mkldnn = openmp = _Settings(False, enabled=True)
opt_einsum = _Settings(False, enabled=False, strategy=None)
