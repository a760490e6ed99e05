"""Expressions that kiln.torch and PyTorch compute alike; recorded.npz has PyTorch's values.

Each entry of BOTH is a name and arguments: as a function, torch.NAME(ARGUMENTS), and as a method of the first argument.
Entries of IN_PLACE are methods that change a copy of the first argument. The others are whole expressions.
"""

import numpy as np


def inputs(torch):
    """Returns the variables of the expressions."""
    random = np.random.default_rng(7)

    def floats(*shape, low=-2.0, high=2.0):
        return torch.tensor(random.uniform(low, high, shape).astype(np.float32))

    def ints(*shape, low=-5, high=6):
        return torch.tensor(random.integers(low, high, shape))

    found = {
        "x": floats(3, 4), "y": floats(3, 4), "z": floats(2, 3, 4), "v": floats(4), "w": floats(4), "c": floats(2, 3),
        "p": floats(3, 4, low=0.1, high=3.0), "q": floats(3, 4, low=0.1, high=3.0), "u": floats(3, 4, low=0.05, high=0.95),
        "big": floats(3, 4, low=1.5, high=6.0), "i": ints(3, 4), "j": ints(3, 4, low=1, high=6), "k": ints(4, low=0, high=3),
        "bits": ints(3, 4, low=0, high=16), "b": torch.tensor(random.integers(0, 2, (3, 4)) == 1),
        "d": torch.tensor(random.integers(0, 2, (3, 4)) == 1), "m": floats(4, 4), "n": floats(4, 3), "g": floats(2, 4, 5),
        "img": floats(2, 4, 6, 6), "seq": floats(2, 4, 9), "vol": floats(1, 2, 4, 4, 4), "labels": ints(3, low=0, high=4),
        "sign": torch.tensor(np.array([1.0, -1.0, 1.0], np.float32)), "one": floats(1),
        "s": torch.tensor(np.array([[3.0, 1.0, 2.0], [2.0, 2.0, 1.0]], np.float32)), "double": floats(3, 4).double(),
        "vec3": floats(5, 3), "wide3": floats(5, 3),
    }
    found["spd"] = found["m"] @ found["m"].t() + 4 * torch.eye(4)
    found["nans"] = found["x"].clone()
    found["nans"][0, 1] = float("nan")
    found["nans"][2, 3] = float("nan")
    found["infs"] = found["x"].clone()
    found["infs"][0, 0] = float("inf")
    found["infs"][1, 1] = -float("inf")
    found["infs"][2, 2] = float("nan")
    return found


BOTH = """
abs x; absolute x; acos u; acosh big; add x, y; add i, 2.5; add x, y, alpha=3; addbmm n.t()[:, :2].reshape(3, 2) * 0, z[:, :, :2], z.transpose(1, 2)[:, :2, :2]
addcdiv x, y, p; addcmul x, y, p, value=2; addmm m[:3, :3], x, n, beta=0.5, alpha=2; addmv v, m, w; addr m, v, w; adjoint x
all b; all b, 1; allclose x, x + 1e-9; amax z, (0, 1); amin z, 1, True; aminmax x; angle x; any b; any b, 0
arccos u; arccosh big; arcsin u; arcsinh x; arctan x; arctan2 x, y; arctanh u; argmax x; argmax x, 1; argmin x, 0, True
argsort x, 1; argwhere b; asin u; asinh x; atan x; atan2 x, y; atanh u; baddbmm z[:, :, :3], z, z.transpose(1, 2)
bincount k; bitwise_and bits, j; bitwise_left_shift bits, 2; bitwise_not i; bitwise_or bits, j; bitwise_right_shift bits, 1
bitwise_xor bits, j; bmm z, z.transpose(1, 2); ceil x; chunk x, 3, 1; clamp x, -1, 1; clamp_max x, 0.5; clamp_min x, 0.5
clip x, max=0.0; clone x; conj x; conj_physical x; copysign x, y; corrcoef x; cos x; cosh x; count_nonzero b; count_nonzero i, 1
cov x; cross vec3, wide3; cummax x, 1; cummin x, 0; cumprod x, 1; cumsum i, 0; deg2rad x; det m; detach x; diag v; diag m, 1
diag_embed x; diagflat v; diagonal m, 1; diagonal_scatter m, v; diff x; diff v, 2; digamma p; dist x, y; dist x, y, 1; div x, y
div i, j; div i, j, rounding_mode="floor"; div x, y, rounding_mode="trunc"; divide x, 2; dot v, w; dsplit z, 2; eq i, j
equal x, x; erf x; erfc x; erfinv u; exp x; exp2 x; expm1 x; fix x; flatten z, 1; flip x, (0, 1); fliplr x; flipud x
float_power x, 2; floor x; floor_divide i, j; floor_divide x, y; fmax nans, x; fmin nans, x; fmod x, y; frac x; frexp x
gather x, 1, k.reshape(1, 4).expand(3, 4); gcd i, j; ge x, 0; ger v, w; greater x, y; greater_equal x, y; gt i, j
heaviside x, y; hardshrink x; histc x, 4, -2, 2; hsplit x, 2; hypot x, y; i0 x; index_add x, 0, torch.tensor([2, 0, 2]), y; index_copy x, 0, torch.tensor([2, 0]), y[:2]
index_fill x, 1, torch.tensor([0, 2]), -1.0; index_put x, (torch.tensor([0, 1]), torch.tensor([1, 2])), torch.tensor([9.0, 8.0])
index_reduce x, 0, torch.tensor([0, 2, 0]), p, "prod"; index_select x, 1, torch.tensor([3, 0]); inner x, y; inverse m
isclose x, x + 1e-9; isfinite infs; isinf infs; isnan nans; isneginf infs; isposinf infs; isreal x; is_complex x; is_conj x
is_floating_point i; is_inference x; is_neg x; is_same_size x, y; is_signed i; is_distributed x; is_nonzero one
kron m, x; kthvalue x, 2; kthvalue x, 2, 0, True; lcm j, j + 1; ldexp x, k; le x, 0; lerp x, y, 0.25; lerp x, y, p; less x, y
less_equal i, j; lgamma p; log p; log10 p; log1p p; log2 p; log_softmax x, 1; logaddexp x, y; logaddexp2 x, y; logcumsumexp x, 1
logdet spd; logical_and b, d; logical_not i; logical_or b, d; logical_xor b, d; logit u; logit u, 0.2; logsumexp x, 1
logsumexp x, (0, 1), True; lt x, y; masked_fill x, b, 0.5; masked_scatter x, b, y; masked_select x, b; matmul x, m
matmul m, v; matrix_power m, 3; matrix_power spd, -1; max x; max x, 1; max x, 0, True; max x, y; maximum i, j; mean x; mean x, 1
mean z, (0, 2), True; median s; median s, 1; min x; min x, 1; min x, y; minimum x, y; mm x, m; mode i; mode i, 0; moveaxis z, 0, 2
movedim z, (0, 1), (2, 0); msort x; mul x, y; mul i, 1.5; multiply x, 3; mv m, v; mvlgamma big, 2; nan_to_num infs; nan_to_num infs, 1.0, 2.0, -2.0
nanmean nans; nanmean nans, 1; nanmedian nans; nanmedian nans, 1; nanquantile nans, 0.4, 1; nansum nans; nansum nans, 0; narrow x, 1, 1, 2
narrow_copy x, 0, 1, 2; ne i, j; neg x; negative i; nextafter x, y; nonzero b; norm x; norm x, 1, 1; norm x, "fro", (0, 1); not_equal x, y
numel x; outer v, w; permute z, (2, 0, 1); positive x; pow p, 2.5; pow i, 3; pow p, q; prod x, 1; prod i; put m, torch.tensor([1, 9]), torch.tensor([5.0, 6.0])
quantile x, 0.3; quantile x, torch.tensor([0.1, 0.6]), 1, True; quantile x, 0.4, 0, interpolation="nearest"; rad2deg x; ravel z
reciprocal p; relu x; remainder i, j; remainder x, y; renorm x, 2, 0, 1.0; repeat_interleave v, 2; repeat_interleave x, torch.tensor([1, 0, 2]), 0
reshape z, (3, -1); resolve_conj x; resolve_neg x; roll x, 1; roll x, (1, 2), (0, 1); rot90 x; rot90 x, 2; rot90 x, 3, (1, 0); round x * 3
round x, decimals=1; rsqrt p; scatter x, 1, torch.tensor([[0, 1], [2, 3], [1, 0]]), y; scatter_add x, 0, torch.tensor([[0, 1, 2, 0]]), y
scatter_reduce x, 1, torch.tensor([[0, 0], [1, 1], [3, 3]]), y, "amax"; scatter_reduce x, 1, torch.tensor([[0, 0], [1, 1], [3, 3]]), y, "mean"
select z, 1, 2; select_scatter x, v, 0, 1; sgn i; sigmoid x; sign x; signbit x; sin x; sinc x; sinh x; slice_scatter x, y[:2], 0, 1; slogdet m
softmax x, 0; softmax x, 1, torch.float64; sort x; sort s, 1, True; split x, 2; split x, [1, 3], 1; split_with_sizes x, [1, 3], 1; sqrt p; square x
squeeze z.unsqueeze(1); squeeze z.unsqueeze(1), 1; squeeze z[:, None, None], (1, 2); std x; std x, 1; std x, 0, False; std x, dim=1, correction=0, keepdim=True
sub x, y; sub i, j, alpha=2; subtract x, 1; sum x; sum i, 1; sum z, (0, 2), keepdim=True; sum b; sum x, 1, dtype=torch.float64; swapaxes z, 0, 1
swapdims z, 0, 2; t x; take x, torch.tensor([0, 5, 11]); take_along_dim x, torch.tensor([[0], [3], [2]]), 1; tan x; tanh x; tensor_split v, 3
tensor_split x, (1, 3), 1; tile v, (2, 2); topk x, 2; topk x, 2, 0, False; trace m; transpose z, 1, 2; tril m, 1; triu m, -1; true_divide i, j
trunc x; unbind x, 1; unflatten x, 1, (2, -1); unique i; unique i, return_inverse=True, return_counts=True; unique_consecutive torch.tensor([1, 1, 2, 2, 2, 1])
unique_consecutive torch.tensor([1, 1, 2]), return_inverse=True, return_counts=True; unsafe_chunk x, 2, 1; unsafe_split x, 2; unsafe_split_with_sizes x, [1, 2]
unsqueeze x, 1; var x; var x, 1, True; var x, (0, 1), correction=2; vdot v, w; vsplit x, 3; where b, x, y; xlogy x, p; as_strided m, (2, 2), (4, 1)
histogram x, 4, range=(-2.0, 2.0); prelu x, one; isin i, j; polygamma 1, p; bucketize x, torch.tensor([-1.0, 0.0, 1.0]); dsplit z, [1, 2]
logcumsumexp x, 0; addbmm m[:3, :3], z[:, :, :3], z[:, :, :3]; quantile x, 0.5; sgn x; erfinv u * 0.5; mvlgamma big, 1
"""

