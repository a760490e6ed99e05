#include "tests/full_size/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/short_float.h"
#include "compiler/ir/walk.h"

namespace kiln::full_size {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// Integers are small enough for float32 unless they are made up of others.
constexpr double kIntegerMagnitude = 1 << 16;
// Roundings of a function that is no single instruction.
constexpr double kFunctionRoundings = 8;
constexpr double kLongSum = 256;

int SignificandBits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 11;
    case DType::kBFloat16:
      return 8;
    case DType::kFloat32:
      return 24;
    case DType::kFloat64:
      return 53;
    default:
      return 3;
  }
}
double Rounding(DType dtype) { return std::ldexp(1, -SignificandBits(dtype)); }

// Everything in float64 and bool.
class Doubles {
 public:
  explicit Doubles(ir::Context& context) : context_(context) {}

  const Node* Number(double value) {
    return context_.Get(Op::kConst, DType::kFloat64, {}, {}, ir::ConstValue::Float(value));
  }
  const Node* Of(const Node* x) {
    return x->dtype() == DType::kFloat64 ? x : context_.Get(Op::kCast, DType::kFloat64, {}, {x});
  }
  const Node* Get(Op op, std::vector<const Node*> operands) {
    const bool compares = op == Op::kCmpLt || op == Op::kCmpEq || op == Op::kCmpNe;
    const bool logic = op == Op::kOr || op == Op::kNot;
    return context_.Get(op, compares || logic ? DType::kBool : DType::kFloat64, {},
                        std::move(operands));
  }
  // Null stands for zero, and for false.
  const Node* Add(const Node* a, const Node* b) {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    return Get(Op::kAdd, {a, b});
  }
  const Node* Mul(const Node* a, const Node* b) {
    return a == nullptr || b == nullptr ? nullptr : Get(Op::kMul, {a, b});
  }
  const Node* Max(const Node* a, const Node* b) {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    return Get(Op::kMax, {a, b});
  }
  const Node* Or(const Node* a, const Node* b) {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    return Get(Op::kOr, {a, b});
  }
  const Node* Abs(const Node* a) { return Get(Op::kMax, {a, Get(Op::kNeg, {a})}); }
  const Node* Distance(const Node* a, const Node* b) { return Abs(Get(Op::kSub, {a, b})); }
  const Node* Where(const Node* condition, const Node* a, const Node* b) {
    if (a == nullptr && b == nullptr) return nullptr;
    return Get(Op::kWhere, {condition, a == nullptr ? Number(0) : a, b == nullptr ? Number(0) : b});
  }
  // `roundings` of x; none of an infinity.
  const Node* RoundingOf(const Node* x, double rounding) {
    const Node* size = Abs(Of(x));
    const Node* finite = Get(Op::kCmpLt, {size, Number(std::numeric_limits<double>::max())});
    return Where(finite, Get(Op::kMul, {size, Number(rounding)}), nullptr);
  }

 private:
  ir::Context& context_;
};

// What is known of a node's value.
struct Known {
  const Node* value = nullptr;  // with renumbered locals
  // Of a number: its bound, in float64. Of a bool: whether it may be the other one. Null: exact.
  const Node* error = nullptr;
  bool whole = false;  // a whole number of at most `magnitude`, computed without rounding
  double magnitude = std::numeric_limits<double>::infinity();
};

class Bounder {
 public:
  Bounder(const kernel::Kernel& kernel, ir::Context& context, bool whole_inputs)
      : kernel_(kernel), context_(context), whole_inputs_(whole_inputs), doubles_(context) {}

  BoundedKernel Run() {
    NumberBuffers();
    result_.kernel.name = kernel_.name;
    result_.kernel.grid = kernel_.grid;
    for (const kernel::Stage& stage : kernel_.stages) AddStage(stage);
    return std::move(result_);
  }

