#include "compiler/shard/collective.h"

#include "compiler/ir/str_cat.h"
#include "compiler/shard/program.h"
#include "proto/check/check.h"

namespace kiln::shard {
namespace {

using ir::Node;
using ir::Op;
using Kind = Collective::Kind;

// Smaller parts are not worth a kernel each.
constexpr int64_t kFetchedBytesMin = 16 << 10;

// Returns the operand's shape, cut along `split`.
ir::Shape CutShape(const Collective& collective) {
  ir::Shape shape = collective.operand->shape();
  KILN_CHECK_EQ(shape[collective.split] % collective.devices, 0) << Name(collective);
  shape[collective.split] /= collective.devices;
  return shape;
}

// Returns the number of elements of the row published for one device.
int64_t RowElements(const Collective& collective) {
  const int64_t size = ir::SizeOf(collective.operand->dtype());
  const int64_t bytes = ir::NumElements(CutShape(collective)) * size;
  return (bytes + kPublishedAlignment - 1) / kPublishedAlignment * kPublishedAlignment / size;
}

const Node* Combine(ops::Builder& builder, Op op, const std::vector<const Node*>& parts) {
  const ir::DType dtype = parts[0]->dtype();
  // Short floats are added up in float32 and rounded once.
  const bool is_short = ir::IsShortFloat(dtype);
  const Node* sum = nullptr;
  for (const Node* part : parts) {
    if (is_short) part = builder.Cast(part, ir::DType::kFloat32);
    sum = sum == nullptr ? part : builder.Binary(op, sum, part);
  }
  return is_short ? builder.Cast(sum, dtype) : sum;
}

// Concatenates the parts along an axis.
const Node* Joined(ops::Builder& builder, const std::vector<const Node*>& parts, int64_t axis) {
  const int64_t length = parts[0]->shape()[axis];
  const auto count = static_cast<int64_t>(parts.size());
  // Selects by position: sums of zero-padded parts would lose the sign of zeros.
  ir::Shape shape = parts[0]->shape();
  shape[axis] *= count;
  ir::Shape along(shape.size(), 1);
  along[axis] = shape[axis];
  const Node* position = builder.Iota(ir::DType::kInt64, along, axis);
  const Node* joined = nullptr;
  for (int64_t i = count; i-- > 0;) {
    std::vector<int64_t> padding(2 * shape.size(), 0);
    padding[2 * axis] = i * length;
    padding[2 * axis + 1] = (count - 1 - i) * length;
    const Node* placed = builder.Pad(parts[i], padding);
    const Node* end = builder.ConstInt(ir::DType::kInt64, (i + 1) * length);
    joined =
        joined == nullptr ? placed : builder.Where(builder.Less(position, end), placed, joined);
  }
  return joined;
}

}  // namespace

ir::Shape ResultShape(const Collective& collective) {
  ir::Shape shape = collective.is_cut() ? CutShape(collective) : collective.operand->shape();
  const bool joins = collective.kind == Kind::kAllGather || collective.kind == Kind::kAllToAll;
  if (joins) shape[collective.joined] *= collective.devices;
  return shape;
}

const Node* Published(ops::Builder& builder, const Collective& collective) {
  const Node* operand = collective.operand;
  if (!collective.is_cut()) return operand;
  const ir::Shape& shape = operand->shape();
  // Splits the axis in two and moves the outer half to the front.
  ir::Shape cut(shape.begin(), shape.begin() + collective.split);
  cut.push_back(collective.devices);
  cut.push_back(shape[collective.split] / collective.devices);
  cut.insert(cut.end(), shape.begin() + collective.split + 1, shape.end());
  std::vector<int64_t> order = {collective.split};
  for (int64_t i = 0; i < static_cast<int64_t>(cut.size()); ++i) {
    if (i != collective.split) order.push_back(i);
  }
  const int64_t elements = ir::NumElements(CutShape(collective));
  const Node* rows = builder.Permute(builder.Reshape(operand, cut), order);
  rows = builder.Reshape(rows, {collective.devices, elements});
  KILN_CHECK_GE(RowElements(collective), elements) << Name(collective);
  return builder.Pad(rows, {0, 0, 0, RowElements(collective) - elements});
}

ir::Shape PartShape(const Collective& collective) {
  return collective.is_cut() ? ir::Shape{RowElements(collective)} : collective.operand->shape();
}

int64_t PartBytes(const Collective& collective) {
  return ir::BytesOf(collective.operand->dtype(), PartShape(collective));
}

bool IsFetched(const Collective& collective) {
  if (collective.kind != Kind::kAllGather) return false;
  const ir::Shape& shape = collective.operand->shape();
  for (int64_t axis = 0; axis < collective.joined; ++axis) {
    if (shape[axis] != 1) return false;
  }
  const int64_t bytes = PartBytes(collective);
  return bytes >= kFetchedBytesMin && bytes % kPublishedAlignment == 0;
}

const Node* Received(ops::Builder& builder, const Collective& collective,
                     const std::vector<const Node*>& parts) {
  KILN_CHECK_EQ(parts.size(), collective.devices) << Name(collective);
  std::vector<const Node*> values = parts;
  if (collective.is_cut()) {
    const ir::Shape shape = CutShape(collective);
    for (const Node*& value : values) {
      value = builder.Reshape(builder.Shrink(value, {0, ir::NumElements(shape)}), shape);
    }
  }
  const bool combines =
      collective.kind == Kind::kAllReduce || collective.kind == Kind::kReduceScatter;
  const Node* result = combines ? Combine(builder, collective.combine, values)
                                : Joined(builder, values, collective.joined);
  KILN_CHECK(result->shape() == ResultShape(collective)) << Name(collective);
  // Stored once, since reading the parts may be slow.
  return builder.Contiguous(result);
}

std::string Name(const Collective& collective) {
  const std::string_view how = collective.combine == Op::kAdd   ? "_sum"
                               : collective.combine == Op::kMul ? "_prod"
                                                                : "_max";
  switch (collective.kind) {
    case Kind::kAllReduce:
      return StrCat("all_reduce", how);
    case Kind::kReduceScatter:
      return StrCat("reduce_scatter", how);
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kAllToAll:
      return "all_to_all";
  }
  return "";
}

}  // namespace kiln::shard