# As functions alone, and as methods alone.
FUNCTIONS = """
torch.arange(5); torch.arange(1, 2, 0.25); torch.arange(5.0); torch.range(1, 4); torch.linspace(0, 1, 5); torch.logspace(0, 2, 3); torch.eye(3, 4)
torch.full((2, 2), 7); torch.full((2,), 1.5); torch.zeros(2, 3); torch.ones((2, 3), dtype=torch.int32); torch.zeros_like(i); torch.ones_like(x)
torch.full_like(i, 3); torch.empty(0, 3); torch.empty_like(x[:0]); torch.empty_strided((0, 2), (1, 1)); torch.empty_permuted((0, 2), (0, 1))
torch.tensor([1, 2]); torch.tensor([[1.5], [2]]); torch.tensor(True); torch.as_tensor([1, 2.5]); torch.asarray([1, 2]); torch.scalar_tensor(3)
torch.from_numpy(np.arange(3.0)); torch.frombuffer(np.arange(3, dtype=np.int32).tobytes(), dtype=torch.int32); torch.from_dlpack(torch.arange(3))
torch.cat([x, y]); torch.cat((x, i), 1); torch.concat([x, y], dim=1); torch.concatenate([v, w]); torch.stack([v, w], 1); torch.hstack([v, w])
torch.hstack([x, y]); torch.vstack([v, w]); torch.row_stack([v, w]); torch.dstack([x, y]); torch.column_stack([v, m]); torch.atleast_1d(one[0])
torch.atleast_2d(v); torch.atleast_3d(x); torch.atleast_1d(x, one[0])[1]; torch.broadcast_tensors(v, x)[0]; torch.broadcast_to(v, (3, 4))
torch.broadcast_shapes((2, 1), (3,)); torch.meshgrid(v, w[:2], indexing="ij"); torch.meshgrid(v, w[:2], indexing="xy"); torch.cartesian_prod(v, w)
torch.combinations(v); torch.combinations(v, 2, True); torch.block_diag(m, v, one[0]); torch.unravel_index(torch.tensor([5, 7]), (3, 4))
torch.tril_indices(3, 4); torch.triu_indices(3, 3, 1); torch.std_mean(x); torch.std_mean(x, 1); torch.var_mean(x, 0, True); torch.trapezoid(x)
torch.trapezoid(x, dx=0.5, dim=0); torch.trapz(v, torch.tensor([0.0, 1.0, 3.0, 4.0])); torch.cumulative_trapezoid(x); torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), p)
torch.searchsorted(torch.tensor([[1.0, 2.0], [0.0, 3.0]]), torch.tensor([[1.0], [2.0]]), right=True); torch.chain_matmul(x, m, n); torch.einsum("ij,jk->ik", x, m)
torch.einsum("bij, bkj -> bik", z, z); torch.tensordot(z, x, dims=([1, 2], [0, 1])); torch.tensordot(x, m, 1); torch.cdist(x, y); torch.cdist(x, y, 1.0)
torch.rsub(x, y); torch.polygamma(2, p); torch.where(b); torch.where(x > 0, x, 0.0); torch.where(b, 1, 2); torch.real(x); torch.gradient(v); torch.vander(v)
torch.hann_window(6); torch.hann_window(6, periodic=False); torch.hamming_window(5); torch.blackman_window(5); torch.bartlett_window(5); torch.norm_except_dim(m)
torch.is_tensor(x); torch.is_storage(x); torch.typename(i); torch.result_type(i, 1.5); torch.promote_types(torch.int32, torch.float16)
torch.can_cast(torch.float32, torch.int32); torch.finfo(torch.float32).eps; torch.iinfo(torch.int16).max; torch.get_default_dtype()
torch.add(x, 2); torch.mul(x, torch.tensor(2.0, dtype=torch.float64)); i * torch.tensor(2.5); double + x[0, 0]; x + i
i / j; i // j; i % j; 2 / p; 2 ** p; 1 - x; x > torch.tensor(0.0, dtype=torch.float64); -x; ~i; b & d; b ^ d; bits << 1; bits >> 1; x @ m; abs(x)
torch.as_strided_copy(m, (2, 2), (4, 1)); torch.detach_copy(x); torch.diagonal_copy(m)
torch.expand_copy(v, (2, 4)); torch.permute_copy(x, (1, 0)); torch.select_copy(x, 0, 1); torch.split_copy(x, 2); torch.split_with_sizes_copy(x, [1, 2])
torch.squeeze_copy(x); torch.t_copy(x); torch.transpose_copy(x, 0, 1); torch.unbind_copy(x); torch.unfold_copy(v, 0, 2, 1); torch.unsqueeze_copy(x, 0)
torch.view_copy(x, (4, 3)); torch.fill(x, 2.0); torch.norm(x, 2, [1]); torch.constant_pad_nd(x, (1, 2), 3.0)
torch.embedding(m, k); torch.batch_norm(x, None, None, v * 0, v.abs() + 1, False, 0.1, 1e-5, False); torch.histogramdd(x[:, :2], [2, 3], range=[-2.0, 2.0, -2.0, 2.0])
torch.binary_cross_entropy_with_logits(x, u, None, None, 1); torch.vmap(lambda row: row.sum() * 2)(x); torch.numel(x); torch.max(input=x, dim=1)
torch.sum(input=x, dim=0); torch.logical_and(input=b, other=d); torch.add(x, y, out=torch.zeros(3, 4)); torch.matmul(x, m, out=torch.zeros(3, 4)); torch.Size([2, 3]).numel()
torch.Tensor([1, 2]); torch.FloatTensor([1, 2]); torch.LongTensor([1, 2]); torch.IntTensor([1]); torch.DoubleTensor([1, 2]); torch.BoolTensor([1, 0])
torch.ByteTensor([1]); torch.CharTensor([1]); torch.ShortTensor([1]); torch.HalfTensor([1.5]); torch.is_grad_enabled(); torch.is_inference_mode_enabled()
torch.get_num_threads() > 0; torch.get_num_interop_threads() > 0; torch.are_deterministic_algorithms_enabled(); torch.is_warn_always_enabled(); torch.get_float32_matmul_precision()
torch.get_default_device().type; torch.device("cuda:1").index; str(torch.device("cpu")); torch.relu_(x.clone()); torch.fill_(x.clone(), 3); torch.zero_(x.clone()); torch.detach_(x.clone())
torch.celu_(x.clone()); torch.selu_(x.clone()); torch.threshold_(x.clone(), 0.5, -1.0); torch.index_put_(x.clone(), (torch.tensor([0]), torch.tensor([1])), one); torch.rrelu_(x.clone(), 0.2, 0.2)
"""

