#include "tests/full_size/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/walk.h"
#include "tests/full_size/bound_buffers.h"
#include "tests/full_size/doubles.h"
#include "tests/full_size/whole.h"

namespace kiln::full_size {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// Integers are small enough for float32 unless they are computed from others.
constexpr double kIntegerMagnitude = 1 << 16;
// Roundings of a function that is not a single instruction.
constexpr double kFunctionRoundings = 8;
constexpr double kLongSum = 256;

double CountTerms(const Node* reduce) {
  double count = 1;
  for (const Node* range : reduce->operands().subspan(1)) {
    count *= static_cast<double>(range->attr<ir::RangeAttr>().extent);
  }
  return count;
}

// Known properties of a node's value.
struct Known {
  const Node* value = nullptr;  // with renumbered locals
  // For a number: its bound, in float64. For a bool: whether it may have the other value. Null:
  // exact.
  const Node* error = nullptr;
  Size size;
};

class Bounder {
 public:
  Bounder(const kernel::Kernel& kernel, ir::Context& context, bool whole_inputs)
      : kernel_(kernel),
        context_(context),
        whole_inputs_(whole_inputs),
        doubles_(context),
        numbers_(AddBounds(kernel)),
        stored_(kernel.buffers.size()) {}

  BoundedKernel Run() {
    const auto bounds = numbers_.bound_of.begin();
    result_.bound_of.assign(bounds, bounds + numbers_.globals);
    result_.is_exact.assign(numbers_.globals, true);
    result_.kernel = {kernel_.name, numbers_.buffers, kernel_.grid, {}};
    for (const kernel::Stage& stage : kernel_.stages) AddStage(stage);
    return std::move(result_);
  }

 private:
  void AddStage(const kernel::Stage& stage) {
    kernel::Stage bounded = stage;
    bounded.stores.clear();
    for (const kernel::Store& store : stage.stores) {
      const Known known = Visit(store.value);
      const Node* index = Visit(store.index).value;
      const Node* valid = store.valid == nullptr ? nullptr : Visit(store.valid).value;
      bounded.stores.push_back({numbers_.value_of[store.buffer], index, known.value, valid});
      Note(store.buffer, known);
      if (numbers_.bound_of[store.buffer] < 0) continue;
      bounded.stores.push_back(
          {numbers_.bound_of[store.buffer], index, doubles_.AsNumber(known.error), valid});
    }
    result_.kernel.stages.push_back(std::move(bounded));
  }

  void Note(int buffer, const Known& known) {
    if (kernel_.buffers[buffer].memory == kernel::Memory::kGlobal) {
      if (known.error != nullptr) result_.is_exact[buffer] = false;
      return;
    }
    Stored& stored = stored_[buffer];
    stored.exact &= known.error == nullptr;
    stored.size.whole &= known.size.whole;
    stored.size.magnitude = std::max(stored.size.magnitude, known.size.magnitude);
  }

  Known Visit(const Node* root) {
    for (const Node* node : ir::TopologicalOrder({&root, 1})) {
      if (!known_.contains(node)) known_.emplace(node, Know(node));
    }
    return known_.at(root);
  }
  const Known& Of(const Node* operand) const { return known_.at(operand); }

  Known Know(const Node* node) {
    std::vector<const Node*> operands;
    bool exact = true;
    for (const Node* operand : node->operands()) {
      operands.push_back(Of(operand).value);
      exact &= Of(operand).error == nullptr;
    }
    Known known;
    known.value =
        node->op() == Op::kLoad
            ? context_.Get(Op::kLoad, node->dtype(), {}, operands,
                           ir::IntAttr{numbers_.value_of[node->attr<ir::IntAttr>().value]})
            : context_.Get(node->op(), node->dtype(), {}, operands, node->attribute());
    if (node->op() == Op::kLoad) return KnowLoad(node, known);
    if (node->op() == Op::kReduce) return KnowReduce(node, known);
    if (node->dtype() == DType::kBool) return KnowBool(node, known, exact);
    if (!ir::IsFloat(node->dtype())) {
      known.size = {true, kIntegerMagnitude};
      if (!exact) known.error = Perturbed(node, 0);
      return known;
    }
    known.size = SizeOf(node);
    known.error = FloatError(node, known, exact);
    return known;
  }

