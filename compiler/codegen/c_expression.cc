#include "compiler/codegen/c_expression.h"

#include <array>
#include <cmath>
#include <utility>

#include "compiler/ir/short_float.h"
#include "compiler/ir/str_cat.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// C's precedences.
constexpr int kPrimary = 1;
constexpr int kUnary = 2;
constexpr int kProduct = 3;
constexpr int kConditional = 13;

struct Infix {
  Op op;
  std::string_view symbol;
  std::string_view bool_symbol;  // between bools; empty: the same
  int precedence;
  int bool_precedence;
};
constexpr Infix kInfix[] = {
    {Op::kMul, "*", "", kProduct, kProduct},
    {Op::kDiv, "/", "", kProduct, kProduct},
    {Op::kIDiv, "/", "", kProduct, kProduct},
    {Op::kMod, "%", "", kProduct, kProduct},
    {Op::kAdd, "+", "", 4, 4},
    {Op::kSub, "-", "", 4, 4},
    {Op::kShl, "<<", "", 5, 5},
    {Op::kShr, ">>", "", 5, 5},
    {Op::kCmpLt, "<", "", 6, 6},
    {Op::kCmpEq, "==", "", 7, 7},
    {Op::kCmpNe, "!=", "", 7, 7},
    {Op::kAnd, "&", "&&", 8, 11},
    {Op::kXor, "^", "!=", 9, 7},
    {Op::kOr, "|", "||", 10, 12},
};

std::string FloatText(double value, DType dtype) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  std::string text =
      dtype == DType::kFloat64 ? absl::StrCat(value) : absl::StrCat(static_cast<float>(value));
  // Without a point C would read an integer.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (dtype == DType::kFloat64) return text;
  return ir::IsShortFloat(dtype) ? StrCat("(", CTypeName(dtype), ")", text, "f") : text + "f";
}

std::string ConstantText(const Node* node) {
  const auto& value = node->attr<ir::ConstValue>();
  if (ir::IsFloat(node->dtype())) return FloatText(value.AsDouble(), node->dtype());
  if (node->dtype() == DType::kBool) return value.AsInt() != 0 ? "true" : "false";
  if (node->dtype() == DType::kUInt64) return absl::StrCat(static_cast<uint64_t>(value.AsInt()));
  return absl::StrCat(value.AsInt());
}

std::string_view ReduceName(ir::ReduceKind kind) {
  static constexpr std::string_view kNames[] = {"sum", "product", "maximum"};
  return kNames[static_cast<int>(kind)];
}

// Short enough to stand wherever it is used.
bool IsLeaf(const Node* node) { return node->op() == Op::kConst || node->op() == Op::kRange; }

}  // namespace

std::string_view CTypeName(DType dtype) {
  static constexpr std::array<std::string_view, ir::kNumDTypes> kNames = {
      "void",    "bool",     "int8_t",      "int16_t",    "int32_t", "int64_t",
      "uint8_t", "uint16_t", "uint32_t",    "uint64_t",   "half",    "bfloat16",
      "float",   "double",   "float8_e4m3", "float8_e5m2"};
  return kNames[static_cast<int>(dtype)];
}

std::vector<std::string> ExpressionPrinter::DefineShared(const std::vector<const Node*>& roots) {
  shared_.clear();
  absl::flat_hash_map<const Node*, int> uses;
  std::vector<const Node*> order;
  for (const Node* root : roots) {
    if (root != nullptr) CountUses(root, uses, order);
  }
  std::vector<std::string> lines;
  for (const Node* node : order) {
    if (uses[node] < 2 || IsLeaf(node)) continue;
    std::string text = Text(node);
    std::string name = StrCat("t", shared_count_++);
    lines.push_back(StrCat("const ", CTypeName(node->dtype()), " ", name, " = ", text, ";"));
    shared_[node] = std::move(name);
  }
  return lines;
}

// `order` gets operands before their users.
void ExpressionPrinter::CountUses(const Node* node, absl::flat_hash_map<const Node*, int>& uses,
                                  std::vector<const Node*>& order) {
  if (++uses[node] > 1) return;
  for (const Node* operand : node->operands()) CountUses(operand, uses, order);
  order.push_back(node);
}