METHODS = """
x.size(); x.size(1); x.shape; x.dim(); x.ndimension(); x.ndim; x.nelement(); x.element_size(); x.nbytes; x.itemsize; x.stride(); z.permute(2, 0, 1).stride()
z[:, 1:, ::2].stride(); z[1].storage_offset(); x.t().is_contiguous(); x.contiguous().is_contiguous(); x.t().contiguous(); x.is_leaf; x.requires_grad; x.dtype == torch.float32
x.is_cuda; x.is_cpu; x.is_sparse; x.is_quantized; x.is_meta; x.is_mkldnn; x.is_mps; x.is_xpu; x.is_xla; x.is_ipu; x.is_vulkan; x.is_maia; x.is_mtia; x.is_nested
x.is_sparse_csr; x.device.type; x.get_device(); x.layout == torch.strided; x.output_nr; x.retains_grad; x.grad; x.grad_fn; x.type(); i.type(); x.type(torch.int32)
x.type_as(i); x.to(torch.float64); x.to(i); x.to("cpu"); x.to(device="cpu", dtype=torch.float16); x.cpu(); x.float(); x.double(); x.half(); x.bfloat16().float(); x.int()
x.long(); x.short(); x.char(); b.byte(); i.bool(); one.item(); x.tolist(); x.numpy(); x.numpy(force=True); len(x); [row.sum() for row in x]
x.T; z.mT; x.H; z.mH; x.data; x.view(4, 3); x.view(-1); x.view_as(n); x.reshape_as(n); x.expand_as(z); v.expand(3, 4); x.expand(2, -1, 4); x.repeat(2, 1); v.repeat(2, 3)
v.unfold(0, 2, 1); z.unfold(2, 2, 2); x.sum_to_size(1, 4); x.new_zeros(2); x.new_ones((2, 3)); x.new_full((2,), 5.0); i.new_tensor([1.0, 2.0]); x.new_empty(0); x.new_empty_strided((0,), (1,))
x.where(b, y); x.broadcast_to(2, 3, 4); p.polygamma(1); x.is_set_to(x)
x.is_pinned(); x.dim_order(); x[1, :, None]; z[1, :, torch.tensor([0, 2])]; z[:, 1, torch.tensor([0, 2])]; z[torch.tensor([1, 0]), :, torch.tensor([0, 2])]
z[..., 1]; z[b.sum() * 0]; x[b]; x[[0, 2]]; x[[True, False, True]]; x[-1]; x[1:, ::2]; x[None]; x[torch.tensor([[0, 1], [2, 0]])]; x.index_select(0, torch.tensor([1])); x.select(0, 1)
x.argmax().item(); x.clone().fill_(2); x.clone().zero_(); x.clone().copy_(v); m.clone().fill_diagonal_(9); x.clone().resize_(2, 2); x.clone().set_(y); x.clone().squeeze_(); x.clone().unsqueeze_(0)
x.clone().t_(); x.clone().transpose_(0, 1); x.clone().swapaxes_(0, 1); x.clone().swapdims_(0, 1); x.clone().detach_(); x.clone().requires_grad_().requires_grad; x.nonzero(as_tuple=True)
x.equal(x); x.softmax(-1); x.std(unbiased=False); x.var(0); x.sum((0, 1)); x.mean((0, 1)); x.max().item(); u.bernoulli().shape; u.multinomial(2).shape; x.share_memory_().shape
x.clone().normal_().shape; x.clone().uniform_().shape; x.clone().bernoulli_(0.5).shape; x.clone().exponential_().shape; x.clone().log_normal_().shape; x.clone().cauchy_().shape; x.clone().geometric_(0.5).shape
x.clone().random_(0, 5).shape; (x * 0 + 1).bernoulli(); torch.ones(1).uniform_(2, 2); torch.ones(2).normal_(3.0, 0.0)
round(x.sum().item(), 3); float(one); int(one); bool(one > -9); complex(one); 3 in torch.tensor([1, 3]); f"{one[0]:.2f}"; repr(torch.tensor([1.0, 2.5])); str(torch.tensor([1, 2])); str(torch.tensor(1.5))
repr(torch.tensor([True, False])); repr(torch.zeros(2, 2, dtype=torch.float64)); str(torch.tensor([1e-9, 1.0])); str(torch.tensor([[1.0, -2.25], [3.5, 4.0]])); repr(torch.tensor([])); str(torch.arange(3.0))
"""

IN_PLACE = """
abs x; absolute x; acos u; acosh big; add x, y; addbmm m[:3, :3], z[:, :, :3], z[:, :, :3]; addcdiv x, y, p; addcmul x, y, p; addmm m[:3, :3], x, n; addmv v, m, w; addr m, v, w
arccos u; arccosh big; arcsin u; arcsinh x; arctan x; arctan2 x, y; arctanh u; asin u; asinh x; atan x; atan2 x, y; atanh u; baddbmm z[:, :, :3], z, z.transpose(1, 2)
bitwise_and bits, j; bitwise_left_shift bits, 1; bitwise_not i; bitwise_or bits, j; bitwise_right_shift bits, 1; bitwise_xor bits, j; ceil x; clamp x, -1, 1; clamp_max x, 0.5
clamp_min x, 0.5; clip x, -1, 1; conj_physical x; copysign x, y; cos x; cosh x; cumprod x, 1; cumsum x, 0; deg2rad x; digamma p; div x, y; divide x, 2; eq x, y; erf x; erfc x; erfinv u
exp x; exp2 x; expm1 x; fix x; float_power double, 2; floor x; floor_divide x, y; fmod x, y; frac x; gcd i, j; ge x, 0; greater x, y; greater_equal x, y; gt x, y; heaviside x, y
hypot x, y; i0 x; index_add x, 0, torch.tensor([2, 0, 2]), y; index_copy x, 0, torch.tensor([2, 0]), y[:2]; index_fill x, 1, torch.tensor([0]), 7.0; index_put x, (torch.tensor([0]), torch.tensor([1])), one
index_reduce x, 0, torch.tensor([0, 2, 0]), p, "prod"; lcm j, j + 1; ldexp x, k; le x, 0; lerp x, y, 0.25; less x, y; less_equal x, y; lgamma p; log p; log10 p; log1p p; log2 p
logical_and x, y; logical_not x; logical_or x, y; logical_xor x, y; logit u; lt x, y; masked_fill x, b, 0.5; masked_scatter x, b, y; mul x, y; multiply x, 2; mvlgamma big, 2; nan_to_num infs
ne x, y; neg x; negative x; nextafter x, y; not_equal x, y; polygamma p, 1; pow p, 2.5; put m, torch.tensor([1]), one; rad2deg x; reciprocal p; relu x; remainder x, y; renorm x, 2, 0, 1.0
round x; rsqrt p; scatter x, 1, torch.tensor([[0, 1]]), y; scatter_add x, 0, torch.tensor([[0, 1]]), y; scatter_reduce x, 1, torch.tensor([[0, 0]]), y, "sum"; sgn x; sigmoid x; sign x; sin x
sinc x; sinh x; sqrt p; square x; sub x, y; subtract x, 1; tan x; tanh x; tril m; triu m; true_divide x, y; trunc x; xlogy x, p
"""

