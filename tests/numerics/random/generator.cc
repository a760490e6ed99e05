#include "tests/numerics/random/generator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "compiler/autodiff/differentiate.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::numerics {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

namespace {

// Limits of the elements of a value, and of an op's expansion.
constexpr int64_t kElementsMax = 600;
constexpr int64_t kInsideMax = 50'000;
constexpr int64_t kWideElementsMax = 8'000;
constexpr int64_t kWideInsideMax = 150'000;
constexpr double kLargest = 300;
// Graphs of some steps must compile quickly, so larger ones are rarely kept.
constexpr size_t kManyNodes = 300;
// The compiled program's error may be this many times the measured effect of rounding.
constexpr double kSafety = 16;

ir::Context& MakeContext(graph::Graph& graph) {
  graph.context = std::make_shared<ir::Context>();
  return *graph.context;
}

}  // namespace

Generator::Generator(const RandomGraphOptions& options)
    : options_(options),
      random_(options.seed),
      builder_(MakeContext(graph_)),
      sensitivity_(options.seed + 1) {
  // Three, or more until one is accepted: the steps need at least one value.
  for (int i = 0; i < 3 || values_.empty(); ++i) {
    const DType dtype = i < 2 ? FloatDType() : IntegerDType();
    Value value = NewInput(dtype, RandomShape());
    if (Accept(value)) values_.push_back(value);
  }
}

void Generator::Step() {
  static constexpr Value (Generator::*kKinds[])() = {
      &Generator::FloatUnary,  &Generator::FloatBinary, &Generator::FloatBinary,
      &Generator::Integer,     &Generator::Choice,      &Generator::Reduction,
      &Generator::Reduction,   &Generator::Movement,    &Generator::Movement,
      &Generator::Movement,    &Generator::Sliding,     &Generator::Gathering,
      &Generator::Contraction, &Generator::Conversion,  &Generator::Source,
  };
  for (int attempt = 0; attempt < 500; ++attempt) {
    grafted_.clear();
    Value value = Coin() ? Graft() : (this->*kKinds[Draw(std::size(kKinds))])();
    if (!Accept(value)) continue;
    if (!grafted_.empty()) ops_.push_back(grafted_);
    MarkUsed(value.node);
    values_.push_back(value);
    return;
  }
  Value value = NewInput(ops::HostTensor::Of(FloatDType(), {}, {0.5}));
  if (Accept(value)) values_.push_back(value);
}

// Operands of a used value are used, too.
void Generator::MarkUsed(const Node* node) {
  std::vector<const Node*> pending(node->operands().begin(), node->operands().end());
  while (!pending.empty()) {
    const Node* next = pending.back();
    pending.pop_back();
    if (!used_.insert(next).second) continue;
    pending.insert(pending.end(), next->operands().begin(), next->operands().end());
  }
}

int64_t Generator::ElementsMax() const { return options_.wide ? kWideElementsMax : kElementsMax; }

Shape Generator::RandomShape() {
  Shape shape(Draw(4));
  for (int64_t& size : shape) size = RandomSize();
  // Limits the size, since three large dimensions would be gigabytes.
  for (int64_t& size : shape) {
    if (ir::NumElements(shape) > ElementsMax()) size = 1;
  }
  return shape;
}

int64_t Generator::RandomSize() {
  constexpr int64_t kSizes[] = {8,  15, 16,  17,  31,  32,  33,  63,
                                64, 65, 100, 128, 130, 255, 256, 1000};
  if (options_.special && Draw(9) == 0) return 0;
  return options_.wide && Coin() ? kSizes[Draw(std::size(kSizes))] : Between(1, 7);
}

DType Generator::FloatDType() {
  if (options_.only != DType::kInvalid) return options_.only;
  constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat32, DType::kFloat32,
                               DType::kFloat64, DType::kFloat16, DType::kBFloat16};
  return kDTypes[Draw(std::size(kDTypes))];
}