 private:
  // Globals stay, their bounds come next, then locals, then theirs.
  void NumberBuffers() {
    std::vector<kernel::Buffer>& buffers = result_.kernel.buffers;
    const size_t count = kernel_.buffers.size();
    bounds_.assign(count, -1);
    renumbered_.assign(count, -1);
    stored_.resize(count);
    size_t globals = 0;
    while (globals < count && kernel_.buffers[globals].memory == kernel::Memory::kGlobal) ++globals;
    auto add = [&](DType dtype, const kernel::Buffer& like) {
      buffers.push_back({dtype, like.elements, like.memory, like.access});
      return static_cast<int>(buffers.size()) - 1;
    };
    auto add_all = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        renumbered_[i] = add(kernel_.buffers[i].dtype, kernel_.buffers[i]);
      }
      for (size_t i = begin; i < end; ++i) {
        const kernel::Buffer& buffer = kernel_.buffers[i];
        const bool written =
            buffer.memory == kernel::Memory::kLocal || buffer.access == kernel::Access::kWrite;
        if (written) bounds_[i] = add(DType::kFloat64, buffer);
      }
    };
    add_all(0, globals);
    add_all(globals, count);
    result_.bound_of.assign(bounds_.begin(), bounds_.begin() + globals);
    result_.is_exact.assign(globals, true);
  }

  void AddStage(const kernel::Stage& stage) {
    kernel::Stage bounded = stage;
    bounded.stores.clear();
    for (const kernel::Store& store : stage.stores) {
      const Known known = Visit(store.value);
      const Node* index = Visit(store.index).value;
      const Node* valid = store.valid == nullptr ? nullptr : Visit(store.valid).value;
      bounded.stores.push_back({renumbered_[store.buffer], index, known.value, valid});
      Note(store.buffer, known);
      if (bounds_[store.buffer] < 0) continue;
      bounded.stores.push_back({bounds_[store.buffer], index, AsNumber(known), valid});
    }
    result_.kernel.stages.push_back(std::move(bounded));
  }

  const Node* AsNumber(const Known& known) {
    if (known.error == nullptr) return doubles_.Number(0);
    if (known.error->dtype() != DType::kBool) return known.error;
    return doubles_.Where(known.error, doubles_.Number(1), nullptr);
  }

  void Note(int buffer, const Known& known) {
    if (kernel_.buffers[buffer].memory == kernel::Memory::kGlobal) {
      if (known.error != nullptr) result_.is_exact[buffer] = false;
      return;
    }
    Stored& stored = stored_[buffer];
    stored.exact &= known.error == nullptr;
    stored.whole &= known.whole;
    stored.magnitude = std::max(stored.magnitude, known.magnitude);
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
    known.value = node->op() == Op::kLoad
                      ? context_.Get(Op::kLoad, node->dtype(), {}, operands,
                                     ir::IntAttr{renumbered_[node->attr<ir::IntAttr>().value]})
                      : context_.Get(node->op(), node->dtype(), {}, operands, node->attribute());
    if (node->op() == Op::kLoad) return KnowLoad(node, known);
    if (node->op() == Op::kReduce) return KnowReduce(node, known);
    if (node->dtype() == DType::kBool) return KnowBool(node, known, exact);
    if (!ir::IsFloat(node->dtype())) {
      known.magnitude = kIntegerMagnitude;
      known.whole = true;
      if (!exact) known.error = Perturbed(node, 0);
      return known;
    }
    KnowMagnitude(node, &known);
    known.error = FloatError(node, known, exact);
    return known;
  }

  Known KnowLoad(const Node* node, Known known) {
    const auto buffer = static_cast<int>(node->attr<ir::IntAttr>().value);
    if (kernel_.buffers[buffer].memory == kernel::Memory::kGlobal) {
      const bool is_float = ir::IsFloat(node->dtype());
      known.whole = whole_inputs_ || !is_float;
      known.magnitude = is_float ? kInputMagnitude : kIntegerMagnitude;
      return known;
    }
    const Stored& stored = stored_[buffer];
    known.whole = stored.whole;
    known.magnitude = stored.magnitude;
    if (stored.exact) return known;
    std::vector<const Node*> operands(known.value->operands().begin(),
                                      known.value->operands().end());
    known.error =
        context_.Get(Op::kLoad, DType::kFloat64, {}, operands, ir::IntAttr{bounds_[buffer]});
    if (node->dtype() == DType::kBool) {
      known.error = doubles_.Get(Op::kCmpNe, {known.error, doubles_.Number(0)});
    }
    return known;
  }

  Known KnowReduce(const Node* node, Known known) {
    const Known& term = Of(node->operand(0));
    const ir::ReduceKind kind = node->attr<ir::ReduceAttr>().kind;
    double count = 1;
    std::vector<const Node*> ranges;
    for (size_t i = 1; i < node->operands().size(); ++i) {
      ranges.push_back(node->operand(static_cast<int>(i)));
      count *= static_cast<double>(ranges.back()->attr<ir::RangeAttr>().extent);
    }
    auto reduce = [&](ir::ReduceKind how, const Node* value) -> const Node* {
      if (value == nullptr) return nullptr;
      std::vector<const Node*> operands = {value};
      operands.insert(operands.end(), ranges.begin(), ranges.end());
      return context_.Get(Op::kReduce, value->dtype(), {}, std::move(operands),
                          ir::ReduceAttr{how});
    };
    if (!ir::IsFloat(node->dtype())) {
      known.whole = true;
      known.magnitude = kIntegerMagnitude;
      known.error = reduce(ir::ReduceKind::kMax, term.error);
      return known;
    }
    if (kind == ir::ReduceKind::kMax) {
      known.whole = term.whole;
      known.magnitude = term.magnitude;
      known.error = reduce(ir::ReduceKind::kMax, term.error);
      return known;
    }
    if (kind == ir::ReduceKind::kProd) {
      const Node* size = doubles_.Abs(doubles_.Of(term.value));
      const Node* floor = doubles_.Number(std::numeric_limits<float>::min());
      const Node* relative = doubles_.Number(Rounding(node->dtype()));
      if (term.error != nullptr) {
        const Node* share = doubles_.Get(Op::kDiv, {term.error, doubles_.Max(size, floor)});
        relative = doubles_.Add(relative, share);
      }
      known.error = doubles_.Mul(doubles_.Abs(doubles_.Of(known.value)),
                                 reduce(ir::ReduceKind::kSum, relative));
      return known;
    }
    known.magnitude = term.magnitude * count;
    known.whole = term.whole && IsExact(known.magnitude, node->dtype());
    if (known.whole && term.error == nullptr) return known;
    result_.has_long_sum |= count > kLongSum;
    const double roundings = std::min(count, 2 + 2 * std::sqrt(count)) * Rounding(node->dtype());
    known.error = reduce(ir::ReduceKind::kSum,
                         doubles_.Add(term.error, doubles_.RoundingOf(term.value, roundings)));
    return known;
  }

  Known KnowBool(const Node* node, Known known, bool exact) {
    known.whole = true;
    known.magnitude = 1;
    if (exact) return known;
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

  static bool IsExact(double magnitude, DType dtype) {
    return magnitude <= std::ldexp(1, SignificandBits(dtype));
  }

  // Whether a float is whole, and how large it may be.
  void KnowMagnitude(const Node* node, Known* known) {
    auto of = [&](int i) -> const Known& { return Of(node->operand(i)); };
    double magnitude = std::numeric_limits<double>::infinity();
    bool whole = true;
    switch (node->op()) {
      case Op::kConst: {
        const double value = node->attr<ir::ConstValue>().AsDouble();
        magnitude = std::abs(value);
        whole = value == std::trunc(value);
        break;
      }
      case Op::kAdd:
      case Op::kSub:
        magnitude = of(0).magnitude + of(1).magnitude;
        whole = of(0).whole && of(1).whole;
        break;
      case Op::kMul:
        magnitude = of(0).magnitude * of(1).magnitude;
        whole = of(0).whole && of(1).whole;
        break;
      case Op::kMax:
      case Op::kMin:
        magnitude = std::max(of(0).magnitude, of(1).magnitude);
        whole = of(0).whole && of(1).whole;
        break;
      case Op::kWhere:
        magnitude = std::max(of(1).magnitude, of(2).magnitude);
        whole = of(1).whole && of(2).whole;
        break;
      case Op::kNeg:
      case Op::kTrunc:
        magnitude = of(0).magnitude;
        whole = of(0).whole;
        break;
      case Op::kCast:
        // Rounding to a short float leaves a whole number whole.
        magnitude = of(0).magnitude * (1 + 2 * Rounding(node->dtype()));
        whole = of(0).whole;
        if (whole && ir::IsShortFloat(node->dtype())) {
          known->whole = true;
          known->magnitude = magnitude;
          return;
        }
        break;
      default:
        whole = false;
    }
    known->magnitude = magnitude;
    known->whole = whole && (IsExact(magnitude, node->dtype()) || node->op() == Op::kMax ||
                             node->op() == Op::kMin || node->op() == Op::kWhere);
  }

  const Node* FloatError(const Node* node, const Known& known, bool exact) {
    auto error = [&](int i) { return Of(node->operand(i)).error; };
    auto value = [&](int i) { return doubles_.Of(Of(node->operand(i)).value); };
    const double rounding = Rounding(node->dtype());
    const Node* rounded = known.whole ? nullptr : doubles_.RoundingOf(known.value, rounding);
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
        // The same number rounds in the same way.
        if (exact) return nullptr;
        if (error(0)->dtype() == DType::kBool)
          return doubles_.Where(error(0), doubles_.Number(1), nullptr);
        return doubles_.Add(error(0), doubles_.RoundingOf(known.value, 2 * rounding));
      default:
        return Perturbed(node, kFunctionRoundings * rounding);
    }
  }

  // Of any function: how far it moves when its operands do, one after the other.
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

  // What is known of a local's elements.
  struct Stored {
    bool exact = true;
    bool whole = true;
    double magnitude = 0;
  };

  const kernel::Kernel& kernel_;
  ir::Context& context_;
  const bool whole_inputs_;
  Doubles doubles_;
  BoundedKernel result_;
  std::vector<int> renumbered_;
  std::vector<int> bounds_;
  std::vector<Stored> stored_;
  absl::flat_hash_map<const Node*, Known> known_;
};

}  // namespace

BoundedKernel WithErrorBounds(const kernel::Kernel& kernel, ir::Context& context,
                              bool whole_inputs) {
  return Bounder(kernel, context, whole_inputs).Run();
}

}  // namespace kiln::full_size