FUNCTIONAL = """
F.relu(x); F.relu(x.clone(), inplace=True); F.relu_(x.clone()); F.relu6(x * 4); F.elu(x, 0.5); F.elu_(x.clone()); F.selu(x); F.selu_(x.clone()); F.celu(x, 2.0); F.celu_(x.clone()); F.leaky_relu(x, 0.1)
F.leaky_relu_(x.clone()); F.rrelu(x); F.rrelu_(x.clone()); F.hardtanh(x, -0.5, 0.5); F.hardtanh_(x.clone()); F.hardswish(x); F.hardsigmoid(x); F.silu(x); F.mish(x); F.threshold(x, 0.2, -3.0)
F.threshold_(x.clone(), 0.2, -3.0); F.gelu(x); F.gelu(x, approximate="tanh"); F.glu(x); F.sigmoid(x); F.tanh(x); F.softmax(x, dim=1); F.log_softmax(x, 1); F.softmin(x, 1); F.softplus(x); F.softshrink(x)
F.hardshrink(x); F.softsign(x); F.tanhshrink(x); F.logsigmoid(x); F.prelu(x, v); F.gumbel_softmax(x, hard=True).sum(1); F.dropout(x, 0.5, False); F.dropout1d(seq, 0.5, False); F.dropout2d(img, 0.5, False)
F.dropout3d(vol, 0.5, False); F.alpha_dropout(x, 0.5); F.feature_alpha_dropout(img, 0.5); F.linear(x, m); F.linear(x, m, v); F.bilinear(x, y, z.reshape(6, 4)[:, :, None] * torch.ones(4)); F.embedding(k, m)
F.embedding_bag(k.reshape(2, 2), m); F.embedding_bag(k, m, torch.tensor([0, 2]), mode="sum"); F.one_hot(k); F.one_hot(k, 5); F.conv1d(seq, z[:, :, :2].reshape(1, 4, 3))
F.conv2d(img, img[:, :, :3, :3], padding=1); F.conv2d(img, img[:, :2, :3, :3], groups=2, stride=2); F.conv2d(img, img[:, :, :3, :3], padding="same"); F.conv3d(vol, vol[:, :, :2, :2, :2]); F.conv_tbc(z, g[:, :4, :3], v[:3])
F.conv_transpose1d(seq, g[0].reshape(4, 1, 5)); F.conv_transpose2d(img, img.reshape(4, 2, 6, 6)[:, :, :3, :3], stride=2); F.conv_transpose3d(vol, vol.reshape(2, 1, 4, 4, 4)[:, :, :2, :2, :2]); F.unfold(img, 3); F.fold(F.unfold(img, 2), (6, 6), 2)
F.max_pool1d(seq, 3); F.max_pool2d(img, 2); F.max_pool2d(img, 3, 2, 1, return_indices=True); F.max_pool2d(img, 3, 2, ceil_mode=True); F.max_pool3d(vol, 2); F.max_pool1d_with_indices(seq, 2, 2); F.max_pool2d_with_indices(img, 2, 2)
F.max_pool3d_with_indices(vol, 2, 2); F.max_unpool1d(*F.max_pool1d(seq, 3, return_indices=True), 3); F.max_unpool2d(*F.max_pool2d(img, 2, return_indices=True), 2); F.max_unpool3d(*F.max_pool3d(vol, 2, return_indices=True), 2)
F.avg_pool1d(seq, 3); F.avg_pool2d(img, 2, padding=1); F.avg_pool3d(vol, 2); F.lp_pool1d(seq.abs(), 2, 3); F.lp_pool2d(img.abs(), 2, 2); F.lp_pool3d(vol.abs(), 2, 2); F.adaptive_avg_pool1d(seq, 4); F.adaptive_avg_pool2d(img, (2, 3))
F.adaptive_avg_pool3d(vol, 2); F.adaptive_max_pool1d(seq, 4); F.adaptive_max_pool2d(img, (2, 3)); F.adaptive_max_pool2d(img, 4, return_indices=True); F.adaptive_max_pool3d(vol, 2); F.adaptive_max_pool1d_with_indices(seq, 4)
F.adaptive_max_pool2d_with_indices(img, 4); F.adaptive_max_pool3d_with_indices(vol, 2); F.batch_norm(img, v, p[0]); F.batch_norm(img, v.clone(), p[0].clone(), training=True); F.instance_norm(img); F.layer_norm(x, (4,)); F.layer_norm(x, (4,), v, w)
F.group_norm(img, 2); F.rms_norm(x, (4,)); F.local_response_norm(img, 2); F.normalize(x); F.normalize(x, 1, 0); F.cosine_similarity(x, y); F.pairwise_distance(x, y); F.pdist(x); F.pixel_shuffle(img, 2); F.pixel_unshuffle(img, 2)
F.channel_shuffle(img, 2); F.native_channel_shuffle(img, 2); F.pad(x, (1, 2)); F.pad(x, (1, -1), value=2.0); F.pad(img, (1, 1, 2, 2), "reflect"); F.pad(seq, (1, 1), "replicate"); F.pad(img, (1, 1, 1, 1), "circular")
F.interpolate(img, scale_factor=2); F.interpolate(img, (4, 5), mode="bilinear", align_corners=False); F.upsample(img, scale_factor=2); F.upsample_nearest(img, scale_factor=2); F.upsample_bilinear(img, scale_factor=2)
F.grid_sample(img, torch.tanh(img[:, :2].permute(0, 2, 3, 1)), align_corners=False); F.affine_grid(c.reshape(1, 2, 3), (1, 1, 3, 4), align_corners=False); F.affine_grid(c.reshape(1, 2, 3), (1, 1, 3, 4), align_corners=True)
F.cross_entropy(x, labels); F.cross_entropy(x, labels, v.abs(), label_smoothing=0.1); F.cross_entropy(x, u); F.nll_loss(x, labels); F.mse_loss(x, y); F.mse_loss(x, y, reduction="sum"); F.l1_loss(x, y); F.smooth_l1_loss(x, y, beta=0.5)
F.huber_loss(x, y); F.huber_loss(x, y, "sum", 0.5); F.binary_cross_entropy(u, (x > 0).float()); F.binary_cross_entropy_with_logits(x, u); F.binary_cross_entropy_with_logits(x, u, pos_weight=p[0]); F.kl_div(x, u); F.kl_div(x, y, reduction="batchmean", log_target=True)
F.hinge_embedding_loss(x, x.sign()); F.soft_margin_loss(x, y.sign()); F.multilabel_soft_margin_loss(x, (y > 0).float()); F.cosine_embedding_loss(x, y, sign); F.margin_ranking_loss(x[:, 0], y[:, 0], sign); F.triplet_margin_loss(x, y, p)
F.triplet_margin_loss(x, y, p, swap=True); F.triplet_margin_with_distance_loss(x, y, p); F.gaussian_nll_loss(x, y, p); F.poisson_nll_loss(x, p); F.multi_margin_loss(x, labels); F.multi_margin_loss(x, labels, 2, 0.5, v.abs())
F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [1, 2, 3, 0]])); F.ctc_loss(F.log_softmax(g.permute(2, 0, 1), 2), torch.tensor([[1, 2], [3, 3]]), torch.tensor([5, 5]), torch.tensor([2, 1]))
F.ctc_loss(F.log_softmax(g.permute(2, 0, 1), 2), torch.tensor([1, 2, 3]), torch.tensor([5, 4]), torch.tensor([2, 1]), reduction="none"); F.scaled_dot_product_attention(z, z, z); F.scaled_dot_product_attention(z, z, z, is_causal=True)
F.multi_head_attention_forward(z, z, z, 4, 2, torch.cat([m, m, m]), torch.cat([v, w, v]), None, None, False, 0.0, m, v)
torch.adaptive_avg_pool1d(seq, 3); torch.adaptive_max_pool1d(seq, 3)[0]; torch.alpha_dropout(x, 0.5, False); torch.avg_pool1d(seq, 3); torch.bilinear(x, y, z.reshape(6, 4)[:, :, None] * torch.ones(4), None); torch.celu(x)
torch.channel_shuffle(img, 2); torch.conv1d(seq, z[:, :, :2].reshape(1, 4, 3)); torch.conv2d(img, img[:, :, :3, :3]); torch.conv3d(vol, vol[:, :, :2, :2, :2]); torch.conv_tbc(z, g[:, :4, :3], v[:3]); torch.conv_transpose1d(seq, g[0].reshape(4, 1, 5))
torch.conv_transpose2d(img, img.reshape(4, 2, 6, 6)); torch.conv_transpose3d(vol, vol.reshape(2, 1, 4, 4, 4)); torch.cosine_similarity(x, y); torch.dropout(x, 0.5, False); torch.feature_alpha_dropout(img, 0.5, False); torch.group_norm(img, 2)
torch.hardshrink(x); torch.layer_norm(x, (4,)); torch.max_pool1d(seq, 2); torch.max_pool1d_with_indices(seq, 2); torch.max_pool2d(img, 2); torch.max_pool3d(vol, 2); torch.pairwise_distance(x, y); torch.pdist(x); torch.pixel_shuffle(img, 2)
torch.pixel_unshuffle(img, 2); torch.prelu(x, v); torch.relu(x); torch.rms_norm(x, (4,)); torch.rrelu(x, 0.2, 0.2); torch.selu(x); torch.sigmoid(x); torch.softmax(x, 1); torch.log_softmax(x, 1); torch.tanh(x); torch.threshold(x, 0.1, 2.0)
torch.native_channel_shuffle(img, 2); torch.cosine_embedding_loss(x, y, sign); torch.hinge_embedding_loss(x, x.sign()); torch.margin_ranking_loss(x[:, 0], y[:, 0], sign)
torch.triplet_margin_loss(x, y, p); torch.ctc_loss(F.log_softmax(g.permute(2, 0, 1), 2), torch.tensor([[1, 2], [3, 3]]), torch.tensor([5, 5]), torch.tensor([2, 1]))
"""

