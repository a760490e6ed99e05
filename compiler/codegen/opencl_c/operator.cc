// The part of ExpressionPrinter for operators: each op in OpenCL C.
#include "compiler/codegen/math/composite.h"
#include "compiler/codegen/opencl_c/constant.h"
#include "compiler/codegen/opencl_c/expression.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/expression_folder.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

struct Infix {
  Op op;
  std::string_view symbol;
  std::string_view bool_symbol;  // between bools
  int precedence;
  int bool_precedence;
};
// Without the operators that need care to overflow or to round as compiler/ops does.
constexpr Infix kInfix[] = {
    {Op::kDiv, "/", "/", kProduct, kProduct},       {Op::kCmpLt, "<", "<", kRelation, kRelation},
    {Op::kCmpEq, "==", "==", kEquality, kEquality}, {Op::kCmpNe, "!=", "!=", kEquality, kEquality},
    {Op::kAnd, "&", "&&", 8, kLogicalAnd},          {Op::kXor, "^", "!=", 9, kEquality},
    {Op::kOr, "|", "||", 10, kLogicalOr},
};

// Returns whether C computes this dtype in int.
bool IsNarrow(DType dtype) { return ir::IsInteger(dtype) && ir::SizeOf(dtype) < 4; }

// Returns "(uint)" or "(ulong)", in which sums of the dtype wrap.
std::string_view UnsignedCast(DType dtype) { return ir::SizeOf(dtype) == 8 ? "(ulong)" : "(uint)"; }

std::string_view FunctionName(Op op) {
  switch (op) {
    case Op::kExp2:
      return "exp2";
    case Op::kLog2:
      return "log2";
    case Op::kSin:
      return "sin";
    case Op::kSqrt:
      return "sqrt";
    case Op::kTrunc:
      return "trunc";
    default:
      return ir::Name(op);
  }
}

std::string_view CompositeName(MathComposite::Kind kind) {
  using Kind = MathComposite::Kind;
  if (kind == Kind::kLog) return "log";
  return kind == Kind::kCos ? "cos" : "exp";
}

}  // namespace

ExpressionPrinter::Printed ExpressionPrinter::PrintOperator(const Node* node) {
  if (const auto composite = MatchComposite(node)) {
    const bool minus = composite->kind == MathComposite::Kind::kExpOfMinus;
    return {StrCat(CompositeName(composite->kind), "(",
                   minus ? "-" + Operand(composite->argument, kPrimary) : Text(composite->argument),
                   ")"),
            kPrimary};
  }
  for (const Infix& row : kInfix) {
    if (row.op != node->op()) continue;
    const bool is_bool = node->operand(0)->dtype() == DType::kBool;
    return PrintInfix(node, is_bool ? row.bool_symbol : row.symbol,
                      is_bool ? row.bool_precedence : row.precedence);
  }
  switch (node->op()) {
    case Op::kAdd:
      return PrintArithmetic(node, "+", kSum);
    case Op::kSub:
      return PrintArithmetic(node, "-", kSum);
    case Op::kMul:
      return PrintArithmetic(node, "*", kProduct);
    case Op::kIDiv:
    case Op::kMod:
      return PrintDivision(node);
    case Op::kShl:
    case Op::kShr:
      return PrintShift(node);
    case Op::kMax:
    case Op::kMin:
      return PrintExtremum(node);
    case Op::kNeg:
      return PrintMinus(node);
    case Op::kNot:
      return PrintNot(node);
    case Op::kReciprocal:
      return {StrCat(FloatText(1, node->dtype()), " / ", Operand(node->operand(0), kUnary)),
              kProduct};
    case Op::kCast:
      return PrintCast(node);
    case Op::kBitcast:
      return PrintBitcast(node);
    case Op::kTrunc:
      if (!ir::IsFloat(node->dtype())) return Print(node->operand(0));
      break;
    case Op::kPow:
      if (ir::IsFloat(node->dtype())) break;
      return PrintCall(preamble_.Function("pow", node->dtype()),
                       {node->operand(0), node->operand(1)});
    case Op::kWhere:
      return {StrCat(Operand(node->operand(0), kConditional - 1), " ? ",
                     Operand(node->operand(1), kConditional - 1), " : ",
                     Operand(node->operand(2), kConditional)),
              kConditional};
    default:
      break;
  }
  return PrintCall(FunctionName(node->op()), {node->operands().begin(), node->operands().end()});
}

// Returns whether a signed result may exceed its type's range, as far as known here.
bool ExpressionPrinter::MayWrap(const Node* node) {
  if (!ir::IsInteger(node->dtype()) || !ir::IsSigned(node->dtype())) return false;
  if (node->dtype() != DType::kInt64) return true;
  const kernel::Interval bounds = bounds_.Of(node);
  return !kernel::IsSmall(bounds.low) || !kernel::IsSmall(bounds.high);
}

