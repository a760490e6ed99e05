#include "compiler/kernel/testing/interpret.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/kernel/expression_text.h"
#include "compiler/kernel/lower.h"
#include "compiler/kernel/text.h"
#include "compiler/ops/op_def.h"

namespace kiln::kernel {

using ir::DType;
using ir::Node;
using ir::Op;
using ops::HostTensor;

namespace {

// Number of loop points evaluated at once, to bound memory.
constexpr int64_t kBlockPoints = 1 << 16;

int64_t CountPoints(const std::vector<const Node*>& ranges) {
  int64_t points = 1;
  for (const Node* range : ranges) points *= ir::ExtentOf(range);
  return points;
}

// Evaluates a scalar expression at many points: element i belongs to the i-th point. Requires: the
// ranges have their values.
class BlockEvaluator {
 public:
  using Values = absl::flat_hash_map<const Node*, HostTensor>;

  BlockEvaluator(std::vector<HostTensor*>& buffers, int64_t points)
      : buffers_(buffers), points_(points) {}

  void SetRange(const Node* range, HostTensor values) {
    values_.insert_or_assign(range, std::move(values));
  }

  absl::StatusOr<const HostTensor*> Evaluate(const Node* node) {
    if (auto known = values_.find(node); known != values_.end()) return &known->second;
    absl::StatusOr<HostTensor> value = Compute(node);
    if (!value.ok()) return value.status();
    // Callers use pointers to values before the next insertion.
    return &values_.insert_or_assign(node, *std::move(value)).first->second;
  }

  // Supplies the results of a reduction at these points.
  void SetValue(const Node* node, HostTensor value) {
    values_.insert_or_assign(node, std::move(value));
  }
  bool Has(const Node* node) const { return values_.contains(node); }

 private:
  absl::StatusOr<HostTensor> Compute(const Node* node) {
    // Evaluates all operands before taking a pointer to any: an insertion moves the map's values.
    for (const Node* operand : node->operands()) {
      if (absl::StatusOr<const HostTensor*> value = Evaluate(operand); !value.ok()) {
        return value.status();
      }
    }
    if (node->op() == Op::kLoad) return Load(node);
    std::vector<const HostTensor*> operands;
    // The table of ops evaluates tensor nodes, so each scalar node gets a tensor node whose one
    // dimension is the points.
    std::vector<const Node*> twins;
    for (const Node* operand : node->operands()) {
      operands.push_back(&values_.at(operand));
      twins.push_back(context_.Get(Op::kInput, operand->dtype(), {points_}, {}, ir::InputAttr{}));
    }
    if (node->op() == Op::kConst) return Constant(node);
    const ops::OpDef& row = ops::DefOf(node->op());
    if (row.evaluate == nullptr) {
      return absl::InternalError(
          absl::StrCat("no meaning for ", std::string(ir::Name(node->op()))));
    }
    const Node* twin =
        context_.Get(node->op(), node->dtype(), {points_}, std::move(twins), node->attribute());
    return row.evaluate(twin, operands);
  }

  HostTensor Constant(const Node* node) const {
    HostTensor result = HostTensor::Zeros(node->dtype(), {points_});
    const ir::ConstValue& value = node->attr<ir::ConstValue>();
    const bool is_float = ir::IsFloat(node->dtype());
    for (int64_t i = 0; i < points_; ++i)
      is_float ? result.SetFloat(i, value.AsDouble()) : result.SetInt(i, value.AsInt());
    return result;
  }

  absl::StatusOr<HostTensor> Load(const Node* node) {
    const HostTensor& source = *buffers_[node->attr<ir::IntAttr>().value];
    const HostTensor& index = values_.at(node->operand(0));
    const HostTensor* valid = node->operands().size() > 1 ? &values_.at(node->operand(1)) : nullptr;
    HostTensor result = HostTensor::Zeros(node->dtype(), {points_});
    const int64_t elements = source.size();
    for (int64_t i = 0; i < points_; ++i) {
      if (valid != nullptr && valid->Int(i) == 0) continue;
      const int64_t at = index.Int(i);
      if (at < 0 || at >= elements) {
        return absl::InternalError(
            absl::StrCat("load at ", at, " of ", elements, ": ", PrintExpression(node)));
      }
      ops::CopyElement(source, at, result, i);
    }
    return result;
  }

  std::vector<HostTensor*>& buffers_;
  int64_t points_;
  ir::Context context_;
  Values values_;
};

// Runs a kernel once.
class KernelInterpreter {
 public:
  KernelInterpreter(const Kernel& kernel, absl::Span<HostTensor* const> globals)
      : kernel_(kernel), buffers_(globals.begin(), globals.end()) {}