LINALG = """
linalg.cross(vec3, wide3); linalg.cholesky(spd); linalg.cholesky_ex(spd).L; linalg.inv(m); linalg.inv_ex(m).inverse; linalg.det(m); linalg.slogdet(m); linalg.eigvalsh(spd); linalg.eigh(spd).eigenvalues; linalg.svdvals(x)
linalg.svd(x).S; linalg.solve(m, v); linalg.solve(m, m, left=False); linalg.solve_ex(m, v).result; linalg.solve_triangular(m, n, upper=True); linalg.solve_triangular(m, n.t(), upper=False, left=False); linalg.qr(n)[1].abs()
linalg.matrix_power(m, 2); linalg.matrix_rank(x); linalg.norm(x); linalg.norm(x, 1); linalg.norm(v, 3); linalg.norm(x, dim=1); linalg.vector_norm(x, 3, 1); linalg.vector_norm(x, float("inf")); linalg.matrix_norm(x); linalg.matrix_norm(x, 1)
linalg.matrix_norm(x, float("inf")); linalg.matrix_norm(x, 2); linalg.matrix_norm(x, "nuc"); linalg.matmul(x, m); linalg.diagonal(m); linalg.multi_dot([x, m, n]); linalg.cond(spd); linalg.pinv(x); linalg.matrix_exp(m); linalg.lstsq(n, v).solution
linalg.lu(m); linalg.lu_factor(m); linalg.lu_factor_ex(m).LU; linalg.lu_solve(*linalg.lu_factor(m), n); linalg.tensorinv(m.reshape(2, 2, 4), 2); linalg.tensorsolve(m.reshape(2, 2, 4), m[0].reshape(2, 2)); linalg.vander(v); linalg.vecdot(x, y)
linalg.householder_product(n, torch.tensor([0.5, 0.2, 0.1]))
"""


LAYERS = """
layer(nn.Linear(4, 3), x); layer(nn.Linear(4, 3, bias=False), x); layer(nn.Bilinear(4, 4, 2), x, y); layer(nn.Identity(), x); layer(nn.Flatten(), z); layer(nn.Unflatten(1, (2, 2)), x)
layer(nn.Conv1d(4, 2, 3, padding=1), seq); layer(nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), img); layer(nn.Conv2d(4, 2, 3, padding="same", padding_mode="reflect"), img); layer(nn.Conv3d(2, 3, 2), vol)
layer(nn.ConvTranspose1d(4, 2, 3), seq); layer(nn.ConvTranspose2d(4, 2, 3, 2, 1, 1), img); layer(nn.ConvTranspose3d(2, 2, 2), vol); layer(nn.BatchNorm1d(4), x); layer(nn.BatchNorm2d(4), img)
layer(nn.BatchNorm3d(2, affine=False), vol); layer(nn.BatchNorm2d(4).eval(), img); layer(nn.InstanceNorm1d(4, affine=True), seq); layer(nn.InstanceNorm2d(4), img); layer(nn.InstanceNorm3d(2), vol)
layer(nn.GroupNorm(2, 4), img); layer(nn.LayerNorm(4), x); layer(nn.LayerNorm([3, 4], bias=False), z); layer(nn.RMSNorm(4), x); layer(nn.LocalResponseNorm(2), img)
layer(nn.SyncBatchNorm(4).eval(), img); layer(nn.ReLU(), x); layer(nn.ReLU(inplace=True), x * 1); layer(nn.ReLU6(), x); layer(nn.LeakyReLU(0.1), x); layer(nn.PReLU(), x); layer(nn.RReLU().eval(), x); layer(nn.ELU(), x); layer(nn.CELU(), x)
layer(nn.SELU(), x); layer(nn.GELU(), x); layer(nn.GELU("tanh"), x); layer(nn.GLU(), x); layer(nn.SiLU(), x); layer(nn.Mish(), x); layer(nn.Hardswish(), x); layer(nn.Hardsigmoid(), x); layer(nn.Hardtanh(-0.5, 0.5), x)
layer(nn.Hardshrink(), x); layer(nn.Softshrink(), x); layer(nn.Tanhshrink(), x); layer(nn.Threshold(0.1, 2.0), x); layer(nn.Sigmoid(), x); layer(nn.LogSigmoid(), x); layer(nn.Softplus(), x); layer(nn.Softsign(), x)
layer(nn.Tanh(), x); layer(nn.Softmax(1), x); layer(nn.Softmax2d(), img); layer(nn.Softmin(1), x); layer(nn.LogSoftmax(dim=1), x); layer(nn.Dropout(0.5).eval(), x); layer(nn.Dropout1d().eval(), seq); layer(nn.Dropout2d().eval(), img)
layer(nn.Dropout3d().eval(), vol); layer(nn.AlphaDropout().eval(), x); layer(nn.FeatureAlphaDropout().eval(), img); layer(nn.MaxPool1d(2), seq); layer(nn.MaxPool2d(3, stride=2, padding=1), img); layer(nn.MaxPool3d(2), vol)
layer(nn.MaxPool2d(2, return_indices=True), img); nn.MaxUnpool1d(3)(*nn.MaxPool1d(3, return_indices=True)(seq)); nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(img)); nn.MaxUnpool3d(2)(*nn.MaxPool3d(2, return_indices=True)(vol))
layer(nn.AvgPool1d(3), seq); layer(nn.AvgPool2d(2, padding=1), img); layer(nn.AvgPool3d(2), vol); layer(nn.LPPool1d(2, 3), seq.abs()); layer(nn.LPPool2d(2, 2), img.abs()); layer(nn.LPPool3d(2, 2), vol.abs()); layer(nn.AdaptiveAvgPool1d(3), seq)
layer(nn.AdaptiveAvgPool2d((2, 3)), img); layer(nn.AdaptiveAvgPool2d(1), img); layer(nn.AdaptiveAvgPool3d(2), vol); layer(nn.AdaptiveMaxPool1d(3), seq); layer(nn.AdaptiveMaxPool2d(2), img); layer(nn.AdaptiveMaxPool3d(2), vol)
layer(nn.Embedding(5, 3), k); layer(nn.Embedding(5, 3, padding_idx=0), k); layer(nn.EmbeddingBag(5, 3, mode="sum"), k.reshape(2, 2)); layer(nn.PixelShuffle(2), img); layer(nn.PixelUnshuffle(2), img); layer(nn.ChannelShuffle(2), img)
layer(nn.Fold((3, 3), 2), z.reshape(1, 8, 3)[:, :, :1] * torch.ones(4)); layer(nn.Unfold(2), img); layer(nn.Upsample(scale_factor=2), img); layer(nn.UpsamplingNearest2d(scale_factor=2), img); layer(nn.UpsamplingBilinear2d(scale_factor=2), img)
layer(nn.ConstantPad1d(1, 2.0), seq); layer(nn.ConstantPad2d(1, 2.0), img); layer(nn.ConstantPad3d(1, 2.0), vol); layer(nn.ZeroPad1d(1), seq); layer(nn.ZeroPad2d((1, 2, 0, 1)), img); layer(nn.ZeroPad3d(1), vol); layer(nn.ReflectionPad1d(1), seq)
layer(nn.ReflectionPad2d(1), img); layer(nn.ReflectionPad3d(1), vol); layer(nn.ReplicationPad1d(1), seq); layer(nn.ReplicationPad2d(1), img); layer(nn.ReplicationPad3d(1), vol); layer(nn.CircularPad1d(1), seq); layer(nn.CircularPad2d(1), img)
layer(nn.CircularPad3d(1), vol); layer(nn.CosineSimilarity(), x, y); layer(nn.PairwiseDistance(), x, y); layer(nn.RNN(4, 3), z); layer(nn.RNN(4, 3, 2, "relu", batch_first=True), z); layer(nn.LSTM(4, 3, 2, bidirectional=True), z); layer(nn.GRU(4, 3), z)
layer(nn.RNNCell(4, 3), x); layer(nn.LSTMCell(4, 3), x); layer(nn.GRUCell(4, 3), x); layer(nn.MultiheadAttention(4, 2, batch_first=True), z, z, z); layer(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), z)
layer(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True, norm_first=True), 2, enable_nested_tensor=False), z); layer(nn.TransformerDecoderLayer(4, 2, 8, 0.0, batch_first=True), z, z)
layer(nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, 0.0), 2), z, z); layer(nn.Transformer(4, 2, 1, 1, 8, 0.0, batch_first=True), z, z); layer(nn.Sequential(nn.Linear(4, 3), nn.Tanh()), x); layer(nn.ModuleList([nn.Linear(4, 3)])[0], x)
layer(nn.ModuleDict({"a": nn.Linear(4, 3)})["a"], x); list(nn.ParameterList([torch.ones(2)]).state_dict()); list(nn.ParameterDict({"s": torch.ones(2)}).state_dict()); [name for name, _ in nn.Transformer(4, 2, 1, 1, 8).named_parameters()]
layer(nn.MSELoss(), x, y); layer(nn.L1Loss(), x, y); layer(nn.SmoothL1Loss(beta=0.5), x, y); layer(nn.HuberLoss(), x, y); layer(nn.CrossEntropyLoss(weight=v.abs()), x, labels); layer(nn.NLLLoss(), x, labels); layer(nn.NLLLoss2d(), img, img.argmax(1) * 0)
layer(nn.BCELoss(), u, (y > 0).float()); layer(nn.BCEWithLogitsLoss(), x, u); layer(nn.KLDivLoss(reduction="batchmean"), x, u); layer(nn.PoissonNLLLoss(), x, p); layer(nn.GaussianNLLLoss(), x, y, p); layer(nn.HingeEmbeddingLoss(), x, y.sign())
layer(nn.SoftMarginLoss(), x, y.sign()); layer(nn.MultiLabelSoftMarginLoss(), x, (y > 0).float()); layer(nn.CosineEmbeddingLoss(), x, y, sign); layer(nn.MarginRankingLoss(), x[:, 0], y[:, 0], sign); layer(nn.TripletMarginLoss(), x, y, p)
layer(nn.TripletMarginWithDistanceLoss(), x, y, p); layer(nn.MultiMarginLoss(), x, labels); layer(nn.MultiLabelMarginLoss(), x, torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [1, 2, 3, 0]]))
slope(lambda t: nn.CTCLoss()(F.log_softmax(t, 2), torch.tensor([[1, 2], [3, 3]]), torch.tensor([5, 5]), torch.tensor([2, 1])), g.permute(2, 0, 1)); layer(nn.AdaptiveLogSoftmaxWithLoss(4, 8, [2, 4], div_value=2.0), x, torch.tensor([0, 3, 7]))
layer(nn.LazyLinear(3), x); layer(nn.LazyConv1d(2, 3), seq); layer(nn.LazyConv2d(2, 3), img); layer(nn.LazyConv3d(2, 2), vol); layer(nn.LazyConvTranspose1d(2, 3), seq); layer(nn.LazyConvTranspose2d(2, 3), img); layer(nn.LazyConvTranspose3d(2, 2), vol)
layer(nn.LazyBatchNorm1d(), x); layer(nn.LazyBatchNorm2d(), img); layer(nn.LazyBatchNorm3d(), vol); layer(nn.LazyInstanceNorm1d(), seq); layer(nn.LazyInstanceNorm2d(), img); layer(nn.LazyInstanceNorm3d(), vol)
repr(nn.Sequential(nn.ReLU(), nn.Tanh())); nn.Parameter(x).requires_grad; nn.Buffer(x).requires_grad; isinstance(nn.Module(), nn.Module); layer(nn.Linear(4, 2, dtype=torch.float64), double)
"""

