#include "clients/cpp/call.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "clients/cpp/op_row.h"

namespace kiln {
namespace internal {
namespace {

// Converts one alternative of a number or dimension.
struct ToAttribute {
  AttributeValue operator()(int64_t value) const { return value; }
  AttributeValue operator()(double value) const { return value; }
  AttributeValue operator()(bool value) const { return value; }
  AttributeValue operator()(const std::string& variable) const {
    return DimensionSum{0, {{variable, 1}}};
  }
  AttributeValue operator()(const DimensionSum& sum) const { return sum; }
};

using Operands = absl::Span<const std::optional<Operand>>;

// The builder of the first value; AddNode refuses values of another builder.
GraphBuilder* BuilderOf(Operands operands) {
  for (const std::optional<Operand>& operand : operands) {
    if (operand.has_value() && operand->value() != nullptr &&
        operand->value()->builder() != nullptr)
      return operand->value()->builder();
  }
  return nullptr;
}

// The dtype that numbers among the operands take.
DType DTypeOfValues(const OpRow& row, Operands operands) {
  // Every dtype promotes bool to itself.
  DType dtype = DType::kBool;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].has_value() && operands[i]->value() != nullptr && Promotes(row, i))
      dtype = Promote(dtype, operands[i]->value()->dtype());
  }
  return dtype;
}

Value Constant(GraphBuilder& builder, const Number& number, DType like, const Location& location) {
  return builder.AddNode("const", {},
                         {{"value", AttributeOf(number)}, {"shape", std::vector<Dimension>{}}},
                         WeakDType(number, like), location);
}

}  // namespace

std::string SourceOf(const Location& location) {
  const std::string_view path = location.file_name();
  return absl::StrCat(std::string(path.substr(path.rfind('/') + 1)), ":", location.line());
}

AttributeValue AttributeOf(const Number& number) { return std::visit(ToAttribute{}, number); }
AttributeValue AttributeOf(const Dimension& dimension) {
  return std::visit(ToAttribute{}, dimension);
}
AttributeValue AttributeOf(const Dimensions& dimensions) {
  std::vector<int64_t> numbers;
  for (const Dimension& dimension : dimensions.list()) {
    const auto* number = std::get_if<int64_t>(&dimension);
    // One variable among them makes the whole list a shape on the wire; a list of numbers only is a
    // list of integers.
    if (number == nullptr) return dimensions.list();
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::optional<Operand>> Join(Operands first, absl::Span<const Value> many) {
  std::vector<std::optional<Operand>> all(first.begin(), first.end());
  all.insert(all.end(), many.begin(), many.end());
  return all;
}

Value Call(std::string_view op, Operands operands, const Attributes& attributes, DType dtype,
           const Location& location) {
  GraphBuilder* builder = BuilderOf(operands);
  if (builder == nullptr) return Value();
  // The row exists: the functions that call this are generated from the same table.
  const OpRow& row = *FindRow(op);
  // The wire cannot mark an operand as missing, so only trailing ones may be left out.
  while (!operands.empty() && !operands.back().has_value()) operands.remove_suffix(1);
  const DType like = DTypeOfValues(row, operands);
  std::vector<Value> values;
  for (const std::optional<Operand>& operand : operands) {
    if (!operand.has_value()) {
      return builder->Fail(absl::InvalidArgumentError(absl::StrCat(
          "\"", std::string(op), "\" (", SourceOf(location), ") of ", std::string(row.operands),
          ": operand ", values.size(), " is missing, but an operand after it is given")));
    }
    values.push_back(operand->value() != nullptr
                         ? *operand->value()
                         : Constant(*builder, operand->number(), like, location));
  }
  return builder->AddNode(op, values, attributes, dtype, location);
}

}  // namespace internal

namespace {

Value Binary(std::string_view op, const Operand& a, const Operand& b) {
  return internal::Call(op, {a, b}, {}, DType::kUnspecified, a.location());
}

}  // namespace

Value operator+(const Operand& a, const Operand& b) { return Binary("add", a, b); }
Value operator-(const Operand& a, const Operand& b) { return Binary("sub", a, b); }
Value operator*(const Operand& a, const Operand& b) { return Binary("mul", a, b); }
Value operator/(const Operand& a, const Operand& b) { return Binary("div", a, b); }
Value operator-(const Operand& x) {
  return internal::Call("neg", {x}, {}, DType::kUnspecified, x.location());
}

}  // namespace kiln