  absl::Status Run() {
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.memory != Memory::kLocal) continue;
      locals_.push_back(HostTensor::Zeros(buffer.dtype, {buffer.elements}));
    }
    for (HostTensor& local : locals_) buffers_.push_back(&local);
    if (absl::Status status = CheckBuffers(); !status.ok()) return status;
    const int64_t points = CountPoints(kernel_.grid);
    for (int64_t point = 0; point < points; ++point) {
      for (const Stage& stage : kernel_.stages) {
        if (absl::Status status = RunStage(stage, point); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckBuffers() const {
    if (buffers_.size() != kernel_.buffers.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the kernel has ", kernel_.buffers.size(),
                                                     " buffers, not ", buffers_.size()));
    }
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& buffer = kernel_.buffers[i];
      if (buffers_[i]->dtype == buffer.dtype && buffers_[i]->size() == buffer.elements) continue;
      return absl::InvalidArgumentError(absl::StrCat("buffer ", i, " has the wrong dtype or size"));
    }
    return absl::OkStatus();
  }

  absl::Status RunStage(const Stage& stage, int64_t grid_point) {
    const int64_t steps = CountPoints(stage.ordered_ranges);
    for (int64_t step = 0; step < steps; ++step) {
      absl::Status status = RunStep(stage, grid_point, step);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Runs one point of the ordered ranges: later points see what it stored.
  absl::Status RunStep(const Stage& stage, int64_t grid_point, int64_t step) {
    const int64_t points = CountPoints(stage.ranges);
    const int64_t reduce_points = CountPoints(stage.reduce_ranges);
    // Blocks contain whole points, since each point needs all values of its reduction at once.
    const int64_t block = std::max<int64_t>(1, kBlockPoints / std::max<int64_t>(1, reduce_points));
    for (int64_t begin = 0; begin < points; begin += block) {
      const int64_t size = std::min(block, points - begin);
      absl::Status status = RunBlock(stage, grid_point, step, begin, size, reduce_points);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Sets the values of the ranges at `count` points of their product, starting at `begin`: each is
  // repeated `repeat` times in a row, and the whole sequence `cycles` times.
  static void SetRanges(BlockEvaluator& block, const std::vector<const Node*>& ranges,
                        int64_t begin, int64_t count, int64_t repeat, int64_t cycles) {
    int64_t stride = 1;
    for (size_t i = ranges.size(); i-- > 0;) {
      const int64_t extent = ir::ExtentOf(ranges[i]);
      HostTensor values = HostTensor::Zeros(DType::kInt64, {cycles * count * repeat});
      auto* const all = reinterpret_cast<int64_t*>(values.bytes.data());
      int64_t* end = all;
      for (int64_t j = 0; j < count; ++j)
        end = std::fill_n(end, repeat, (begin + j) / stride % extent);
      for (int64_t cycle = 1; cycle < cycles; ++cycle) end = std::copy_n(all, count * repeat, end);
      stride *= extent;
      block.SetRange(ranges[i], std::move(values));
    }
  }

  absl::Status RunBlock(const Stage& stage, int64_t grid_point, int64_t step, int64_t begin,
                        int64_t size, int64_t reduce_points) {
    // One evaluator has a value per point, the other a value per point of each reduction.
    BlockEvaluator outer(buffers_, size);
    SetRanges(outer, kernel_.grid, grid_point, 1, 1, size);
    SetRanges(outer, stage.ordered_ranges, step, 1, 1, size);
    SetRanges(outer, stage.ranges, begin, size, 1, 1);
    // A stage with ordered ranges has no reductions (Verify), so these need no values here.
    BlockEvaluator inner(buffers_, size * reduce_points);
    if (!stage.reduce_ranges.empty()) {
      SetRanges(inner, kernel_.grid, grid_point, 1, 1, size * reduce_points);
      SetRanges(inner, stage.ranges, begin, size, reduce_points, 1);
      SetRanges(inner, stage.reduce_ranges, 0, reduce_points, 1, size);
    }
    for (const Store& store : stage.stores) {
      for (const Node* root : {store.index, store.value, store.valid}) {
        if (root == nullptr) continue;
        absl::Status status = Reduce(root, outer, inner, size, reduce_points);
        if (!status.ok()) return status;
      }
      if (absl::Status status = Write(store, outer); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Evaluates the reductions below `node`, from the inner points to the outer ones.
  absl::Status Reduce(const Node* node, BlockEvaluator& outer, BlockEvaluator& inner, int64_t size,
                      int64_t reduce_points) {
    if (outer.Has(node)) return absl::OkStatus();
    if (node->op() != Op::kReduce) {
      for (const Node* operand : node->operands()) {
        absl::Status status = Reduce(operand, outer, inner, size, reduce_points);
        if (!status.ok()) return status;
      }
      return outer.Evaluate(node).status();
    }
    absl::StatusOr<const HostTensor*> values = inner.Evaluate(node->operand(0));
    if (!values.ok()) return values.status();
    HostTensor matrix = **values;
    matrix.shape = {size, reduce_points};
    const ir::ReduceKind kind = node->attr<ir::ReduceAttr>().kind;
    const Op op = kind == ir::ReduceKind::kSum    ? Op::kReduceSum
                  : kind == ir::ReduceKind::kProd ? Op::kReduceProd
                                                  : Op::kReduceMax;
    ir::Context context;
    const Node* input =
        context.Get(Op::kInput, node->dtype(), {size, reduce_points}, {}, ir::InputAttr{});
    const Node* twin = context.Get(op, node->dtype(), {size, 1}, {input}, ir::IntsAttr{{1}});
    const HostTensor* const operands[] = {&matrix};
    absl::StatusOr<HostTensor> reduced =
        ops::DefOf(op).evaluate(twin, absl::MakeConstSpan(operands));
    if (!reduced.ok()) return reduced.status();
    reduced->shape = {size};
    outer.SetValue(node, *std::move(reduced));
    return absl::OkStatus();
  }

  absl::Status Write(const Store& store, BlockEvaluator& outer) {
    // All were evaluated before, so no pointer moves.
    const HostTensor& index = **outer.Evaluate(store.index);
    const HostTensor& value = **outer.Evaluate(store.value);
    const HostTensor* valid = store.valid == nullptr ? nullptr : *outer.Evaluate(store.valid);
    HostTensor& destination = *buffers_[store.buffer];
    const int64_t points = index.size(), elements = destination.size();
    for (int64_t i = 0; i < points; ++i) {
      if (valid != nullptr && valid->Int(i) == 0) continue;
      const int64_t at = index.Int(i);
      if (at < 0 || at >= elements) {
        return absl::InternalError(absl::StrCat("store at ", at, " of ", elements));
      }
      ops::CopyElement(value, i, destination, at);
    }
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  std::vector<HostTensor*> buffers_;
  std::vector<HostTensor> locals_;
};

}  // namespace

absl::Status Interpret(const Kernel& kernel, absl::Span<HostTensor* const> globals) {
  return KernelInterpreter(kernel, globals).Run();
}

absl::StatusOr<PartitionResults> Interpret(const partition::Partition& partition,
                                           absl::Span<const HostTensor> inputs) {
  return RunPartition(partition, inputs,
                      [](const Kernel& kernel, absl::Span<HostTensor* const> globals) {
                        return Interpret(kernel, globals);
                      });
}

absl::StatusOr<PartitionResults> RunPartition(const partition::Partition& partition,
                                              absl::Span<const HostTensor> inputs, RunKernel run) {
  std::vector<HostTensor> tensors;
  for (const partition::Tensor& tensor : partition.tensors) {
    const bool input = tensor.kind == partition::Tensor::Kind::kInput;
    tensors.push_back(input ? inputs[tensor.index] : HostTensor::Zeros(tensor.dtype, tensor.shape));
  }
  for (size_t i = 0; i < partition.groups.size(); ++i) {
    ir::Context context;
    absl::StatusOr<LoweredKernel> lowered = Lower(partition, static_cast<int>(i), context);
    if (!lowered.ok()) return lowered.status();
    std::vector<HostTensor*> globals;
    for (const int tensor : lowered->tensors) globals.push_back(&tensors[tensor]);
    if (absl::Status status = run(lowered->kernel, globals); !status.ok()) return status;
  }
  PartitionResults results;
  auto place = [&](partition::Tensor::Kind kind, int index, const HostTensor& tensor) {
    if (kind == partition::Tensor::Kind::kInput) return;
    if (kind == partition::Tensor::Kind::kIntermediate) return;
    auto& list = kind == partition::Tensor::Kind::kOutput ? results.outputs : results.updates;
    if (static_cast<int>(list.size()) <= index) list.resize(index + 1);
    list[index] = tensor;
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    place(partition.tensors[i].kind, partition.tensors[i].index, tensors[i]);
  }
  for (const partition::Copy& copy : partition.copies) {
    place(copy.destination, copy.index, tensors[copy.tensor]);
  }
  return results;
}

}  // namespace kiln::kernel