OPTIMIZERS = """
steps(lambda p: optim.SGD(p, 0.1)); steps(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True)); steps(lambda p: optim.SGD(p, 0.1, momentum=0.9, dampening=0.5, maximize=True))
steps(lambda p: optim.Adam(p)); steps(lambda p: optim.Adam(p, 0.1, (0.8, 0.9), amsgrad=True, weight_decay=0.1)); steps(lambda p: optim.AdamW(p, 0.1, foreach=True)); steps(lambda p: optim.RMSprop(p, 0.1, centered=True, momentum=0.5))
steps(lambda p: optim.Adagrad(p, 0.1, lr_decay=0.1)); steps(lambda p: optim.Adadelta(p)); steps(lambda p: optim.Adamax(p, 0.1)); steps(lambda p: optim.NAdam(p, 0.1)); steps(lambda p: optim.RAdam(p, 0.1)); steps(lambda p: optim.ASGD(p, 0.1, t0=1))
steps(lambda p: optim.Rprop(p, 0.1)); steps(lambda p: optim.Adafactor(p, 0.1)); steps(lambda p: optim.LBFGS(p, 0.5, max_iter=4)); steps(lambda p: optim.Adam([{"params": p[:1], "lr": 0.5}, {"params": p[1:]}], lr=0.01))
rates(lambda o: sched.StepLR(o, 2)); rates(lambda o: sched.MultiStepLR(o, [2, 5], 0.5)); rates(lambda o: sched.LambdaLR(o, lambda e: 0.9 ** e)); rates(lambda o: sched.MultiplicativeLR(o, lambda e: 0.9)); rates(lambda o: sched.ExponentialLR(o, 0.9))
rates(lambda o: sched.ConstantLR(o)); rates(lambda o: sched.LinearLR(o)); rates(lambda o: sched.PolynomialLR(o, 6, 2.0)); rates(lambda o: sched.CosineAnnealingLR(o, 8, 0.01)); rates(lambda o: sched.CosineAnnealingWarmRestarts(o, 3, 2))
rates(lambda o: sched.OneCycleLR(o, 0.5, 12)); rates(lambda o: sched.OneCycleLR(o, 0.5, total_steps=12, anneal_strategy="linear", three_phase=True)); rates(lambda o: sched.CyclicLR(o, 0.01, 0.1, 3)); rates(lambda o: sched.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9))
rates(lambda o: sched.SequentialLR(o, [sched.LinearLR(o, 0.1, total_iters=3), sched.ExponentialLR(o, 0.9)], [3])); rates(lambda o: sched.ChainedScheduler([sched.ConstantLR(o, 0.1, 3), sched.ExponentialLR(o, 0.9)]))
rates(lambda o: sched.ReduceLROnPlateau(o, patience=1), 1.0); isinstance(sched.StepLR(optim.SGD([nn.Parameter(x)], 0.1), 2), sched.LRScheduler); isinstance(optim.SGD([nn.Parameter(x)], 0.1), optim.Optimizer)
sorted(optim.Adam([nn.Parameter(x)]).state_dict()); [group["lr"] for group in optim.Adam([nn.Parameter(x)], 0.3).param_groups]
utils.clip_grad_norm_(grown(v, w), 1.0); [one.grad for one in clipped(v, w)]; utils.get_total_norm([v, w]); utils.parameters_to_vector([v, w]); layer(utils.weight_norm(nn.Linear(4, 3)), x); layer(utils.remove_weight_norm(utils.weight_norm(nn.Linear(4, 3))), x)
utils.fuse_conv_bn_eval(fixed(nn.Conv2d(4, 2, 3)).eval(), fixed(nn.BatchNorm2d(2)).eval())(img); utils.fuse_linear_bn_eval(fixed(nn.Linear(4, 2)).eval(), fixed(nn.BatchNorm1d(2)).eval())(x)
utils.fuse_conv_bn_weights(m[None, None, :, :].expand(2, 1, 4, 4), None, v[:2], p[0, :2], 1e-5, w[:2], v[2:]); utils.fuse_linear_bn_weights(m, v, w, p[0], 1e-5, v, w); utils.skip_init(nn.Linear, 4, 3).weight.shape
vector_to(v, w)
utils.rnn.pad_sequence([v, w[:2]], batch_first=True); utils.rnn.pack_padded_sequence(z, torch.tensor([3, 2]), batch_first=True).data; utils.rnn.pad_packed_sequence(utils.rnn.pack_padded_sequence(z, [2, 3], True, enforce_sorted=False), True)
utils.rnn.pack_sequence([v, w[:2]]).batch_sizes; utils.rnn.unpad_sequence(z, torch.tensor([2, 3]), True); utils.rnn.unpack_sequence(utils.rnn.pack_sequence([v, w[:2]])); isinstance(utils.rnn.pack_sequence([v]), utils.rnn.PackedSequence)
init.constant_(x.clone(), 2.0); init.ones_(x.clone()); init.zeros_(x.clone()); init.eye_(m.clone()); init.dirac_(img[:, :2, :3, :3].clone()); init.calculate_gain("relu"); init.calculate_gain("leaky_relu", 0.2); init.orthogonal_(m.clone()) @ m * 0
init.uniform_(x.clone(), 1, 1); init.normal_(x.clone(), 2, 0); init.trunc_normal_(x.clone(), 0, 1e-9).round(); init.xavier_uniform_(m.clone(), 0.0); init.xavier_normal_(m.clone(), 0.0); init.kaiming_uniform_(m.clone(), 1e20).round(); init.sparse_(m.clone(), 1.0) * 0
init.kaiming_normal_(m.clone(), 1e20, mode="fan_out").round(); slope(lambda t: (t * t).sum(), x); slope(lambda t: t[1:, ::2].exp().sum(), x); slope(lambda t: t.max(1).values.sum(), x); slope(lambda t: t.sort(1).values[:, 0].sum(), x); slope(lambda t: written(t).sum(), x)
slope(lambda t: t.view(-1)[3:7].mul(2).sum() + t.std(), x); slope(lambda t: t.clamp(-0.5, 0.5).prod(1).sum(), x); slope(lambda t: torch.cat([t, t * 2]).norm(), x); slope(lambda t: (t @ m).softmax(1)[:, 0].sum(), x)
"""

