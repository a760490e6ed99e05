"""PyTorch functions that are methods of Tensor here, such as kiln.bmm(x, y) for x.bmm(y).

If the array API has a function for the same, its documentation applies: `clip` for clamp,
`cumulative_sum` for cumsum, `astype` for float and so on.
"""

# Generated from names.txt by generate_names, except for the docstring; do not edit.
from kiln._array_api.sets import unique
from kiln.tensor import Tensor

absolute = Tensor.absolute
addcdiv = Tensor.addcdiv
addcmul = Tensor.addcmul
addmm = Tensor.addmm
allclose = Tensor.allclose
amax = Tensor.amax
amin = Tensor.amin
aminmax = Tensor.aminmax
argwhere = Tensor.argwhere
baddbmm = Tensor.baddbmm
bmm = Tensor.bmm
clamp = Tensor.clamp
clamp_max = Tensor.clamp_max
clamp_min = Tensor.clamp_min
clone = Tensor.clone
cummax = Tensor.cummax
cummin = Tensor.cummin
cumprod = Tensor.cumprod
cumsum = Tensor.cumsum
detach = Tensor.detach
dist = Tensor.dist
div = Tensor.div
dot = Tensor.dot
eq = Tensor.eq
flatten = Tensor.flatten
frac = Tensor.frac
gather = Tensor.gather
ge = Tensor.ge
gt = Tensor.gt
index_add = Tensor.index_add
index_copy = Tensor.index_copy
index_put = Tensor.index_put
index_reduce = Tensor.index_reduce
index_select = Tensor.index_select
is_floating_point = Tensor.is_floating_point
le = Tensor.le
lerp = Tensor.lerp
logcumsumexp = Tensor.logcumsumexp
logsumexp = Tensor.logsumexp
lt = Tensor.lt
masked_fill = Tensor.masked_fill
masked_select = Tensor.masked_select
mm = Tensor.mm
movedim = Tensor.movedim
mul = Tensor.mul
narrow = Tensor.narrow
ne = Tensor.ne
neg = Tensor.neg
norm = Tensor.norm
numel = Tensor.numel
permute = Tensor.permute
ravel = Tensor.ravel
repeat_interleave = Tensor.repeat_interleave
scatter = Tensor.scatter
scatter_add = Tensor.scatter_add
scatter_reduce = Tensor.scatter_reduce
select = Tensor.select
sub = Tensor.sub
swapdims = Tensor.swapdims
t = Tensor.t
take_along_dim = Tensor.take_along_dim
tensor_split = Tensor.tensor_split
transpose = Tensor.transpose
true_divide = Tensor.true_divide
unbind = Tensor.unbind
unflatten = Tensor.unflatten
unsqueeze = Tensor.unsqueeze

__all__ = [
    "absolute", "addcdiv", "addcmul", "addmm", "allclose", "amax", "amin", "aminmax", "argwhere",
    "baddbmm", "bmm", "clamp", "clamp_max", "clamp_min", "clone", "cummax", "cummin", "cumprod",
    "cumsum", "detach", "dist", "div", "dot", "eq", "flatten", "frac", "gather", "ge", "gt",
    "index_add", "index_copy", "index_put", "index_reduce", "index_select", "is_floating_point",
    "le", "lerp", "logcumsumexp", "logsumexp", "lt", "masked_fill", "masked_select", "mm",
    "movedim", "mul", "narrow", "ne", "neg", "norm", "numel", "permute", "ravel",
    "repeat_interleave", "scatter", "scatter_add", "scatter_reduce", "select", "sub", "swapdims",
    "t", "take_along_dim", "tensor_split", "transpose", "true_divide", "unbind", "unflatten",
    "unique", "unsqueeze",
]
