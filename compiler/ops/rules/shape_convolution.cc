// Shapes of convolutions, pools and what else slides a window over spatial dimensions.
#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"
#include "compiler/ops/rules/sliding.h"

namespace kiln::ops {
namespace {

using ir::Shape;

// `channel_axis` is the weight's dimension that has to be x's channels.
absl::Status CheckRanks(const ShapeQuery& query, size_t rank) {
  const Shape& x = query.operands[0];
  const Shape& weight = query.operands[1];
  if (x.size() == rank + 2 && weight.size() == rank + 2) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" of x ", ToString(x), " and weight ", ToString(weight),
                    "; both must have ", rank + 2, " dimensions: x batch, channels and ", rank,
                    " spatial ones");
}

absl::Status CheckBias(const ShapeQuery& query, int64_t channels) {
  if (query.operands.size() < 3 || query.operands[2] == Shape{channels}) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" with a bias of shape ", ToString(query.operands[2]),
                    "; it must be ", ToString({channels}));
}

absl::Status CheckConvolution(const ShapeQuery& query, int64_t groups) {
  const Shape& x = query.operands[0];
  const Shape& weight = query.operands[1];
  if (groups < 1 || x[1] % groups != 0 || weight[0] % groups != 0) {
    return ShapeError("\"", query.op.name, "\" in ", groups, " groups with ", x[1],
                      " channels in and ", weight[0], " out; groups must divide both");
  }
  if (weight[1] != x[1] / groups) {
    return ShapeError("\"", query.op.name, "\" of x ", ToString(x), " and weight ",
                      ToString(weight), " in ", groups,
                      " groups: the weight's dimension 1 must be ", x[1] / groups);
  }
  return CheckBias(query, weight[0]);
}

absl::Status CheckTransposed(const ShapeQuery& query, int64_t groups) {
  const Shape& x = query.operands[0];
  const Shape& weight = query.operands[1];
  if (weight[0] != x[1] || groups < 1 || x[1] % groups != 0) {
    return ShapeError("\"", query.op.name, "\" of x ", ToString(x), " and weight ",
                      ToString(weight), " in ", groups,
                      " groups: the weight's dimension 0 must be x's channels (", x[1],
                      "), and groups divide them");
  }
  int64_t channels = 0;
  if (__builtin_mul_overflow(weight[1], groups, &channels)) {
    return ShapeError("\"", query.op.name, "\" with a weight of ", ToString(weight), " in ", groups,
                      " groups has too many channels");
  }
  return CheckBias(query, channels);
}

Shape Joined(const Shape& leading, const Shape& spatial) {
  Shape result = leading;
  result.insert(result.end(), spatial.begin(), spatial.end());
  return result;
}

Shape WithoutSpatial(const Shape& shape, size_t rank) {
  return Shape(shape.begin(), shape.end() - static_cast<int64_t>(rank));
}

absl::Status CheckKernelRank(const ShapeQuery& query, size_t rank) {
  const size_t entries = IntsOf(query.attributes, "kernel").size();
  if (entries != rank) {
    return ShapeError("\"kernel\" has ", entries, " entries; it needs ", rank,
                      ", one for each spatial dimension");
  }
  if (query.operands[0].size() < rank) {
    return ShapeError("\"", query.op.name, "\" of shape ", ToString(query.operands[0]),
                      "; it needs at least ", rank, " dimensions, the spatial ones last");
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ElementsOf(absl::Span<const int64_t> sizes) {
  const absl::Status legal = CheckShape(sizes);
  if (!legal.ok()) return legal;
  return ir::NumElements(Shape(sizes.begin(), sizes.end()));
}

}  // namespace

ShapeResult ConvShape(const ShapeQuery& query) {
  const size_t rank = SpatialRank(query.op);
  absl::Status fits = CheckRanks(query, rank);
  if (fits.ok()) fits = CheckConvolution(query, IntOf(query.attributes, "groups"));
  if (!fits.ok()) return fits;
  const Shape& x = query.operands[0];
  const Shape& weight = query.operands[1];
  const auto sliding =
      ConvolutionSliding(SpatialOf(x, rank), SpatialOf(weight, rank), query.attributes);
  if (!sliding.ok()) return sliding.status();
  return Joined({x[0], weight[0]}, sliding->positions);
}

ShapeResult ConvTransposeShape(const ShapeQuery& query) {
  const size_t rank = SpatialRank(query.op);
  const int64_t groups = IntOf(query.attributes, "groups");
  absl::Status fits = CheckRanks(query, rank);
  if (fits.ok()) fits = CheckTransposed(query, groups);
  if (!fits.ok()) return fits;
  const Shape& x = query.operands[0];
  const Shape& weight = query.operands[1];
  const auto spreading =
      TransposedSpreading(SpatialOf(x, rank), SpatialOf(weight, rank), query.attributes);
  if (!spreading.ok()) return spreading.status();
  return Joined({x[0], weight[1] * groups}, spreading->result);
}

ShapeResult PoolShape(const ShapeQuery& query) {
  const size_t rank = SpatialRank(query.op);
  const absl::Status fits = CheckKernelRank(query, rank);
  if (!fits.ok()) return fits;
  const Shape& x = query.operands[0];
  const auto sliding = PoolSliding(x, query.attributes);
  if (!sliding.ok()) return sliding.status();
  return Joined(WithoutSpatial(x, rank), sliding->positions);
}

ShapeResult ResizeShape(const ShapeQuery& query) {
  const Shape& x = query.operands[0];
  const std::vector<int64_t>& size = IntsOf(query.attributes, "size");
  if (size.empty() || size.size() > x.size()) {
    return ShapeError("\"size\" has ", size.size(), " entries for shape ", ToString(x),
                      "; it needs one for each spatial dimension, the last ones");
  }
  const Shape spatial = SpatialOf(x, size.size());
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] < 1 || spatial[i] < 1) {
      return ShapeError("cannot resize ", ToString(spatial), " to ", ToString(size),
                        "; every size must be at least 1");
    }
  }
  return Joined(WithoutSpatial(x, size.size()), size);
}