FURTHER = """
torch.special.expit(x); torch.special.softmax(x, 1); torch.special.log_softmax(x, 0); torch.special.entr(x); torch.special.ndtr(x); torch.special.gammaln(p); torch.special.psi(p); torch.special.xlog1py(x, p); torch.special.logit(u); torch.special.multigammaln(big, 2)
torch.testing.assert_close(x, x + 1e-7); torch.special.polygamma(1, p); torch.special.sinc(x); torch.special.round(x); torch.special.xlogy(x, p); torch.special.i0(x); torch.special.erfinv(u); torch.special.logsumexp(x, 1)
packed(nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True), z, True); packed(nn.GRU(4, 3, batch_first=True), z, False); packed(nn.RNN(4, 3, 2, batch_first=True), z, True); packed(nn.LSTM(4, 3, proj_size=2, batch_first=True), z, True)
slope(lambda t: ((torch.autograd.grad(outputs=(t ** 3).sum(), inputs=t, create_graph=True, retain_graph=True, only_inputs=True)[0].norm(2, dim=1) - 1) ** 2).mean(), x)
F.fractional_max_pool2d(img, 2, 3, _random_samples=torch.full((2, 4, 2), 0.4)); F.fractional_max_pool2d_with_indices(img, 3, output_ratio=(0.5, 0.7), _random_samples=torch.tensor([0.1, 0.8]).expand(2, 4, 2)); F.fractional_max_pool3d(vol, (1, 2, 1), (3, 2, 2), _random_samples=torch.tensor([0.1, 0.5, 0.9]).expand(1, 2, 3))
F.fractional_max_pool3d_with_indices(vol, 2, (2, 1, 2), _random_samples=torch.tensor([0.2, 0.5, 0.9]).expand(1, 2, 3)); layer(nn.FractionalMaxPool2d(2, output_size=3, _random_samples=torch.full((2, 4, 2), 0.3)), img); layer(nn.FractionalMaxPool3d(2, output_ratio=0.5, _random_samples=torch.full((1, 2, 3), 0.3)), vol)
F.linear_cross_entropy(x, m, labels, linear_bias=v); layer(nn.LinearCrossEntropyLoss(4, 5), x, labels); type(nn.LinearCrossEntropyOptions()).__name__; linalg.matrix_sqrth(spd)
utils.stateless.functional_call(nn.Linear(4, 3), {"weight": m[:3], "bias": v[:3]}, (x,))
x.clone().apply_(lambda value: value * 2 + 1); x.clone().map_(y, lambda one, other: one - other); x.as_strided_scatter(v[:2], (2,), (3,), 1); torch.as_strided_scatter(m, v[:2].reshape(1, 2), (1, 2), (4, 1))
torch.cholesky_inverse(linalg.cholesky(spd)); linalg.cholesky(spd).cholesky_inverse(); n.cholesky_solve(linalg.cholesky(spd)); torch.cholesky_solve(n, linalg.cholesky(spd).mT, upper=True); x.pinverse(); torch.pinverse(x)
x.data_ptr() == x.view(-1).data_ptr() != y.data_ptr(); b.nonzero_static(size=9); torch.nonzero_static(b, size=2); n.orgqr(torch.tensor([0.5, 0.2, 0.1])); torch.orgqr(n, torch.tensor([0.5, 0.2, 0.1])); torch.zeros(6).resize_as_(m[:2, :3])
torch.resize_as_(torch.zeros(6), m[:2, :3]); x.to_dense(); n.triangular_solve(m); torch.triangular_solve(n, m, upper=False); m.matrix_exp(); torch.matrix_exp(m); n.lu_solve(*linalg.lu_factor(m)); torch.lu_solve(n, *linalg.lu_factor(m)); torch.svd(x)[1]
x.svd()[1]; torch.affine_grid_generator(c.reshape(1, 2, 3), (1, 1, 3, 4), False); torch.grid_sampler(img, torch.tanh(img[:, :2].permute(0, 2, 3, 1)), 0, 0, False); torch.grid_sampler_2d(img, torch.tanh(img[:, :2].permute(0, 2, 3, 1)), 1, 1, True)
torch.dropout_(x.clone(), 0.5, False); torch.alpha_dropout_(x.clone(), 0.5, False); torch.feature_dropout(img, 0.5, False); torch.kaiser_window(6, True, 3.0); torch.kaiser_window(5, periodic=False); torch.lu_unpack(*linalg.lu_factor(m)); torch.nuclear_norm(x)
torch.slice_copy(x, 1, 1, 4, 2); torch.alias_copy(x); torch.rnn_tanh_cell(x, y[:, :3], m[:3], n[:3], v[:3], w[:3]); torch.rnn_relu_cell(x, y[:, :3], m[:3], n[:3]); torch.gru_cell(x, y[:, :1], m[:3], n[:3, :1]); torch.lstm_cell(x, (y[:, :1], p[:, :1]), m, v.reshape(4, 1))
torch.segment_reduce(v, "max", lengths=torch.tensor([1, 3])); torch.segment_reduce(x, "mean", lengths=torch.tensor([2, 1])); torch.pca_lowrank(x, 2)[1]; torch.svd_lowrank(x, 3)[1]; torch.cond(torch.tensor(True), lambda t: t + 1, lambda t: t - 1, (x,))
torch.instance_norm(img, None, None, None, None, True, 0.1, 1e-5, False); torch.kl_div(x, u, 1); torch.poisson_nll_loss(x, p, True, False, 1e-8, 1); torch.embedding_bag(m, k, torch.tensor([0, 2]), False, 1)[0]; x.real; x.to(torch.float8_e4m3fn).float(); p.to(torch.float8_e5m2).float()
torch.tensor([1, 2], dtype=torch.uint8); i.to(torch.int8); j.to(torch.uint16).to(torch.int64); j.to(torch.uint32).to(torch.int64); j.to(torch.uint64).to(torch.int64); torch.BFloat16Tensor([1, 2]).float(); torch.set_num_threads(1)
torch.set_flush_denormal(False); torch.use_deterministic_algorithms(False); torch.set_warn_always(False); torch.set_float32_matmul_precision("highest"); torch.set_default_device("cpu"); torch.set_default_tensor_type("torch.FloatTensor"); torch.set_printoptions(profile="default")
isinstance(torch.contiguous_format, torch.memory_format); issubclass(torch.OutOfMemoryError, Exception); vector_to(v, w); utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
utils.convert_conv2d_weight_memory_format(nn.Conv2d(1, 1, 1), torch.channels_last).out_channels; utils.convert_conv3d_weight_memory_format(nn.Conv3d(1, 1, 1), torch.channels_last_3d).out_channels; x.to(memory_format=torch.preserve_format); z.mH; z.adjoint()
"""