ExpressionPrinter::Printed ExpressionPrinter::PrintArithmetic(const Node* node,
                                                              std::string_view symbol,
                                                              int precedence) {
  const DType dtype = node->dtype();
  const Node* a = node->operand(0);
  const Node* b = node->operand(1);
  if (IsNarrow(dtype)) {
    // The product of two uint16 exceeds int.
    const bool wide = dtype == DType::kUInt16 && node->op() == Op::kMul;
    const std::string left = wide ? StrCat("(uint)", Operand(a, kUnary)) : Operand(a, precedence);
    return {StrCat("(", preamble_.Type(dtype), ")(", left, " ", symbol, " ",
                   Operand(b, precedence - 1), ")"),
            kUnary};
  }
  if (!MayWrap(node)) return PrintInfix(node, symbol, precedence);
  return {StrCat("as_", preamble_.Type(dtype), "(", UnsignedCast(dtype), Operand(a, kUnary), " ",
                 symbol, " ", InfixOperand(b, a, precedence - 1), ")"),
          kPrimary};
}

ExpressionPrinter::Printed ExpressionPrinter::PrintDivision(const Node* node) {
  const DType dtype = node->dtype();
  const bool divides = node->op() == Op::kIDiv;
  const Node* divisor = node->operand(1);
  bool rounds_down = false;  // C's own operator
  if (ir::IsInteger(dtype) && divisor->op() == Op::kConst) {
    const int64_t value = divisor->attr<ir::ConstValue>().AsInt();
    rounds_down = ir::IsSigned(dtype)
                      ? dtype == DType::kInt64 && value > 0 && bounds_.Of(node->operand(0)).low >= 0
                      : value != 0;
  }
  if (rounds_down) return PrintInfix(node, divides ? "/" : "%", kProduct);
  return PrintCall(preamble_.Function(divides ? "floor_div" : "mod", dtype),
                   {node->operand(0), divisor});
}

ExpressionPrinter::Printed ExpressionPrinter::PrintShift(const Node* node) {
  const DType dtype = node->dtype();
  const bool left = node->op() == Op::kShl;
  const Node* amount = node->operand(1);
  const int64_t bits = amount->op() == Op::kConst ? amount->attr<ir::ConstValue>().AsInt() : -1;
  if (bits < 0 || bits >= 8 * ir::SizeOf(dtype)) {
    return PrintCall(preamble_.Function(left ? "shl" : "shr", dtype), {node->operand(0), amount});
  }
  if (!left) return {StrCat(Operand(node->operand(0), kShift), " >> ", bits), kShift};
  if (!IsNarrow(dtype) && !ir::IsSigned(dtype)) {
    return {StrCat(Operand(node->operand(0), kShift), " << ", bits), kShift};
  }
  // C does not define what happens to the sign of a signed number.
  const std::string shifted =
      StrCat(UnsignedCast(dtype), Operand(node->operand(0), kUnary), " << ", bits);
  if (IsNarrow(dtype)) return {StrCat("(", preamble_.Type(dtype), ")(", shifted, ")"), kUnary};
  return {StrCat("as_", preamble_.Type(dtype), "(", shifted, ")"), kPrimary};
}

ExpressionPrinter::Printed ExpressionPrinter::PrintExtremum(const Node* node) {
  const DType dtype = node->dtype();
  const bool maximum = node->op() == Op::kMax;
  if (dtype == DType::kBool) {
    return PrintInfix(node, maximum ? "||" : "&&", maximum ? kLogicalOr : kLogicalAnd);
  }
  const std::string_view name = maximum ? "max" : "min";
  const std::vector<const Node*> operands = {node->operand(0), node->operand(1)};
  if (ir::IsFloat(dtype)) return PrintCall(preamble_.Function(name, dtype), operands);
  if (!IsNarrow(dtype)) return PrintCall(name, operands);
  // A cast tells the compiler which overload is meant.
  return {StrCat(name, "((int)", Operand(operands[0], kUnary), ", (int)",
                 Operand(operands[1], kUnary), ")"),
          kPrimary};
}

ExpressionPrinter::Printed ExpressionPrinter::PrintMinus(const Node* node) {
  const DType dtype = node->dtype();
  // A second minus gets parentheses, since --x would be a decrement.
  const std::string operand = Operand(node->operand(0), kPrimary);
  if (IsNarrow(dtype)) return {StrCat("(", preamble_.Type(dtype), ")-", operand), kUnary};
  if (!MayWrap(node)) return {StrCat("-", operand), kUnary};
  return {StrCat("as_", preamble_.Type(dtype), "(-", UnsignedCast(dtype), operand, ")"), kPrimary};
}