  Known KnowLoad(const Node* node, Known known) {
    const auto buffer = static_cast<int>(node->attr<ir::IntAttr>().value);
    if (kernel_.buffers[buffer].memory == kernel::Memory::kGlobal) {
      const bool is_float = ir::IsFloat(node->dtype());
      known.size = {whole_inputs_ || !is_float,
                    is_float ? static_cast<double>(kInputMagnitude) : kIntegerMagnitude};
      return known;
    }
    const Stored& stored = stored_[buffer];
    known.size = stored.size;
    if (stored.exact) return known;
    std::vector<const Node*> operands(known.value->operands().begin(),
                                      known.value->operands().end());
    known.error = context_.Get(Op::kLoad, DType::kFloat64, {}, operands,
                               ir::IntAttr{numbers_.bound_of[buffer]});
    if (node->dtype() == DType::kBool) {
      known.error = doubles_.Get(Op::kCmpNe, {known.error, doubles_.Number(0)});
    }
    return known;
  }

  Known KnowReduce(const Node* node, Known known) {
    const Known& term = Of(node->operand(0));
    const ir::ReduceKind kind = node->attr<ir::ReduceAttr>().kind;
    auto reduce = [&](ir::ReduceKind how, const Node* value) {
      return doubles_.Reduce(node, how, value);
    };
    if (!ir::IsFloat(node->dtype())) {
      known.size = {true, kIntegerMagnitude};
      known.error = reduce(ir::ReduceKind::kMax, term.error);
      return known;
    }
    if (kind == ir::ReduceKind::kMax) {
      known.size = term.size;
      known.error = reduce(ir::ReduceKind::kMax, term.error);
      return known;
    }
    if (kind == ir::ReduceKind::kProd) {
      known.error = doubles_.Mul(
          doubles_.Abs(doubles_.Of(known.value)),
          reduce(ir::ReduceKind::kSum,
                 doubles_.Relative(term.value, term.error, RoundingTo(node->dtype()))));
      return known;
    }
    const double count = CountTerms(node);
    known.size.magnitude = term.size.magnitude * count;
    known.size.whole = term.size.whole && HoldsWhole(known.size.magnitude, node->dtype());
    if (known.size.whole && term.error == nullptr) return known;
    result_.has_long_sum |= count > kLongSum;
    const double roundings = std::min(count, 2 + 2 * std::sqrt(count)) * RoundingTo(node->dtype());
    known.error = reduce(ir::ReduceKind::kSum,
                         doubles_.Add(term.error, doubles_.RoundingOf(term.value, roundings)));
    return known;
  }

  Known KnowBool(const Node* node, Known known, bool exact) {
    known.size = {true, 1};
    if (exact) return known;
    // A comparison may have either result if its sides differ by no more than their errors.
    const bool compares =
        node->op() == Op::kCmpLt || node->op() == Op::kCmpEq || node->op() == Op::kCmpNe;
    if (compares && node->operand(0)->dtype() != DType::kBool) {
      const Known& a = Of(node->operand(0));
      const Known& b = Of(node->operand(1));
      const Node* apart = doubles_.Distance(doubles_.Of(a.value), doubles_.Of(b.value));
      known.error = doubles_.Get(
          Op::kNot, {doubles_.Get(Op::kCmpLt, {doubles_.Add(a.error, b.error), apart})});
      return known;
    }
    for (const Node* operand : node->operands()) {
      const Node* error = Of(operand).error;
      if (error != nullptr && error->dtype() != DType::kBool) {
        error = doubles_.Get(Op::kCmpNe, {error, doubles_.Number(0)});
      }
      known.error = doubles_.Or(known.error, error);
    }
    return known;
  }

  Size SizeOf(const Node* node) const {
    std::vector<Size> operands;
    for (const Node* operand : node->operands()) operands.push_back(Of(operand).size);
    return SizeOfFloat(node, operands);
  }

