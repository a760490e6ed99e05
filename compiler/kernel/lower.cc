#include "compiler/kernel/lower.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/bounds.h"
#include "compiler/kernel/expression.h"
#include "compiler/kernel/index.h"
#include "compiler/kernel/kernel_name.h"
#include "compiler/kernel/merge_ranges.h"
#include "proto/check/check.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

namespace {

// Returns the result of a reduction over no elements.
const Node* Neutral(ir::Context& context, const Node* reduction) {
  const ir::DType dtype = reduction->dtype();
  const double infinity = std::numeric_limits<double>::infinity();
  const bool prod = reduction->op() == Op::kReduceProd;
  const bool max = reduction->op() == Op::kReduceMax;
  int64_t lowest = 0;
  if (ir::IsInteger(dtype) && ir::IsSigned(dtype)) {
    // The arithmetic shift gives -2^(bits-1).
    lowest = std::numeric_limits<int64_t>::min() >> (64 - 8 * ir::SizeOf(dtype));
  }
  const ir::ConstValue value = ir::IsFloat(dtype) ? ir::ConstValue::Float(prod  ? 1
                                                                          : max ? -infinity
                                                                                : 0)
                                                  : ir::ConstValue::Int(prod  ? 1
                                                                        : max ? lowest
                                                                              : 0);
  return context.Get(Op::kConst, dtype, {}, {}, value);
}

class GroupLowerer {
 public:
  GroupLowerer(const partition::Partition& partition, const partition::Group& group,
               ir::Context& context)
      : partition_(partition),
        group_(group),
        context_(context),
        math_(context),
        expressions_(
            math_, [this](const Node* node, const Point& point) { return Find(node, point); },
            [this](const Node* node) {
              return read_buffers_.contains(node) || locals_.contains(node);
            }) {}

  absl::StatusOr<LoweredKernel> Run() {
    AddBuffers();
    MakeGrid();
    for (const partition::Stage& stage : group_.stages) {
      if (absl::Status status = LowerStage(stage); !status.ok()) return status;
    }
    // Only the grid's loops are still open.
    KILN_CHECK_LE(ranges_.size(), group_.grid.size());
    KILN_CHECK_EQ(result_.kernel.stages.size(), group_.stages.size());
    // As much work as building it.
    KILN_VALIDATE(*this, 1);
    return std::move(result_);
  }

  // Checks that each global buffer has its tensor, and that the maps of buffers are their inverse.
  void Validate() const {
    KILN_CHECK_EQ(result_.tensors.size(), first_local_);
    KILN_CHECK_EQ(result_.kernel.buffers.size(), first_local_ + group_.locals.size());
    KILN_CHECK_EQ(read_buffers_.size() + write_buffers_.size(), result_.tensors.size());
    for (const auto& [node, buffer] : read_buffers_) {
      KILN_CHECK(partition_.tensors[result_.tensors[buffer]].node == node) << "buffer " << buffer;
      KILN_CHECK(result_.kernel.buffers[buffer].access == Access::kRead) << "buffer " << buffer;
    }
    for (const auto& [tensor, buffer] : write_buffers_) {
      KILN_CHECK_EQ(result_.tensors[buffer], tensor) << "buffer " << buffer;
      KILN_CHECK(result_.kernel.buffers[buffer].access != Access::kRead) << "buffer " << buffer;
    }
    for (const auto& [node, local] : locals_)
      KILN_CHECK_GE(local.buffer, first_local_) << "node " << node->id();
  }

 private:
  // A value of an earlier stage, stored in a local.
  struct LocalValue {
    const partition::Value* value;
    int buffer;
  };

  void AddBuffers();
  void MakeGrid();
  std::vector<const Node*> MakeRanges(const std::vector<int>& loops);
  absl::Status LowerStage(const partition::Stage& stage);
  absl::StatusOr<const Node*> LowerValue(const partition::Value& value);
  absl::StatusOr<const Node*> LowerReduction(const partition::Value& value);
  absl::StatusOr<Store> LowerScatter(const partition::Value& value);
  absl::Status AddStores(const partition::Value& value, const Node* expression, Stage* stage);

  const Node* DigitIndex(const partition::Digit& digit);
  const Node* AxisIndex(const partition::Digits& digits);
  std::vector<const Node*> AxesIndex(const std::vector<partition::Digits>& axes);
  bool InGrid(int loop) const { return absl::c_linear_search(group_.grid, loop); }