ExpressionPrinter::Printed ExpressionPrinter::PrintNot(const Node* node) {
  const std::string operand = Operand(node->operand(0), kPrimary);
  if (node->dtype() == DType::kBool) return {StrCat("!", operand), kUnary};
  if (!IsNarrow(node->dtype())) return {StrCat("~", operand), kUnary};
  return {StrCat("(", preamble_.Type(node->dtype()), ")~", operand), kUnary};
}

// Returns the text of a float32 or float64 value; short floats are converted to float32.
std::string ExpressionPrinter::ToFloat(const Node* node) {
  if (!ir::IsShortFloat(node->dtype())) return Text(node);
  return StrCat(preamble_.Function("from", node->dtype()), "(", Text(node), ")");
}

ExpressionPrinter::Printed ExpressionPrinter::PrintCast(const Node* node) {
  const Node* x = node->operand(0);
  const DType from = x->dtype();
  const DType to = node->dtype();
  if (from == to) return Print(x);
  if (to == DType::kBool) {
    if (ir::IsShortFloat(from)) return {StrCat(ToFloat(x), " != 0"), kEquality};
    return {StrCat(Operand(x, kEquality), " != 0"), kEquality};
  }
  const std::string_view type = preamble_.Type(to);
  if (ir::IsShortFloat(to)) {
    std::string number = ToFloat(x);
    if (from == DType::kFloat64 || (ir::IsInteger(from) && ir::SizeOf(from) > 2)) {
      // float cannot hold every such number, and it must be rounded only once.
      const DType wide = ir::IsFloat(from)    ? DType::kFloat64
                         : ir::IsSigned(from) ? DType::kInt64
                                              : DType::kUInt64;
      number = StrCat(preamble_.Function("to_odd_float", wide), "(", number, ")");
    }
    return {StrCat(preamble_.Function("to", to), "(", number, ")"), kPrimary};
  }
  if (ir::IsFloat(from) && !ir::IsFloat(to)) {
    const char* name = from == DType::kFloat64 ? "from_float64" : "from_float32";
    return {StrCat(preamble_.Function(name, to), "(", ToFloat(x), ")"), kPrimary};
  }
  if (!ir::IsShortFloat(from)) return {StrCat("(", type, ")", Operand(x, kUnary)), kUnary};
  if (to == DType::kFloat32) return {ToFloat(x), kPrimary};
  return {StrCat("(", type, ")", ToFloat(x)), kUnary};
}

ExpressionPrinter::Printed ExpressionPrinter::PrintBitcast(const Node* node) {
  const Node* x = node->operand(0);
  if (node->dtype() == x->dtype()) return Print(x);
  if (node->dtype() == DType::kBool) return {StrCat(Operand(x, kEquality), " != 0"), kEquality};
  const std::string_view type = preamble_.Type(node->dtype());
  // All dtypes of less than 32 bits are integers in C.
  if (ir::SizeOf(node->dtype()) < 4) return {StrCat("(", type, ")", Operand(x, kUnary)), kUnary};
  return PrintCall(StrCat("as_", type), {x});
}

ExpressionPrinter::Printed ExpressionPrinter::PrintInfix(const Node* node, std::string_view symbol,
                                                         int precedence) {
  const Node* a = node->operand(0);
  const Node* b = node->operand(1);
  // All of these group from the left. But compilers warn about a < b < c.
  const bool compares = precedence == kRelation || precedence == kEquality;
  return {StrCat(InfixOperand(a, b, compares ? kShift : precedence), " ", symbol, " ",
                 InfixOperand(b, a, compares ? kShift : precedence - 1)),
          precedence};
}

// Next to a number of that type, a constant needs no suffix.
std::string ExpressionPrinter::InfixOperand(const Node* node, const Node* other, int precedence) {
  int64_t value = 0;
  const bool is_index = node->dtype() == DType::kInt64 && kernel::IsConstant(node, &value);
  if (!is_index || other->op() == Op::kConst || value <= INT32_MIN)
    return Operand(node, precedence);
  return absl::StrCat(value);
}

ExpressionPrinter::Printed ExpressionPrinter::PrintCall(std::string_view function,
                                                        const std::vector<const Node*>& arguments) {
  std::string text = StrCat(function, "(");
  for (size_t i = 0; i < arguments.size(); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", Text(arguments[i]));
  }
  return {text + ")", kPrimary};
}

}  // namespace kiln::codegen