  const Node* FloatError(const Node* node, const Known& known, bool exact) {
    auto error = [&](int i) { return Of(node->operand(i)).error; };
    auto value = [&](int i) { return doubles_.Of(Of(node->operand(i)).value); };
    const double rounding = RoundingTo(node->dtype());
    const Node* rounded = known.size.whole ? nullptr : doubles_.RoundingOf(known.value, rounding);
    switch (node->op()) {
      case Op::kConst:
        return nullptr;
      case Op::kNeg:
        return error(0);
      case Op::kMax:
      case Op::kMin:
        return doubles_.Max(error(0), error(1));
      case Op::kAdd:
      case Op::kSub:
        return doubles_.Add(doubles_.Add(error(0), error(1)), rounded);
      case Op::kMul: {
        // |ab - a'b'| <= |a - a'| (|b| + |b - b'|) + |b - b'| |a|.
        const Node* left = doubles_.Mul(error(0), doubles_.Add(doubles_.Abs(value(1)), error(1)));
        const Node* right = doubles_.Mul(error(1), doubles_.Abs(value(0)));
        return doubles_.Add(doubles_.Add(left, right), rounded);
      }
      case Op::kWhere: {
        const Node* chosen = doubles_.Where(Of(node->operand(0)).value, error(1), error(2));
        if (error(0) == nullptr) return chosen;
        const Node* either =
            doubles_.Add(doubles_.Distance(value(1), value(2)), doubles_.Add(error(1), error(2)));
        return doubles_.Where(error(0), either, chosen);
      }
      case Op::kCast:
        // Equal numbers round equally.
        if (exact) return nullptr;
        if (error(0)->dtype() == DType::kBool)
          return doubles_.Where(error(0), doubles_.Number(1), nullptr);
        return doubles_.Add(error(0), doubles_.RoundingOf(known.value, 2 * rounding));
      default:
        return Perturbed(node, kFunctionRoundings * rounding);
    }
  }

  // For any function: how far its value moves when its operands do, one after another.
  const Node* Perturbed(const Node* node, double rounding) {
    const bool is_float = ir::IsFloat(node->dtype());
    std::vector<const Node*> wide;
    for (const Node* operand : node->operands()) {
      wide.push_back(is_float || ir::IsFloat(operand->dtype()) ? doubles_.Of(Of(operand).value)
                                                               : Of(operand).value);
    }
    const DType dtype = is_float ? DType::kFloat64 : node->dtype();
    auto at = [&](std::vector<const Node*> operands) {
      return doubles_.Of(
          context_.Get(node->op(), dtype, {}, std::move(operands), node->attribute()));
    };
    const Node* middle = at(wide);
    const Node* error = rounding > 0 ? doubles_.RoundingOf(middle, rounding) : nullptr;
    for (size_t i = 0; i < wide.size(); ++i) {
      const Node* moved = Of(node->operand(static_cast<int>(i))).error;
      if (moved == nullptr || wide[i]->dtype() != DType::kFloat64) continue;
      if (moved->dtype() == DType::kBool) continue;
      for (const Op direction : {Op::kAdd, Op::kSub}) {
        std::vector<const Node*> there = wide;
        there[i] = doubles_.Get(direction, {wide[i], moved});
        error = doubles_.Add(error, doubles_.Distance(at(there), middle));
      }
    }
    return error;
  }

  // Known properties of a local's elements.
  struct Stored {
    bool exact = true;
    Size size = {true, 0};
  };

  const kernel::Kernel& kernel_;
  ir::Context& context_;
  const bool whole_inputs_;
  Doubles doubles_;
  BoundedKernel result_;
  const BoundBuffers numbers_;
  std::vector<Stored> stored_;
  absl::flat_hash_map<const Node*, Known> known_;
};

}  // namespace

BoundedKernel WithErrorBounds(const kernel::Kernel& kernel, ir::Context& context,
                              bool whole_inputs) {
  return Bounder(kernel, context, whole_inputs).Run();
}

}  // namespace kiln::full_size
