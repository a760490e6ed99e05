#include "compiler/ops/rules/sliding.h"

#include <algorithm>

#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_error.h"

namespace kiln::ops {
namespace {

using ir::Shape;
using Ints = std::vector<int64_t>;

absl::StatusOr<Ints> EntriesOf(const Attributes& attributes, std::string_view name, size_t rank) {
  const Ints& values = IntsOf(attributes, name);
  if (values.size() == rank) return values;
  return ShapeError("\"", name, "\" has ", values.size(), " entries; it needs ", rank,
                    ", one for each spatial dimension");
}

// Returns the attribute's entries, or ones if the op has no such attribute.
absl::StatusOr<Ints> EntriesOrOnes(const Attributes& attributes, std::string_view name,
                                   size_t rank) {
  if (!attributes.contains(std::string(name))) return Ints(rank, 1);
  return EntriesOf(attributes, name, rank);
}

absl::Status ReadPadding(const Attributes& attributes, size_t rank, Sliding* sliding) {
  const Ints& values = IntsOf(attributes, "padding");
  if (values.size() != rank && values.size() != 2 * rank) {
    return ShapeError("\"padding\" has ", values.size(), " entries; it needs ", rank,
                      ", one for each spatial dimension, or ", 2 * rank, ", before and after each");
  }
  // With one entry per dimension, before and after are the same entry.
  const size_t step = values.size() / rank;
  for (size_t i = 0; i < rank; ++i) {
    sliding->before.push_back(values[i * step]);
    sliding->after.push_back(values[i * step + step - 1]);
    sliding->hanging.push_back(0);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PaddedLength(int64_t length, int64_t before, int64_t after) {
  int64_t result = length;
  if (before < 0 || after < 0 || __builtin_add_overflow(result, before, &result) ||
      __builtin_add_overflow(result, after, &result) || result > kElementsMax) {
    return ShapeError("a padding of ", before, " and ", after, " on a dimension of size ", length,
                      "; it must be at least 0 and not huge");
  }
  return result;
}

absl::StatusOr<Sliding> ReadSliding(absl::Span<const int64_t> size, const Ints& stride,
                                    const Attributes& attributes) {
  Sliding sliding;
  sliding.size.assign(size.begin(), size.end());
  sliding.stride = stride;
  auto dilation = EntriesOrOnes(attributes, "dilation", size.size());
  if (!dilation.ok()) return dilation.status();
  sliding.dilation = *std::move(dilation);
  const absl::Status padding = ReadPadding(attributes, size.size(), &sliding);
  if (!padding.ok()) return padding;
  return sliding;
}

// Counts the windows that are within the padded length.
absl::Status CountWhole(absl::Span<const int64_t> spatial, Sliding* sliding) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    const auto length = PaddedLength(spatial[i], sliding->before[i], sliding->after[i]);
    if (!length.ok()) return length.status();
    const auto positions =
        WindowPositions(*length, sliding->size[i], sliding->stride[i], sliding->dilation[i]);
    if (!positions.ok()) return positions.status();
    sliding->positions.push_back(*positions);
  }
  return absl::OkStatus();
}

// With ceil_mode, adds one more window if elements are left over and the window starts within the
// tensor or the padding before it, as in PyTorch.
void AddHanging(absl::Span<const int64_t> spatial, Sliding* sliding) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t length = spatial[i] + sliding->before[i] + sliding->after[i];
    // The next window starts at least one stride further: too late, and its position might
    // overflow.
    if (sliding->stride[i] >= spatial[i] + sliding->before[i]) continue;
    const int64_t next = sliding->positions[i] * sliding->stride[i];
    const int64_t covered = next - sliding->stride[i] + sliding->reach(i) + 1;
    if (covered == length || next >= spatial[i] + sliding->before[i]) continue;
    ++sliding->positions[i];
    sliding->hanging[i] = next + sliding->reach(i) + 1 - length;
    sliding->after[i] += sliding->hanging[i];
  }
}

absl::Status CheckPoolPadding(const Sliding& sliding) {
  for (size_t i = 0; i < sliding.rank(); ++i) {
    const int64_t largest = std::max(sliding.before[i], sliding.after[i]);
    if (largest > sliding.size[i] / 2) {
      return ShapeError("a padding of ", largest, " for a kernel of ", sliding.size[i],
                        "; it must be at most half the kernel");
    }
  }
  return absl::OkStatus();
}