class Helpers:
    """Functions for expressions with layers and optimizers."""

    def __init__(self, torch):
        self.torch = torch

    def fixed(self, module):
        """Sets all Parameters and floating-point buffers to numbers of their own."""
        random = np.random.default_rng(3)
        with self.torch.no_grad():
            for _, value in [*module.named_parameters(), *module.named_buffers()]:
                if value.is_floating_point():
                    value.copy_(self.torch.from_numpy(random.uniform(0.1, 0.6, tuple(value.shape)).astype(np.float32)))
        return module

    def layer(self, module, *given):
        """Returns a module's result, and the gradients of its Parameters and its first input."""
        lazy = type(module).__name__.startswith("Lazy")
        if lazy:
            module(*given)
        self.fixed(module)
        first, *others = given
        if first.is_floating_point():
            first = first.detach().clone().requires_grad_()
        result = module(first, *others) if not first.is_leaf or "inplace=True" not in repr(module) else module(first * 1)
        ends = [part for part in _tensors(result) if part.requires_grad]
        if not ends:
            return result
        total = sum((part * part).sum() for part in ends)
        total.backward()
        slopes = [parameter.grad for _, parameter in sorted(module.named_parameters()) if parameter.grad is not None]
        return [result, first.grad if first.is_floating_point() else None, *slopes]

    def packed(self, module, rows, is_sorted):
        """Returns the padded outputs and states of a recurrent layer for sequences of two lengths, and gradients."""
        utils = self.torch.nn.utils.rnn
        self.fixed(module)
        lengths = self.torch.tensor([3, 2] if is_sorted else [2, 3])
        output, state = module(utils.pack_padded_sequence(rows, lengths, True, enforce_sorted=is_sorted))
        padded, sizes = utils.pad_packed_sequence(output, True)
        sum((part * part).sum() for part in _tensors([padded, state])).backward()
        return [padded, sizes, state, *[parameter.grad for _, parameter in sorted(module.named_parameters())]]

    def steps(self, make):
        """Returns the Parameters after each of five steps."""
        torch = self.torch
        random = np.random.default_rng(4)
        parameters = [torch.nn.Parameter(torch.from_numpy(random.uniform(-1, 1, shape).astype(np.float32)))
                      for shape in ((3, 4), (4,))]
        optimizer = make(parameters)
        found = []
        for _ in range(5):
            def closure():
                optimizer.zero_grad()
                loss = (parameters[0] * parameters[1]).tanh().square().sum() + parameters[1].square().sum()
                loss.backward()
                return loss

            closure()
            optimizer.step(closure)
            found.append([parameter.detach().clone() for parameter in parameters])
        return found

    def rates(self, make, metric=None):
        """Returns the learning rates and momenta of twelve steps."""
        optimizer = self.torch.optim.SGD([self.torch.nn.Parameter(self.torch.ones(2))], lr=0.1, momentum=0.9)
        scheduler = make(optimizer)
        found = []
        for _ in range(11):
            optimizer.step()
            found.append([float(optimizer.param_groups[0]["lr"]), float(optimizer.param_groups[0]["momentum"])])
            scheduler.step(*[] if metric is None else [metric])
        return np.asarray(found)

    def grown(self, *tensors):
        """Returns leaves with gradients."""
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        sum((leaf * leaf).sum() for leaf in leaves).backward()
        return leaves

    def clipped(self, *tensors):
        """Returns leaves whose gradients were clipped by value and by norm."""
        leaves = self.grown(*tensors)
        self.torch.nn.utils.clip_grad_value_(leaves, 1.5)
        self.torch.nn.utils.clip_grads_with_norm_(leaves, 1.0, self.torch.nn.utils.get_total_norm([leaf.grad for leaf in leaves]))
        return leaves

    def vector_to(self, *tensors):
        """Returns tensors that were set from one vector."""
        made = [tensor.clone() for tensor in tensors]
        self.torch.nn.utils.vector_to_parameters(self.torch.arange(8.0), made)
        return made

    def slope(self, function, tensor):
        """Returns the gradient of a function."""
        leaf = tensor.detach().clone().requires_grad_()
        return self.torch.autograd.grad(function(leaf), leaf)[0]

    def written(self, tensor):
        """Returns a tensor after changes in place of it and of its views."""
        changed = tensor * 3
        changed[0] = 1.0
        changed[1, 2:] = (tensor * 5)[2, :2]
        changed.t()[3].add_(2)
        changed.view(-1)[5:7].zero_()
        return changed


def _tensors(value):
    if hasattr(value, "detach"):
        return [value]
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _tensors(item)]
    return []


def _split(text):
    return [part.strip() for line in text.strip().splitlines() for part in _parts(line) if part.strip()]


def _parts(line):
    """Splits at ; outside of quotes and brackets."""
    parts, depth, quoted, begin = [], 0, False, 0
    for place, letter in enumerate(line):
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter in "([{":
            depth += 1
        elif not quoted and letter in ")]}":
            depth -= 1
        elif letter == ";" and not quoted and not depth:
            parts.append(line[begin:place])
            begin = place + 1
    return [*parts, line[begin:]]


def _arguments(text):
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


FUNCTIONS_ALONE = {"isin", "bucketize", "polygamma"}
METHODS_ALONE = {"softmax", "log_softmax", "relu", "sigmoid", "prelu", "hardshrink"}


def expressions():
    """Returns all expressions."""
    found = []
    for entry in _split(BOTH):
        name, _, rest = entry.partition(" ")
        first, *others = _arguments(rest)
        if name not in METHODS_ALONE:
            found.append(f"torch.{name}({rest})")
        if name not in FUNCTIONS_ALONE:
            if name == "where":
                first, others = others[0], [first, *others[1:]]
            found.append(f"({first}).{name}({', '.join(others)})")
    for entry in _split(IN_PLACE):
        name, _, rest = entry.partition(" ")
        first, *others = _arguments(rest)
        found.append(f"({first}).clone().{name}_({', '.join(others)})")
    changing = ("abs acos acosh addmv arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil clamp clamp_max "
                "clamp_min clip conj_physical cos cosh deg2rad erf erfc exp exp2 expm1 fix floor frac gcd i0 lcm ldexp log "
                "log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal round rsqrt sigmoid sin sinc sinh sqrt "
                "square tan tanh trunc xlogy").split()
    for entry in _split(IN_PLACE):
        name, _, rest = entry.partition(" ")
        if name in changing:
            first, *others = _arguments(rest)
            found.append(f"torch.{name}_({', '.join([f'({first}).clone()', *others])})")
    for text in (FUNCTIONS, METHODS, FUNCTIONAL, LINALG, LAYERS, OPTIMIZERS, FURTHER):
        found += _split(text)
    return list(dict.fromkeys(found))


def flat(value):
    """Returns a result as a list of arrays, numbers and texts."""
    if hasattr(value, "detach"):
        tensor = value.detach()
        return [np.asarray(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor)]
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, (list, tuple)):
        return [np.asarray(len(value)), *[part for item in value for part in flat(item)]]
    if isinstance(value, bool) or value is None:
        return [np.asarray(bool(value))]
    if isinstance(value, (int, float, complex)):
        return [np.asarray(value)]
    return [np.asarray(str(value).replace("kiln.", "torch."))]


def evaluate(torch, expression, given):
    """Returns the arrays of an expression's value."""
    helpers = Helpers(torch)
    names = {**given, "torch": torch, "np": np, "F": torch.nn.functional, "linalg": torch.linalg, "nn": torch.nn,
             "optim": torch.optim, "sched": torch.optim.lr_scheduler, "utils": torch.nn.utils, "init": torch.nn.init}
    names.update({name: getattr(helpers, name) for name in dir(helpers) if not name.startswith("_")})
    return flat(eval(expression, names))
