#include "compiler/ops/composites/sort_keys.h"

#include <limits>

#include "compiler/ops/composites/composite.h"
#include "proto/check/check.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

bool IsNarrow(DType dtype) { return ir::SizeOf(dtype) <= 4; }

// A float's bits, read as an integer, have the order of the numbers once those of negative numbers
// are inverted.
const Node* KeyOfFloat(Builder& b, const Node* x) {
  const Node* value = b.Cast(x, IsNarrow(x->dtype()) ? DType::kFloat32 : DType::kFloat64);
  const DType dtype = IsNarrow(x->dtype()) ? DType::kInt32 : DType::kInt64;
  const int64_t largest = dtype == DType::kInt32 ? std::numeric_limits<int32_t>::max()
                                                 : std::numeric_limits<int64_t>::max();
  const Node* zero = b.Const(value->dtype(), 0);
  // -0 becomes 0, since its bits differ.
  const Node* bits = b.Bitcast(b.Where(b.Equal(value, zero), zero, value), dtype);
  const Node* inverted = b.Binary(Op::kXor, bits, b.ConstInt(dtype, largest));
  const Node* ordered = b.Where(b.Less(bits, b.ConstInt(dtype, 0)), inverted, bits);
  return b.Where(IsNan(b, value), b.ConstInt(dtype, largest), ordered);
}

// Returns an int32 key, or int64 if x has 8 bytes.
const Node* KeyOf(Builder& b, const Node* x) {
  const DType dtype = x->dtype();
  if (ir::IsFloat(dtype)) return KeyOfFloat(b, x);
  if (dtype == DType::kUInt32 || dtype == DType::kUInt64) {
    const DType to = dtype == DType::kUInt32 ? DType::kInt32 : DType::kInt64;
    const int64_t lowest = dtype == DType::kUInt32 ? std::numeric_limits<int32_t>::min()
                                                   : std::numeric_limits<int64_t>::min();
    // Read as signed, the upper half of the numbers would be negative and come first.
    return b.Binary(Op::kXor, b.Bitcast(x, to), b.ConstInt(to, lowest));
  }
  return b.Cast(x, IsNarrow(dtype) ? DType::kInt32 : DType::kInt64);
}

const Node* PaddedWithLargest(Builder& b, const Node* keys, const SizeRange& range,
                              int64_t padded) {
  const int64_t length = keys->shape()[1];
  if (padded == length && range.is_fixed()) return keys;
  const std::vector<int64_t> padding = {0, 0, 0, padded - length, 0, 0};
  const Node* position = b.Iota(DType::kInt64, {1, padded, 1}, 1);
  const Node* is_real = b.Less(position, b.ConstInt(DType::kInt64, length));
  const Node* largest = b.ConstInt(DType::kInt64, std::numeric_limits<int64_t>::max());
  return b.Where(is_real, b.Pad(keys, padding), b.Cast(largest, keys->dtype()));
}

constexpr int64_t kPackedMax = int64_t{1} << 32;
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

// Returns whether key and position fit in one int64.
bool IsPacked(DType dtype, int64_t padded) { return IsNarrow(dtype) && padded <= kPackedMax; }

const Node* Packed(Builder& b, const Node* key, const Node* position) {
  const Node* high = b.Binary(Op::kShl, b.Cast(key, DType::kInt64), b.ConstInt(DType::kInt64, 32));
  return b.Binary(Op::kOr, high, position);
}

// Applies a function to the key and, if there is one, the position.
template <typename Function>
SortKeys Each(const SortKeys& keys, Function function) {
  return {function(keys.key), keys.position == nullptr ? nullptr : function(keys.position)};
}

}  // namespace

SortKeys MakeSortKeys(Builder& b, const Node* x, const SizeRange& length, bool descending,
                      int64_t padded) {
  const Node* key = KeyOf(b, x);
  if (descending) key = b.Not(key);
  const Node* position = b.Iota(DType::kInt64, {1, x->shape()[1], 1}, 1);
  if (IsPacked(x->dtype(), padded)) {
    return {PaddedWithLargest(b, Packed(b, key, position), length, padded), nullptr};
  }
  // Padding has the largest positions too, so that it comes after elements with the largest key.
  const Node* positions =
      b.Expand(b.Iota(DType::kInt64, {1, padded, 1}, 1), {x->shape()[0], padded, x->shape()[2]});
  return {PaddedWithLargest(b, b.Cast(key, DType::kInt64), length, padded), positions};
}

SortKeys SortKeysAt(Builder& b, const Node* x, bool descending, int64_t padded,
                    const Node* positions) {
  const Node* key = KeyOf(b, b.GatherElements(x, positions, 1));
  if (descending) key = b.Not(key);
  const bool packed = IsPacked(x->dtype(), padded);
  key = packed ? Packed(b, key, positions) : b.Cast(key, DType::kInt64);
  const Node* is_real = b.Less(positions, b.ConstInt(DType::kInt64, x->shape()[1]));
  return {b.Where(is_real, key, b.ConstInt(DType::kInt64, kLargest)), packed ? nullptr : positions};
}

SortKeys GatherSortKeys(Builder& b, const SortKeys& keys, const Node* places) {
  return Each(keys, [&](const Node* x) { return b.GatherElements(x, places, 1); });
}

SortKeys PadSortKeys(Builder& b, const SortKeys& keys, int64_t length) {
  const int64_t now = keys.key->shape()[1];
  return Each(keys, [&](const Node* x) { return PaddedWithLargest(b, x, {now, now}, length); });
}

SortKeys SliceSortKeys(Builder& b, const SortKeys& keys, int64_t count) {
  return Each(keys, [&](const Node* x) { return b.Slice(x, 1, 0, count); });
}

SortKeys Lowest(Builder& b, const SortKeys& keys, int64_t blocks) {
  const ir::Shape& shape = keys.key->shape();
  KILN_CHECK_EQ(shape[1] % blocks, 0);
  const SortKeys cut = Each(keys, [&](const Node* x) {
    return b.Reshape(x, {shape[0], shape[1] / blocks, blocks, shape[2]});
  });
  const auto lowest = [&](const Node* x) { return b.Not(b.Max(b.Not(x), {1}, /*keepdims=*/true)); };
  const auto back = [&](const Node* x) { return b.Reshape(x, {shape[0], blocks, shape[2]}); };
  const Node* key = lowest(cut.key);
  if (keys.position == nullptr) return {back(key), nullptr};
  const Node* position =
      b.Where(b.Equal(cut.key, key), cut.position, b.ConstInt(DType::kInt64, kLargest));
  return {back(key), back(lowest(position))};
}

const Node* PositionsOf(Builder& b, const SortKeys& keys) {
  if (keys.position != nullptr) return keys.position;
  return b.Binary(Op::kAnd, keys.key, b.ConstInt(DType::kInt64, kPackedMax - 1));
}

}  // namespace kiln::ops