DType Generator::IntegerDType() {
  constexpr DType kDTypes[] = {DType::kInt32,  DType::kInt32,  DType::kInt64,
                               DType::kInt8,   DType::kInt16,  DType::kUInt8,
                               DType::kUInt16, DType::kUInt32, DType::kUInt64};
  return kDTypes[Draw(std::size(kDTypes))];
}

DType Generator::AnyDType() {
  if (options_.only != DType::kInvalid) return Coin() ? options_.only : IntegerDType();
  switch (Draw(5)) {
    case 0:
      return DType::kBool;
    case 1: {
      std::vector<DType> stored;
      std::copy_if(std::begin(ir::kAllDTypes), std::end(ir::kAllDTypes), std::back_inserter(stored),
                   ir::IsFloat8);
      return stored[Draw(stored.size())];
    }
    case 2:
      return FloatDType();
    default:
      return IntegerDType();
  }
}

double Generator::RandomNumber(DType dtype, bool fine) {
  if (!ir::IsFloat(dtype)) return static_cast<double>(Between(-9, 9));
  if (options_.special && Draw(8) == 0) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double numbers[] = {kInfinity, -kInfinity, std::nan(""), -0.0, 0.0, 1e-41};
    return numbers[Draw(std::size(numbers))];
  }
  return fine ? static_cast<double>(random_() >> 11) * 0x1p-51 - 2
              : static_cast<double>(Between(-8, 8)) / 4;
}

Value Generator::NewInput(ops::HostTensor data) {
  const auto index = static_cast<int64_t>(graph_.inputs.size());
  graph_.inputs.push_back({data.dtype, data.shape});
  inputs_.push_back(builder_.Input(index, data.dtype, data.shape));
  sensitivity_.AddInput(data);
  data_.push_back(std::move(data));
  return {inputs_.back(), true};
}

Value Generator::NewInput(DType dtype, const Shape& shape) {
  ops::HostTensor data = ops::HostTensor::Zeros(dtype, shape);
  // The gradient at a kink is a matter of definition, and numbers with few digits would hit kinks.
  const bool fine = options_.only != DType::kInvalid || Draw(4) == 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    const double number = RandomNumber(dtype, fine);
    if (ir::IsFloat(dtype)) {
      data.SetFloat(i, number);
    } else {
      data.SetInt(i, static_cast<int64_t>(number));
    }
  }
  return NewInput(std::move(data));
}

// Half of the time picks a value that nothing depends on yet, so that few values are left over.
Value Generator::Pick(const Fits& fits) {
  std::vector<const Value*> candidates;
  std::vector<const Value*> unused;
  for (const Value& value : values_) {
    if (!fits(value)) continue;
    candidates.push_back(&value);
    if (!used_.contains(value.node)) unused.push_back(&value);
  }
  if (candidates.empty()) return {};
  return !unused.empty() && Coin() ? *unused[Draw(unused.size())]
                                   : *candidates[Draw(candidates.size())];
}

namespace {
bool ComputesFloats(DType dtype) { return ir::IsFloat(dtype) && !ir::IsFloat8(dtype); }
}  // namespace

Value Generator::PickFloat() {
  return Pick([](const Value& value) { return ComputesFloats(value.node->dtype()); });
}
Value Generator::PickInt() {
  return Pick([](const Value& value) { return ir::IsInteger(value.node->dtype()); });
}
Value Generator::PickAny() {
  return Pick([](const Value&) { return true; });
}

// Returns a value of x's dtype that broadcasts with it: an existing one, or a new input with some
// of x's dimensions.
Value Generator::Partner(const Value& x) {
  const Value found = Pick([&](const Value& value) {
    return value.node->dtype() == x.node->dtype() &&
           ops::BroadcastShapes({value.node->shape(), x.node->shape()}).ok();
  });
  if (found.node != x.node || x.node->dtype() == DType::kBool) return found;
  Shape shape = x.node->shape();
  for (int64_t& size : shape) {
    if (size > 0 && Coin()) size = 1;
  }
  Value value = NewInput(x.node->dtype(), shape);
  return Accept(value) ? value : Value{};
}

