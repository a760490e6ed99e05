#include "compiler/graph/wire/node.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "compiler/graph/error.h"
#include "compiler/graph/wire/label.h"
#include "compiler/graph/wire/variables.h"
#include "compiler/ir/quoted.h"
#include "compiler/ir/spec.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/ops/attributes.h"
#include "compiler/ops/build.h"
#include "compiler/ops/round.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::graph {
namespace {

// ReadDType casts the wire's number: both lists have the same order and length.
#define KILN_DTYPE(constant, wire, ...) \
  static_assert(static_cast<int>(ir::DType::constant) == v1::DTYPE_##wire);
KILN_DTYPES(KILN_DTYPE)
#undef KILN_DTYPE
static_assert(ir::kNumDTypes == v1::DType_ARRAYSIZE);

absl::StatusOr<ops::AttributeValue> ReadAttribute(const v1::Attribute& attribute,
                                                  const Bindings& bindings) {
  switch (attribute.value_case()) {
    case v1::Attribute::kI:
      return ops::AttributeValue(attribute.i());
    case v1::Attribute::kF:
      return ops::AttributeValue(attribute.f());
    case v1::Attribute::kS:
      return ops::AttributeValue(attribute.s());
    case v1::Attribute::kB:
      return ops::AttributeValue(attribute.b());
    case v1::Attribute::kInts:
      return ops::AttributeValue(
          std::vector<int64_t>(attribute.ints().values().begin(), attribute.ints().values().end()));
    case v1::Attribute::kShape: {
      // Variables are resolved here: ops and their rules only handle numbers.
      absl::StatusOr<ir::Shape> shape = ResolveShape(attribute.shape(), bindings);
      if (!shape.ok()) return shape.status();
      return ops::AttributeValue(*std::move(shape));
    }
    case v1::Attribute::kDim: {
      absl::StatusOr<int64_t> number = ResolveDim(attribute.dim(), bindings);
      if (!number.ok()) return number.status();
      return ops::AttributeValue(*number);
    }
    case v1::Attribute::VALUE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("it has no value");
}

// Returns `status` with the attribute's name before its message and everything else kept.
absl::Status AboutAttribute(const std::string& name, const absl::Status& status) {
  absl::Status named(status.code(), StrCat("attribute ", Quoted(name), ": ", status.message()));
  status.ForEachPayload([&](auto url, const absl::Cord& value) { named.SetPayload(url, value); });
  return named;
}

absl::StatusOr<ops::Attributes> ReadAttributes(const v1::Node& node, const Bindings& bindings) {
  ops::Attributes attributes;
  for (const auto& [name, value] : node.attributes()) {
    absl::StatusOr<ops::AttributeValue> read = ReadAttribute(value, bindings);
    if (!read.ok()) return AboutAttribute(name, read.status());
    attributes[name] = *std::move(read);
  }
  return attributes;
}

// A finite constant that the dtype would turn into infinity or NaN is an error.
absl::Status CheckConstant(const ops::Attributes& attributes, ir::DType dtype) {
  const double* number = std::get_if<double>(&attributes.at("value"));
  if (number == nullptr || !ir::IsFloat(dtype) || !std::isfinite(*number)) return absl::OkStatus();
  if (std::isfinite(ops::RoundToFloat(dtype, *number))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("the constant ", *number, " does not fit ", ir::Name(dtype)));
}

absl::Status TooLarge(const ir::Shape& shape, const Limits& limits) {
  return MakeError("TOO_LARGE", {},
                   StrCat("a result of shape ", ops::ToString(shape), " has more than ",
                          limits.elements_max, " elements, the limit"));
}

// Checks sizes from clients before anything multiplies them.
absl::Status CheckSizes(const ops::Attributes& attributes, const Limits& limits) {
  auto attribute = attributes.find("shape");
  if (attribute == attributes.end()) return absl::OkStatus();
  const auto* shape = std::get_if<std::vector<int64_t>>(&attribute->second);
  if (shape == nullptr) return absl::OkStatus();
  for (int64_t size : *shape) {
    if (size < 0) return absl::OkStatus();  // reshape's -1; the shape rules judge it
  }
  std::optional<int64_t> elements = ir::CheckedNumElements(*shape);
  if (!elements.has_value() || *elements > limits.elements_max) return TooLarge(*shape, limits);
  return absl::OkStatus();
}

// Replaces a -1 in a reshape's shape by the elements that are left. If there is no such size, the
// shape rule refuses the -1.
void ResolveRest(int64_t elements, ops::Attributes* attributes) {
  auto& shape = std::get<std::vector<int64_t>>(attributes->at("shape"));
  const auto rest = std::find(shape.begin(), shape.end(), -1);
  if (rest == shape.end()) return;
  ir::Shape others(shape.begin(), rest);
  others.insert(others.end(), rest + 1, shape.end());
  for (const int64_t size : others) {
    if (size < 1) return;
  }
  const std::optional<int64_t> factor = ir::CheckedNumElements(others);
  if (factor.has_value() && elements % *factor == 0) *rest = elements / *factor;
}

// Builds one node and checks it. The first check that fails gives the reason.
class NodeBuilder {
 public:
  NodeBuilder(const v1::Graph& proto, int index, const std::vector<const ir::Node*>& nodes,
              const Bindings& bindings, const Limits& limits)
      : proto_(proto),
        index_(index),
        node_(proto.nodes(index)),
        nodes_(nodes),
        bindings_(bindings),
        limits_(limits) {}

  absl::StatusOr<const ir::Node*> Build(ops::Builder& builder) {
    absl::Status status = ReadOp();
    if (status.ok()) status = ReadOperands();
    if (status.ok()) status = Explain("ATTRIBUTE", ReadCompleteAttributes());
    if (status.ok()) status = ReadDType();
    if (status.ok()) status = Explain("SHAPE_MISMATCH", CheckShape());
    if (!status.ok()) return status;
    // The result is checked first, so that no composite with a wrong shape or dtype is expanded.
    absl::StatusOr<const ir::Node*> made =
        ops::Build(builder, *op_, operands_, attributes_, shape_, dtype_);
    if (!made.ok()) return Explain("ILLEGAL", made.status());
    status = Explain("TOO_LARGE", CheckResult((*made)->shape()));
    if (!status.ok()) return status;
    return made;
  }

 private:
  absl::Status Explain(std::string_view reason, const absl::Status& status) {
    return status.ok() ? status : AboutNode(proto_, index_, reason, status);
  }

  absl::Status ReadOp() {
    op_ = ops::FindOp(node_.op());
    if (op_ != nullptr) return absl::OkStatus();
    return NodeError(proto_, index_, "UNKNOWN_OP",
                     StrCat("the op is not in this daemon's op set, version ", ops::kOpSetVersion));
  }

  absl::Status ReadOperands() {
    if (node_.operands_size() > limits_.operands_max) {
      return NodeError(proto_, index_, "TOO_LARGE",
                       StrCat("it has ", node_.operands_size(), " operands; the limit is ",
                              limits_.operands_max));
    }
    for (uint32_t operand : node_.operands()) operands_.push_back(nodes_[operand]);
    return Explain("OPERAND_COUNT", ops::CheckOperandCount(*op_, operands_.size()));
  }

  absl::Status ReadCompleteAttributes() {
    absl::StatusOr<ops::Attributes> attributes = ReadAttributes(node_, bindings_);
    if (!attributes.ok()) return attributes.status();
    absl::Status sizes = CheckSizes(*attributes, limits_);
    if (!sizes.ok()) return sizes;
    // Fills in defaults and refuses attributes that the op does not have.
    attributes = ops::CompleteAttributes(*op_, *attributes);
    if (!attributes.ok()) return attributes.status();
    attributes_ = *std::move(attributes);
    const bool is_reshape = op_->kind == ops::Kind::kMovement && op_->op == ir::Op::kReshape;
    if (is_reshape) ResolveRest(ir::NumElements(operands_[0]->shape()), &attributes_);
    return absl::OkStatus();
  }

  absl::Status ReadDType() {
    if (!v1::DType_IsValid(node_.dtype())) {
      return NodeError(proto_, index_, "DTYPE_MISMATCH",
                       StrCat("unknown dtype number ", static_cast<int>(node_.dtype())));
    }
    std::vector<ir::DType> dtypes;
    for (const ir::Node* operand : operands_) dtypes.push_back(operand->dtype());
    // kInvalid means "not declared": most ops infer their dtype.
    const auto declared = static_cast<ir::DType>(node_.dtype());
    const absl::StatusOr<ir::DType> inferred = ops::InferDType(*op_, dtypes, declared);
    if (!inferred.ok()) return Explain("DTYPE_MISMATCH", inferred.status());
    dtype_ = *inferred;
    bool is_const = op_->kind == ops::Kind::kSource && op_->op == ir::Op::kConst;
    return is_const ? Explain("ATTRIBUTE", CheckConstant(attributes_, dtype_)) : absl::OkStatus();
  }

  absl::Status CheckShape() {
    std::vector<ir::Shape> shapes;
    for (const ir::Node* operand : operands_) shapes.push_back(operand->shape());
    absl::StatusOr<ir::Shape> shape = ops::InferShape(*op_, shapes, attributes_);
    if (!shape.ok()) return shape.status();
    shape_ = *std::move(shape);
    return CheckResult(shape_);
  }

  absl::Status CheckResult(const ir::Shape& shape) {
    return ir::NumElements(shape) > limits_.elements_max ? TooLarge(shape, limits_)
                                                         : absl::OkStatus();
  }

  const v1::Graph& proto_;
  int index_;
  const v1::Node& node_;
  const std::vector<const ir::Node*>& nodes_;
  const Bindings& bindings_;
  const Limits& limits_;
  const ops::OpDef* op_ = nullptr;
  std::vector<const ir::Node*> operands_;
  ops::Attributes attributes_;
  ir::Shape shape_;
  ir::DType dtype_ = ir::DType::kInvalid;
};

}  // namespace

absl::StatusOr<const ir::Node*> BuildNode(const v1::Graph& proto, int index,
                                          const std::vector<const ir::Node*>& nodes,
                                          const Bindings& bindings, const Limits& limits,
                                          ops::Builder& builder) {
  return NodeBuilder(proto, index, nodes, bindings, limits).Build(builder);
}

}  // namespace kiln::graph
