#include "compiler/kernel/expression_text.h"

#include <cmath>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

const char* InfixOf(Op op) {
  switch (op) {
    case Op::kAdd:
      return "+";
    case Op::kSub:
      return "-";
    case Op::kMul:
      return "*";
    case Op::kDiv:
      return "/";
    case Op::kIDiv:
      return "//";
    case Op::kMod:
      return "%";
    default:
      return "";
  }
}

int PrecedenceOf(Op op) { return op == Op::kAdd || op == Op::kSub ? 1 : 2; }

const char* Name(ir::ReduceKind kind) {
  switch (kind) {
    case ir::ReduceKind::kSum:
      return "sum";
    case ir::ReduceKind::kProd:
      return "prod";
    case ir::ReduceKind::kMax:
      return "max";
  }
  return "";
}

std::string ExpressionPrinter::PrintAt(const Node* node, int precedence) const {
  auto name = names_.find(node);
  return name == names_.end() ? Write(node, precedence) : name->second;
}

std::string ExpressionPrinter::Write(const Node* node, int precedence) const {
  switch (node->op()) {
    case Op::kConst:
      return WriteConstant(node);
    case Op::kRange:
      return absl::StrCat("r", node->attr<ir::RangeAttr>().id);
    case Op::kLoad:
      return WriteLoad(node);
    case Op::kCast:
      return WriteCall(std::string(ir::Name(node->dtype())), node);
    case Op::kBitcast:
      return WriteCall(absl::StrCat("bitcast_", std::string(ir::Name(node->dtype()))), node);
    case Op::kReduce:
      return absl::StrCat(Name(node->attr<ir::ReduceAttr>().kind), "(",
                          PrintAt(node->operand(0), 0), ")");
    default:
      break;
  }
  const std::string infix = InfixOf(node->op());
  if (infix.empty()) return WriteCall(std::string(ir::Name(node->op())), node);
  const int own = PrecedenceOf(node->op());
  // Operators associate to the left: the right operand of a - (b - c) keeps its parentheses.
  std::string text = absl::StrCat(PrintAt(node->operand(0), own), own == 1 ? " " : "", infix,
                                  own == 1 ? " " : "", PrintAt(node->operand(1), own + 1));
  return own < precedence ? absl::StrCat("(", text, ")") : text;
}

// Returns the fewest digits that read back to the same double. 17 are enough for every finite one
// (IEEE 754); NaNs other than the default one are written as their bits.
static std::string ShortestDouble(double value) {
  for (int digits = 6; digits <= 17; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && std::memcmp(&back, &value, sizeof value) == 0) return text;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return absl::StrFormat("0x%016x", bits);
}

std::string ExpressionPrinter::WriteConstant(const Node* node) const {
  const ir::ConstValue& value = node->attr<ir::ConstValue>();
  if (node->dtype() == ir::DType::kInt64) return absl::StrCat(value.AsInt());
  const std::string text =
      ir::IsFloat(node->dtype()) ? ShortestDouble(value.AsDouble()) : absl::StrCat(value.AsInt());
  return absl::StrCat(text, ":", std::string(ir::Name(node->dtype())));
}

std::string ExpressionPrinter::WriteCall(const std::string& function, const Node* node) const {
  std::string text = absl::StrCat(function, "(");
  for (size_t i = 0; i < node->operands().size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", PrintAt(node->operand(static_cast<int>(i)), 0));
  }
  return text + ")";
}

std::string ExpressionPrinter::WriteLoad(const Node* node) const {
  std::string text =
      absl::StrCat("b", node->attr<ir::IntAttr>().value, "[", PrintAt(node->operand(0), 0));
  if (node->operands().size() > 1) absl::StrAppend(&text, " if ", PrintAt(node->operand(1), 0));
  return text + "]";
}

}  // namespace kiln::kernel
