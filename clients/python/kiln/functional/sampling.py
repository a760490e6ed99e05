"""Samples images at positions that are data."""

from typing import Tuple

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln.tensor import Tensor, apply


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool = False) -> Tensor:
    """Samples images (N, C, H, W) at positions (N, P, Q, 2), as (N, C, P, Q), as in PyTorch.

    A position is (x, y): -1 is the left (upper) edge and 1 the right (lower) one, of the image, or
    with align_corners of the centres of the outer pixels. `mode` is "bilinear" or "nearest" (halves
    go to the even pixel). Outside of the image values are zero, or with padding_mode "border" those
    of the nearest pixels inside. Gradients flow to the image, and with bilinear to the grid. Both
    are floats; the result has the image's dtype. Raises InvalidArgument for other shapes and modes.

    >>> image = kiln.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> places = kiln.tensor([[[[0.0, 0.0], [-0.5, 0.5]]]])
    >>> F.grid_sample(image, places).tolist()
    [[[[2.5, 3.0]]]]
    """
    if input.ndim != 4 or grid.ndim != 4 or grid.shape[-1] != 2 or input.shape[0] != grid.shape[0]:
        raise InvalidArgument(
            f"grid_sample of input {input.shape} at grid {grid.shape}; they must be (N, C, H, W) "
            "and (N, P, Q, 2)")
    if mode not in ("bilinear", "nearest"):
        raise InvalidArgument(
            f'grid_sample\'s mode is {mode!r}; it must be "bilinear" or "nearest"')
    if padding_mode not in ("zeros", "border"):
        raise InvalidArgument(
            f'grid_sample\'s padding_mode is {padding_mode!r}; it must be "zeros" or "border"')
    if not (input.dtype.is_float and grid.dtype.is_float):
        raise InvalidArgument(
            f"grid_sample of {input.dtype.name} at {grid.dtype.name}; both must be floats")
    if 0 in input.shape[2:]:
        raise InvalidArgument(f"grid_sample of input {input.shape}, an image without pixels")
    batch, rows, columns, _ = grid.shape
    places = grid.cast(dtypes.float32) if grid.dtype.itemsize < 4 else grid
    places = places.reshape(batch, 1, rows * columns, 2)
    y, x = (_pixel(places[..., i], input.shape[3 - i], padding_mode, align_corners)
            for i in (1, 0))
    flat = input.reshape(*input.shape[:2], -1)
    if mode == "nearest":
        result = _read(flat, input.shape[2:], y.round(), x.round())
    else:
        result = _blended(flat, input.shape[2:], y, x)
    return result.cast(input.dtype).reshape(batch, input.shape[1], rows, columns)


def _pixel(place: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Converts [-1, 1] to the number of a pixel along a dimension."""
    pixel = (place + 1.0) * ((size - 1) / 2) if align_corners else (
        (place + 1.0) * (size / 2) - 0.5)
    return pixel.clamp(0.0, size - 1.0) if padding_mode == "border" else pixel


def _read(flat: Tensor, size: Tuple[int, ...], y: Tensor, x: Tensor) -> Tensor:
    """Returns the pixels at whole numbers (N, 1, places); zeros outside."""
    height, width = size
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    index = y.cast(dtypes.int64) * width + x.cast(dtypes.int64)
    index = apply("where", (inside, index, -1))
    return flat._op("gather_elements", index.detach(), axis=2)


def _blended(flat: Tensor, size: Tuple[int, ...], y: Tensor, x: Tensor) -> Tensor:
    """Blends the four pixels around each place by their distances from it."""
    # The grid's gradient is that of the distances; the choice of pixels has none.
    top, left = y.floor().detach(), x.floor().detach()
    down, right = y - top, x - left
    result = _read(flat, size, top, left) * ((1.0 - down) * (1.0 - right))
    result = result + _read(flat, size, top, left + 1.0) * ((1.0 - down) * right)
    result = result + _read(flat, size, top + 1.0, left) * (down * (1.0 - right))
    return result + _read(flat, size, top + 1.0, left + 1.0) * (down * right)