  absl::StatusOr<Source> Find(const Node* node, const Point& point);
  absl::StatusOr<Source> FindLocal(const LocalValue& local, const Point& point);

  const partition::Partition& partition_;
  const partition::Group& group_;
  ir::Context& context_;
  IndexMath math_;
  ExpressionLowerer expressions_;
  LoweredKernel result_;
  absl::flat_hash_map<int, const Node*> ranges_;                      // by loop
  absl::flat_hash_map<const Node*, int> read_buffers_;                // tensors read
  absl::flat_hash_map<int, int> write_buffers_;                       // by tensor
  int first_local_ = 0;                                               // buffer
  absl::flat_hash_map<const Node*, LocalValue> locals_;               // of earlier stages
  absl::flat_hash_map<const Node*, const partition::Value*> values_;  // of this stage
};

void GroupLowerer::AddBuffers() {
  auto add = [&](int tensor, Access access) {
    const partition::Tensor& t = partition_.tensors[tensor];
    result_.kernel.buffers.push_back({t.dtype, ir::NumElements(t.shape), Memory::kGlobal, access});
    result_.tensors.push_back(tensor);
    return static_cast<int>(result_.kernel.buffers.size()) - 1;
  };
  for (const int tensor : group_.reads) {
    read_buffers_[partition_.tensors[tensor].node] = add(tensor, Access::kRead);
  }
  for (const int tensor : group_.writes) write_buffers_[tensor] = add(tensor, Access::kWrite);
  for (const int tensor : group_.updates) write_buffers_[tensor] = add(tensor, Access::kUpdate);
  first_local_ = static_cast<int>(result_.kernel.buffers.size());
  for (const partition::Local& local : group_.locals) {
    result_.kernel.buffers.push_back({local.dtype, local.elements, Memory::kLocal, Access::kWrite});
  }
}

std::vector<const Node*> GroupLowerer::MakeRanges(const std::vector<int>& loops) {
  std::vector<const Node*> ranges;
  for (const int loop : loops) {
    KILN_CHECK_LT(loop, group_.loops.size());
    KILN_CHECK(!ranges_.contains(loop)) << "loop " << loop << " is opened twice";
    if (group_.loops[loop] <= 1) {
      ranges_[loop] = math_.Constant(0);
      continue;
    }
    ranges.push_back(ranges_[loop] = math_.Range(group_.loops[loop]));
  }
  return ranges;
}

void GroupLowerer::MakeGrid() { result_.kernel.grid = MakeRanges(group_.grid); }

bool HasReduction(const Stage& stage) {
  std::vector<const Node*> values;
  for (const Store& store : stage.stores) values.push_back(store.value);
  return absl::c_any_of(ir::TopologicalOrder(values),
                        [](const Node* node) { return node->op() == Op::kReduce; });
}

absl::Status GroupLowerer::LowerStage(const partition::Stage& stage) {
  KILN_CHECK(!stage.values.empty());
  Stage lowered;
  lowered.ranges = MakeRanges(stage.loops);
  const bool scatters = stage.values.back().node->op() == Op::kScatterElements;
  (scatters ? lowered.ordered_ranges : lowered.reduce_ranges) = MakeRanges(stage.reduce_loops);
  expressions_.Clear();
  values_.clear();
  for (const partition::Value& value : stage.values) values_[value.node] = &value;
  // Lowers values that are not stored as well: in this order each finds its operands lowered, which
  // keeps the recursion shallow.
  for (const partition::Value& value : stage.values) {
    if (scatters) {
      absl::StatusOr<Store> store = LowerScatter(value);
      if (!store.ok()) return store.status();
      lowered.stores.push_back(*store);
      continue;
    }
    absl::StatusOr<const Node*> expression = LowerValue(value);
    if (!expression.ok()) return expression.status();
    if (absl::Status status = AddStores(value, *expression, &lowered); !status.ok()) return status;
  }
  for (const partition::Value& value : stage.values) {
    if (value.local >= 0) locals_[value.node] = {&value, first_local_ + value.local};
  }
  // The loops of a stage end with it; those of the grid continue.
  for (const int loop : stage.loops) ranges_.erase(loop);
  for (const int loop : stage.reduce_loops) ranges_.erase(loop);
  // A reduction over no elements is a constant and has no ranges.
  if (!HasReduction(lowered)) lowered.reduce_ranges.clear();
  result_.kernel.stages.push_back(std::move(lowered));
  return absl::OkStatus();
}

absl::Status GroupLowerer::AddStores(const partition::Value& value, const Node* expression,
                                     Stage* stage) {
  if (value.tensor >= 0) {
    const Node* index = math_.Flatten(AxesIndex(value.axes), value.node->shape());
    stage->stores.push_back({write_buffers_.at(value.tensor), index, expression, nullptr});
  }
  if (value.local >= 0) {
    std::vector<const Node*> digits;
    std::vector<int64_t> extents;
    for (const partition::Digits& axis : value.axes) {
      for (const partition::Digit& digit : axis) {
        // A local lives for one point of the grid, so the grid's loops do not address it.
        if (InGrid(digit.loop)) continue;
        digits.push_back(DigitIndex(digit));
        extents.push_back(digit.extent);
      }
    }
    stage->stores.push_back(
        {first_local_ + value.local, math_.Flatten(digits, extents), expression, nullptr});
  }
  return absl::OkStatus();
}

absl::StatusOr<const Node*> GroupLowerer::LowerValue(const partition::Value& value) {
  return expressions_.Lower(value.node, Point{AxesIndex(value.axes), {}});
}

absl::StatusOr<const Node*> GroupLowerer::LowerReduction(const partition::Value& value) {
  const Node* node = value.node;
  const std::vector<int64_t>& axes = node->attr<ir::IntsAttr>().values;
  Point point{AxesIndex(value.axes), {}};
  std::vector<const Node*> ranges;
  if (ir::NumElements(node->operand(0)->shape()) == 0) return Neutral(context_, node);
  for (size_t i = 0; i < axes.size(); ++i) {
    point.index[axes[i]] = AxisIndex(value.reduce_axes[i]);
    for (const partition::Digit& digit : value.reduce_axes[i]) {
      const Node* range = ranges_.at(digit.loop);
      // A loop of extent 1 is the constant 0.
      if (range->op() == Op::kRange && !absl::c_linear_search(ranges, range)) {
        ranges.push_back(range);
      }
    }
  }
  absl::StatusOr<const Node*> operand =
      node->op() == Op::kReduceSum ? expressions_.LowerSummed(node->operand(0), point, ranges)
                                   : expressions_.Lower(node->operand(0), point);
  // All reduced dimensions have size 1: the only term is the result.
  if (!operand.ok() || ranges.empty()) return operand;
  absl::c_sort(ranges, [](const Node* a, const Node* b) { return Compare(a, b) < 0; });
  const ir::ReduceKind kind = node->op() == Op::kReduceSum    ? ir::ReduceKind::kSum
                              : node->op() == Op::kReduceProd ? ir::ReduceKind::kProd
                                                              : ir::ReduceKind::kMax;
  std::vector<const Node*> operands = {*operand};
  operands.insert(operands.end(), ranges.begin(), ranges.end());
  return context_.Get(Op::kReduce, node->dtype(), {}, std::move(operands), ir::ReduceAttr{kind});
}

// Stores one value at its position in the scatter's destination.
absl::StatusOr<Store> GroupLowerer::LowerScatter(const partition::Value& value) {
  const auto [axis, mode] = value.node->attr<ir::ScatterAttr>();
  Point from{AxesIndex(value.axes), {}};
  from.index[axis] = AxisIndex(value.reduce_axes[0]);
  absl::StatusOr<const Node*> scattered = expressions_.Lower(value.node->operand(2), from);
  if (!scattered.ok()) return scattered.status();
  absl::StatusOr<Point> to = expressions_.IndexedPoint(value.node, axis, from);
  if (!to.ok()) return to.status();
  const int buffer = write_buffers_.at(value.tensor);
  const Node* index = math_.Flatten(to->index, value.node->shape());
  const Interval bounds = math_.BoundsOf(index, to->valid);
  const int64_t elements = ir::NumElements(value.node->shape());
  // The op's semantics keep the index in bounds; if that is too hard to prove, adds a condition.
  if (bounds.low < 0 || bounds.high >= elements) math_.Require(to->valid, index, 0, elements);
  const Node* valid = math_.ToNode(to->valid);
  const std::optional<Op> combiner = ir::CombinerOf(mode);
  if (!combiner.has_value()) return Store{buffer, index, *scattered, valid};
  // Loads exactly the element that is stored, under the same condition: Verify allows a scatter no
  // other load of its destination.
  std::vector<const Node*> place = {index};
  if (valid != nullptr) place.push_back(valid);
  const ir::DType dtype = value.node->dtype();
  const Node* old = context_.Get(Op::kLoad, dtype, {}, std::move(place), ir::IntAttr{buffer});
  return Store{buffer, index, context_.Get(*combiner, dtype, {}, {old, *scattered}), valid};
}

const Node* GroupLowerer::DigitIndex(const partition::Digit& digit) {
  const Node* quotient = math_.Div(ranges_.at(digit.loop), digit.stride);
  return math_.Mod(quotient, digit.extent);
}

const Node* GroupLowerer::AxisIndex(const partition::Digits& digits) {
  std::vector<const Node*> indices;
  std::vector<int64_t> extents;
  for (const partition::Digit& digit : digits) {
    indices.push_back(DigitIndex(digit));
    extents.push_back(digit.extent);
  }
  return math_.Flatten(indices, extents);
}

std::vector<const Node*> GroupLowerer::AxesIndex(const std::vector<partition::Digits>& axes) {
  std::vector<const Node*> indices;
  for (const partition::Digits& axis : axes) indices.push_back(AxisIndex(axis));
  return indices;
}

absl::StatusOr<Source> GroupLowerer::Find(const Node* node, const Point& point) {
  if (auto read = read_buffers_.find(node); read != read_buffers_.end()) {
    return Source{Source::Kind::kMemory, read->second, math_.Flatten(point.index, node->shape()),
                  ir::NumElements(node->shape()), nullptr};
  }
  if (auto local = locals_.find(node); local != locals_.end()) {
    return FindLocal(local->second, point);
  }
  auto value = values_.find(node);
  const bool reduction =
      node->op() == Op::kReduceSum || node->op() == Op::kReduceProd || node->op() == Op::kReduceMax;
  if (value == values_.end() || !reduction) return Source{};
  // In its own stage a reduction has a value only at the current point of the loops.
  if (!point.valid.always() || point.index != AxesIndex(value->second->axes)) {
    return absl::InternalError(
        absl::StrCat("reduction ", node->id(), " is read in its own stage at another point"));
  }
  absl::StatusOr<const Node*> computed = LowerReduction(*value->second);
  if (!computed.ok()) return computed.status();
  return Source{Source::Kind::kComputed, -1, nullptr, 0, *computed};
}

absl::StatusOr<Source> GroupLowerer::FindLocal(const LocalValue& local, const Point& point) {
  std::vector<const Node*> digits;
  std::vector<int64_t> extents;
  for (size_t i = 0; i < local.value->axes.size(); ++i) {
    const partition::Digits& axis = local.value->axes[i];
    std::vector<int64_t> sizes;
    for (const partition::Digit& digit : axis) sizes.push_back(digit.extent);
    // The reader's index, in the digits by which the local was written.
    const std::vector<const Node*> parts = math_.Unflatten(point.index[i], sizes, &point.valid);
    for (size_t j = 0; j < axis.size(); ++j) {
      if (!InGrid(axis[j].loop)) {
        digits.push_back(parts[j]);
        extents.push_back(sizes[j]);
      } else if (parts[j] != DigitIndex(axis[j])) {
        return absl::InternalError(absl::StrCat("local of node ", local.value->node->id(),
                                                " is read from another point of the grid"));
      }
    }
  }
  return Source{Source::Kind::kMemory, local.buffer, math_.Flatten(digits, extents),
                result_.kernel.buffers[local.buffer].elements, nullptr};
}

}  // namespace

absl::StatusOr<LoweredKernel> Lower(const partition::Partition& partition, int group,
                                    ir::Context& context) {
  GroupLowerer lowerer(partition, partition.groups[group], context);
  absl::StatusOr<LoweredKernel> lowered = lowerer.Run();
  if (!lowered.ok()) {
    return absl::Status(lowered.status().code(),
                        absl::StrCat("kernel ", group, ": ", lowered.status().message()));
  }
  // Done before the checks, so that they check what is compiled.
  MergeRanges(&lowered->kernel, context);
  lowered->kernel.name = KernelName(lowered->kernel);
  if (absl::Status status = Verify(lowered->kernel); !status.ok()) return status;
  if (absl::Status status = VerifyBounds(lowered->kernel, context); !status.ok()) return status;
  return lowered;
}

}  // namespace kiln::kernel