std::string ExpressionPrinter::Operand(const Node* node, int precedence) {
  Printed printed = Print(node);
  return printed.precedence <= precedence ? printed.text : StrCat("(", printed.text, ")");
}

ExpressionPrinter::Printed ExpressionPrinter::Print(const Node* node) {
  if (auto found = shared_.find(node); found != shared_.end()) return {found->second, kPrimary};
  switch (node->op()) {
    case Op::kConst: {
      std::string text = ConstantText(node);
      // A sign, or the cast in front of a short float.
      return {text, text[0] == '-' || text[0] == '(' ? kUnary : kPrimary};
    }
    case Op::kRange: {
      auto found = names_.find(node);
      if (found != names_.end()) return {found->second, kPrimary};
      return {StrCat("r", node->attr<ir::RangeAttr>().id), kPrimary};
    }
    case Op::kLoad:
      return PrintLoad(node);
    case Op::kReduce:
      return PrintReduce(node);
    default:
      return PrintOperator(node);
  }
}

ExpressionPrinter::Printed ExpressionPrinter::PrintOperator(const Node* node) {
  for (const Infix& row : kInfix) {
    if (row.op != node->op()) continue;
    const bool is_bool = node->operand(0)->dtype() == DType::kBool && !row.bool_symbol.empty();
    return PrintInfix(node, is_bool ? row.bool_symbol : row.symbol,
                      is_bool ? row.bool_precedence : row.precedence);
  }
  switch (node->op()) {
    case Op::kNeg:
      // A second minus gets parentheses, as --x would be a decrement.
      return {StrCat("-", Operand(node->operand(0), kPrimary)), kUnary};
    case Op::kNot:
      return {
          StrCat(node->dtype() == DType::kBool ? "!" : "~", Operand(node->operand(0), kPrimary)),
          kUnary};
    case Op::kReciprocal:
      return {StrCat(FloatText(1, node->dtype()), " / ", Operand(node->operand(0), kUnary)),
              kProduct};
    case Op::kCast:
      return {StrCat("(", CTypeName(node->dtype()), ")", Operand(node->operand(0), kUnary)),
              kUnary};
    case Op::kBitcast:
      return PrintCall(StrCat("as_", CTypeName(node->dtype())), node);
    case Op::kWhere:
      return {StrCat(Operand(node->operand(0), kConditional - 1), " ? ",
                     Operand(node->operand(1), kConditional - 1), " : ",
                     Operand(node->operand(2), kConditional)),
              kConditional};
    default:
      return PrintCall(ir::Name(node->op()), node);
  }
}

ExpressionPrinter::Printed ExpressionPrinter::PrintInfix(const Node* node, std::string_view symbol,
                                                         int precedence) {
  // Operators of one precedence associate to the left.
  return {StrCat(Operand(node->operand(0), precedence), " ", symbol, " ",
                 Operand(node->operand(1), precedence - 1)),
          precedence};
}

ExpressionPrinter::Printed ExpressionPrinter::PrintCall(std::string_view function,
                                                        const Node* node) {
  std::string text = StrCat(function, "(");
  for (size_t i = 0; i < node->operands().size(); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", Text(node->operand(static_cast<int>(i))));
  }
  return {text + ")", kPrimary};
}

ExpressionPrinter::Printed ExpressionPrinter::PrintLoad(const Node* node) {
  const schedule::LoopBuffer& buffer = program_.buffers[node->attr<ir::IntAttr>().value];
  std::string element = StrCat(buffer.name, "[", Text(node->operand(0)), "]");
  if (node->operands().size() == 1) return {element, kPrimary};
  const std::string zero = ir::IsFloat(node->dtype()) ? FloatText(0, node->dtype()) : "0";
  return {StrCat(Operand(node->operand(1), kConditional - 1), " ? ", element, " : ", zero),
          kConditional};
}

ExpressionPrinter::Printed ExpressionPrinter::PrintReduce(const Node* node) {
  std::string text = StrCat(ReduceName(node->attr<ir::ReduceAttr>().kind), "_over");
  for (size_t i = 1; i < node->operands().size(); ++i) {
    StrAppend(&text, "_", Text(node->operand(static_cast<int>(i))));
  }
  return {StrCat(text, "(", Text(node->operand(0)), ")"), kPrimary};
}

}  // namespace kiln::codegen