ShapeResult UnfoldShape(const ShapeQuery& query) {
  const Shape& x = query.operands[0];
  const std::vector<int64_t>& kernel = IntsOf(query.attributes, "kernel");
  if (kernel.empty() || x.size() != kernel.size() + 2) {
    return ShapeError("unfold of shape ", ToString(x), " with a kernel of ", kernel.size(),
                      " dimensions; x must be (N, C, and as many spatial ones)");
  }
  const auto sliding = ConvolutionSliding(SpatialOf(x, kernel.size()), kernel, query.attributes);
  if (!sliding.ok()) return sliding.status();
  const auto taps = ElementsOf(Joined({x[1]}, kernel));
  if (!taps.ok()) return taps.status();
  const auto windows = ElementsOf(sliding->positions);
  if (!windows.ok()) return windows.status();
  return Shape{x[0], *taps, *windows};
}

ShapeResult FoldShape(const ShapeQuery& query) {
  const Shape& x = query.operands[0];
  const std::vector<int64_t>& kernel = IntsOf(query.attributes, "kernel");
  const std::vector<int64_t>& size = IntsOf(query.attributes, "size");
  if (x.size() != 3 || kernel.empty() || size.size() != kernel.size()) {
    return ShapeError("fold of shape ", ToString(x), " with a kernel of ", kernel.size(),
                      " and a size of ", size.size(),
                      " dimensions; x must be (N, C * taps, windows), the others agree");
  }
  const auto sliding = ConvolutionSliding(size, kernel, query.attributes);
  if (!sliding.ok()) return sliding.status();
  const auto taps = ElementsOf(kernel);
  if (!taps.ok()) return taps.status();
  const auto windows = ElementsOf(sliding->positions);
  if (!windows.ok()) return windows.status();
  if (x[1] % *taps != 0 || x[2] != *windows) {
    return ShapeError("fold of shape ", ToString(x), " to ", ToString(size),
                      ": dimension 1 must be a multiple of ", *taps,
                      ", the kernel's elements, and dimension 2 be ", *windows,
                      ", the kernel's positions");
  }
  return Joined({x[0], x[1] / *taps}, size);
}

namespace {

struct Plane {
  Shape leading;
  int64_t channels, height, width, factor;
};

absl::StatusOr<Plane> PlaneOf(const ShapeQuery& query) {
  const Shape& x = query.operands[0];
  const int64_t factor = IntOf(query.attributes, "factor");
  if (x.size() < 3 || factor < 1 || factor > (int64_t{1} << 20)) {
    return ShapeError("\"", query.op.name, "\" of shape ", ToString(x), " by ", factor,
                      "; x must be (…, C, H, W) and the factor at least 1");
  }
  return Plane{WithoutSpatial(x, 3), x[x.size() - 3], x[x.size() - 2], x.back(), factor};
}

}  // namespace

ShapeResult PixelShuffleShape(const ShapeQuery& query) {
  const auto plane = PlaneOf(query);
  if (!plane.ok()) return plane.status();
  const int64_t square = plane->factor * plane->factor;
  if (plane->channels % square != 0) {
    return ShapeError("pixel_shuffle by ", plane->factor, " of ", plane->channels,
                      " channels; they must be a multiple of ", square);
  }
  Shape result = Joined(plane->leading, {plane->channels / square, 0, 0});
  if (__builtin_mul_overflow(plane->height, plane->factor, &result[result.size() - 2]) ||
      __builtin_mul_overflow(plane->width, plane->factor, &result.back())) {
    return ShapeError("pixel_shuffle by ", plane->factor, " makes ", ToString(query.operands[0]),
                      " too large");
  }
  return result;
}

ShapeResult PixelUnshuffleShape(const ShapeQuery& query) {
  const auto plane = PlaneOf(query);
  if (!plane.ok()) return plane.status();
  const int64_t factor = plane->factor;
  if (plane->height % factor != 0 || plane->width % factor != 0) {
    return ShapeError("pixel_unshuffle by ", factor, " of ", plane->height, " x ", plane->width,
                      " pixels; both must be multiples of it");
  }
  int64_t channels = 0;
  if (__builtin_mul_overflow(plane->channels, factor * factor, &channels)) {
    return ShapeError("pixel_unshuffle by ", factor, " has too many channels");
  }
  return Joined(plane->leading, {channels, plane->height / factor, plane->width / factor});
}

}  // namespace kiln::ops