bool Generator::HasGoodNumbers(const Value& value) const {
  const Measured& measured = value.measured;
  const int64_t size = ir::NumElements(value.node->shape());
  if (!ir::IsFloat(value.node->dtype())) return measured.spread == 0;
  if (measured.largest > kLargest || kSafety * measured.spread > kToleranceMax / 2) return false;
  if (!options_.special) return measured.not_finite == 0;
  return measured.not_finite == 0 || measured.not_finite < size;
}

bool Generator::Accept(Value& value) {
  const int64_t inside_max = options_.wide ? kWideInsideMax : kInsideMax;
  if (value.node == nullptr || ir::NumElements(value.node->shape()) > ElementsMax()) return false;
  const DType dtype = value.node->dtype();
  if (options_.only != DType::kInvalid && ir::IsFloat(dtype) && dtype != options_.only)
    return false;
  const std::vector<const Node*> nodes = sensitivity_.Unknown(value.node);
  if (nodes.size() > kManyNodes && Draw(8) != 0) return false;
  for (const Node* node : nodes) {
    if (ir::NumElements(node->shape()) > inside_max) return false;
  }
  if (!sensitivity_.Evaluate(value.node).ok()) return false;
  value.measured = sensitivity_.Measure(value.node);
  if (!HasGoodNumbers(value)) return false;
  if (!ir::IsFloat(dtype)) {
    value.exact = true;  // otherwise it would not have been made
  } else if (value.node->op() != Op::kInput && !value.measured.is_short) {
    value.exact = false;
  }
  return true;
}

RandomGraph Generator::Result() {
  RandomGraph result;
  result.ops = ops_;
  for (const Node* output : graph_.outputs) {
    const double spread = sensitivity_.Measure(output).spread;
    result.tolerances.push_back(ToleranceOf(output->dtype()) + kSafety * spread);
  }
  for (const Value& value : values_) result.values.push_back(value.node);
  result.graph = graph_;
  result.inputs = data_;
  return result;
}

RandomGraph Generator::Finish() {
  for (const Value& value : values_) {
    if (!used_.contains(value.node)) graph_.outputs.push_back(value.node);
  }
  for (int i = 0; i < 2; ++i) graph_.outputs.push_back(values_[Draw(values_.size())].node);
  return Result();
}

RandomGraph Generator::FinishWithGradients() {
  const auto last = std::find_if(values_.rbegin(), values_.rend(), [](const Value& value) {
    return ComputesFloats(value.node->dtype());
  });
  std::vector<int64_t> axes(last->node->shape().size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  const Node* y = builder_.Sum(last->node, axes);
  graph_.outputs = {y};
  for (const Node* input : inputs_) {
    if (!ComputesFloats(input->dtype())) continue;
    graph_.outputs.push_back(
        builder_.context().Get(Op::kGradient, input->dtype(), input->shape(), {y, input}));
  }
  // Omits gradients that rounding changes too much.
  const auto differentiated = autodiff::Differentiate(graph_);
  if (!differentiated.ok()) return Result();
  std::vector<const Node*> requests;
  std::vector<double> tolerances;
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const Node* answer = differentiated->outputs[i];
    if (!sensitivity_.Evaluate(answer).ok()) continue;
    const Measured measured = sensitivity_.Measure(answer);
    const double tolerance = ToleranceOf(answer->dtype()) + kSafety * measured.spread;
    if (!(tolerance < kToleranceMax) || (measured.not_finite > 0 && !options_.special)) continue;
    requests.push_back(graph_.outputs[i]);
    tolerances.push_back(tolerance);
  }
  graph_.outputs.clear();
  RandomGraph result = Result();
  result.graph.outputs = requests;
  result.tolerances = tolerances;
  return result;
}

}  // namespace kiln::numerics