// Computes the extent that one dimension of a transposed convolution covers, and its result size.
absl::Status Spread(int64_t length, size_t i, Spreading* spreading) {
  const Sliding& windows = spreading->windows;
  const int64_t extra = spreading->output_padding[i];
  if (windows.stride[i] < 1 || windows.dilation[i] < 1 || windows.size[i] < 1 || length < 1) {
    return ShapeError("a transposed convolution of a dimension of size ", length, " with kernel ",
                      windows.size[i], ", stride ", windows.stride[i], " and dilation ",
                      windows.dilation[i], "; each must be at least 1");
  }
  // PyTorch has the same bound.
  if (extra < 0 || extra >= std::max(windows.stride[i], windows.dilation[i])) {
    return ShapeError("an \"output_padding\" of ", extra, "; it must be less than the stride (",
                      windows.stride[i], ") or the dilation (", windows.dilation[i], ")");
  }
  // The last window begins at (length - 1) * stride and extends (size - 1) * dilation further.
  int64_t begin = 0;
  int64_t reach = 0;
  int64_t last = 0;
  const bool overflow = __builtin_mul_overflow(length - 1, windows.stride[i], &begin) ||
                        __builtin_mul_overflow(windows.size[i] - 1, windows.dilation[i], &reach) ||
                        __builtin_add_overflow(begin, reach, &last) || last >= kElementsMax;
  const int64_t covered = overflow ? 0 : last + 1;
  const int64_t before = windows.before[i];
  const int64_t after = windows.after[i];
  if (overflow || before < 0 || after < 0 || before >= covered || after >= covered ||
      covered - before - after + extra < 1) {
    return ShapeError("a transposed convolution of a dimension of size ", length, " with kernel ",
                      windows.size[i], ", stride ", windows.stride[i], " and dilation ",
                      windows.dilation[i], " less a padding of ", before, " and ", after,
                      "; the result must have at least one element, and not too many");
  }
  spreading->lengths.push_back(covered);
  spreading->result.push_back(covered - before - after + extra);
  return absl::OkStatus();
}

}  // namespace

size_t SpatialRank(const OpDef& op) {
  for (const AttributeDef& attribute : op.attributes) {
    if (attribute.name == "padding") return std::get<Ints>(*attribute.default_value).size();
  }
  return 0;
}

Shape SpatialOf(absl::Span<const int64_t> shape, size_t rank) {
  return Shape(shape.end() - static_cast<int64_t>(rank), shape.end());
}

absl::StatusOr<int64_t> WindowPositions(int64_t length, int64_t size, int64_t stride,
                                        int64_t dilation) {
  if (size < 1 || stride < 1 || dilation < 1) {
    return ShapeError("a window of size ", size, ", stride ", stride, " and dilation ", dilation,
                      "; each must be at least 1");
  }
  int64_t reach = 0;
  if (__builtin_mul_overflow(size - 1, dilation, &reach) || reach >= length) {
    return ShapeError("a window of size ", size, " and dilation ", dilation,
                      " does not fit into a dimension of size ", length);
  }
  return (length - reach - 1) / stride + 1;
}

absl::StatusOr<Sliding> ConvolutionSliding(absl::Span<const int64_t> spatial,
                                           absl::Span<const int64_t> kernel,
                                           const Attributes& attributes) {
  const auto stride = EntriesOf(attributes, "stride", kernel.size());
  if (!stride.ok()) return stride.status();
  auto sliding = ReadSliding(kernel, *stride, attributes);
  if (!sliding.ok()) return sliding;
  const absl::Status counted = CountWhole(spatial, &*sliding);
  if (!counted.ok()) return counted;
  return sliding;
}

absl::StatusOr<Sliding> PoolSliding(absl::Span<const int64_t> shape, const Attributes& attributes) {
  const Ints& kernel = IntsOf(attributes, "kernel");
  if (kernel.size() > shape.size()) {
    return ShapeError("a kernel of ", kernel.size(), " dimensions for shape ", ToString(shape));
  }
  // By default a pool's windows do not overlap: the stride is the kernel.
  const auto stride = IntsOf(attributes, "stride").empty()
                          ? absl::StatusOr<Ints>(kernel)
                          : EntriesOf(attributes, "stride", kernel.size());
  if (!stride.ok()) return stride.status();
  auto sliding = ReadSliding(kernel, *stride, attributes);
  if (!sliding.ok()) return sliding;
  const Shape spatial = SpatialOf(shape, kernel.size());
  absl::Status fits = CheckPoolPadding(*sliding);
  if (fits.ok()) fits = CountWhole(spatial, &*sliding);
  if (fits.ok() && attributes.contains("ceil_mode") && BoolOf(attributes, "ceil_mode")) {
    AddHanging(spatial, &*sliding);
  }
  if (!fits.ok()) return fits;
  return sliding;
}

absl::StatusOr<Spreading> TransposedSpreading(absl::Span<const int64_t> spatial,
                                              absl::Span<const int64_t> kernel,
                                              const Attributes& attributes) {
  const auto stride = EntriesOf(attributes, "stride", kernel.size());
  if (!stride.ok()) return stride.status();
  auto windows = ReadSliding(kernel, *stride, attributes);
  if (!windows.ok()) return windows.status();
  auto extra = EntriesOf(attributes, "output_padding", kernel.size());
  if (!extra.ok()) return extra.status();
  Spreading spreading{*std::move(windows), {}, *std::move(extra), {}};
  // Each element of x contributes to one window of the result.
  spreading.windows.positions.assign(spatial.begin(), spatial.end());
  for (size_t i = 0; i < spatial.size(); ++i) {
    const absl::Status spread = Spread(spatial[i], i, &spreading);
    if (!spread.ok()) return spread;
  }
  return spreading;
}

}  // namespace kiln::ops
