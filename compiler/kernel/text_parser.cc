#include "compiler/kernel/text_parser.h"

#include <cctype>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/spec.h"
#include "compiler/kernel/expression_text.h"

namespace kiln::kernel {

using ir::DType;
using ir::Node;
using ir::Op;

namespace {

// Bounds the recursion, since untrusted text must be safe to parse.
constexpr int kDepthMax = 2000;

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::optional<Op> FindOp(const std::string& name) {
  for (int i = 0; i < ir::kNumOps; ++i) {
    const Op op = static_cast<Op>(i);
    if (ir::Name(op) == name) return op;
  }
  return std::nullopt;
}

}  // namespace

void LineReader::SkipSpace() {
  while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
}

bool LineReader::AtEnd() {
  SkipSpace();
  return rest_.empty();
}

bool LineReader::Take(std::string_view text) {
  SkipSpace();
  if (rest_.substr(0, text.size()) != text) return false;
  // A word matches only as a whole: "r1" does not match the beginning of "r12".
  const bool word = IsNameCharacter(text.back());
  if (word && rest_.size() > text.size() && IsNameCharacter(rest_[text.size()])) return false;
  rest_.remove_prefix(text.size());
  return true;
}

absl::Status LineReader::Expect(std::string_view text) {
  if (Take(text)) return absl::OkStatus();
  return Error(absl::StrCat("expected \"", std::string(text), "\""));
}

absl::StatusOr<std::string> LineReader::TakeName() {
  SkipSpace();
  size_t size = 0;
  while (size < rest_.size() && IsNameCharacter(rest_[size])) ++size;
  if (size == 0 || std::isdigit(static_cast<unsigned char>(rest_[0])))
    return Error("expected a name");
  std::string name(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return name;
}

std::string LineReader::TakeNumber() {
  SkipSpace();
  size_t size = 0;
  auto at = [&](size_t i) { return i < rest_.size() ? rest_[i] : '\0'; };
  if (at(size) == '-') ++size;
  if (rest_.substr(size, 3) == "inf" || rest_.substr(size, 3) == "nan") {
    size += 3;
  } else if (!std::isdigit(static_cast<unsigned char>(at(size)))) {
    return "";
  }
  // Letters occur in exponents and in the hexadecimal bits of a NaN.
  while (std::isalnum(static_cast<unsigned char>(at(size))) || at(size) == '.' ||
         ((at(size) == '-' || at(size) == '+') && at(size - 1) == 'e')) {
    ++size;
  }
  std::string number(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return number;
}

absl::StatusOr<int64_t> LineReader::TakeInt() {
  int64_t value = 0;
  if (!absl::SimpleAtoi(TakeNumber(), &value)) return Error("expected a whole number");
  return value;
}

absl::Status LineReader::Error(const std::string& what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " before \"", std::string(rest_.substr(0, 40)), "\""));
}

absl::StatusOr<const Node*> ExpressionParser::Binary(LineReader& line, Op op, const Node* a,
                                                     const Node* b) {
  if (a->dtype() != b->dtype()) return line.Error("operands of two dtypes");
  const bool compares = op == Op::kCmpLt || op == Op::kCmpEq || op == Op::kCmpNe;
  return context_.Get(op, compares ? DType::kBool : a->dtype(), {}, {a, b});
}

ExpressionParser::Result ExpressionParser::ParseSum(LineReader& line) {
  Result sum = ParseProduct(line);
  while (sum.ok()) {
    Op op = Op::kAdd;
    if (line.Take("-")) {
      op = Op::kSub;
    } else if (!line.Take("+")) {
      break;
    }
    Result next = ParseProduct(line);
    if (!next.ok()) return next;
    sum = Binary(line, op, *sum, *next);
  }
  return sum;
}

ExpressionParser::Result ExpressionParser::ParseProduct(LineReader& line) {
  // The first match is taken, so "//" comes before "/".
  static constexpr std::pair<std::string_view, Op> kInfix[] = {
      {"*", Op::kMul}, {"//", Op::kIDiv}, {"/", Op::kDiv}, {"%", Op::kMod}};
  Result product = ParsePrimary(line);
  while (product.ok()) {
    const Op* found = nullptr;
    for (const auto& [text, op] : kInfix) {
      if (found == nullptr && line.Take(text)) found = &op;
    }
    if (found == nullptr) break;
    Result next = ParsePrimary(line);
    if (!next.ok()) return next;
    product = Binary(line, *found, *product, *next);
  }
  return product;
}

ExpressionParser::Result ExpressionParser::ParsePrimary(LineReader& line) {
  if (++depth_ > kDepthMax) return line.Error("the expression is too deep");
  Result result = [&]() -> Result {
    if (line.Take("(")) {
      Result inner = ParseSum(line);
      if (!inner.ok()) return inner;
      if (absl::Status s = line.Expect(")"); !s.ok()) return s;
      return inner;
    }
    if (const std::string number = line.TakeNumber(); !number.empty()) {
      return ParseConstant(line, number);
    }
    absl::StatusOr<std::string> name = line.TakeName();
    if (!name.ok()) return name.status();
    if (auto known = names_.find(*name); known != names_.end()) return known->second;
    if (line.Take("(")) return ParseCall(line, *name);
    absl::StatusOr<Place> place = ParsePlace(line, *name);
    if (!place.ok()) return place.status();
    std::vector<const Node*> operands = {place->index};
    if (place->valid != nullptr) operands.push_back(place->valid);
    return context_.Get(Op::kLoad, buffers_[place->buffer].dtype, {}, std::move(operands),
                        ir::IntAttr{place->buffer});
  }();
  --depth_;
  return result;
}

absl::StatusOr<ExpressionParser::Place> ExpressionParser::ParsePlace(LineReader& line,
                                                                     const std::string& name) {
  Place place;
  int64_t number = -1;
  if (name[0] != 'b' || !absl::SimpleAtoi(name.substr(1), &number) || number < 0 ||
      number >= static_cast<int64_t>(buffers_.size())) {
    return line.Error(absl::StrCat("\"", name, "\" is unknown"));
  }
  place.buffer = static_cast<int>(number);
  if (absl::Status s = line.Expect("["); !s.ok()) return s;
  Result index = ParseSum(line);
  if (!index.ok()) return index.status();
  place.index = *index;
  if (line.Take("if")) {
    Result valid = ParseSum(line);
    if (!valid.ok()) return valid.status();
    place.valid = *valid;
  }
  if (absl::Status s = line.Expect("]"); !s.ok()) return s;
  if (place.index->dtype() != DType::kInt64) return line.Error("an index that is not int64");
  if (place.valid != nullptr && place.valid->dtype() != DType::kBool) {
    return line.Error("a condition that is not bool");
  }
  return place;
}

ExpressionParser::Result ExpressionParser::ParseConstant(LineReader& line,
                                                         const std::string& number) {
  DType dtype = DType::kInt64;
  if (line.Take(":")) {
    absl::StatusOr<std::string> name = line.TakeName();
    if (!name.ok()) return name.status();
    const std::optional<DType> named = ir::ParseDType(*name);
    if (!named.has_value()) return line.Error(absl::StrCat("no dtype \"", *name, "\""));
    dtype = *named;
  }
  ir::ConstValue value;
  if (ir::IsFloat(dtype)) {
    double parsed = 0;
    if (number.substr(0, 2) == "0x") {
      if (!absl::SimpleHexAtoi(number, &value.bits)) return line.Error("a malformed number");
      return context_.Get(Op::kConst, dtype, {}, {}, value);
    }
    if (!absl::SimpleAtod(number, &parsed)) return line.Error("a malformed number");
    value = ir::ConstValue::Float(parsed);
  } else {
    int64_t parsed = 0;
    if (!absl::SimpleAtoi(number, &parsed)) return line.Error("a malformed whole number");
    value = ir::ConstValue::Int(parsed);
  }
  if (!ir::FitsDType(value, dtype)) return line.Error("a number that its dtype cannot hold");
  return context_.Get(Op::kConst, dtype, {}, {}, value);
}

ExpressionParser::Result ExpressionParser::ParseCall(LineReader& line,
                                                     const std::string& function) {
  std::vector<const Node*> operands;
  do {
    Result operand = ParseSum(line);
    if (!operand.ok()) return operand;
    operands.push_back(*operand);
  } while (line.Take(","));
  if (absl::Status s = line.Expect(")"); !s.ok()) return s;
  Result made = MakeCall(line, function, std::move(operands));
  if (!made.ok()) return made;
  if (absl::Status legal = ir::VerifyNode(ir::Level::kKernel, *made); !legal.ok()) {
    return line.Error(std::string(legal.message()));
  }
  return made;
}

ExpressionParser::Result ExpressionParser::MakeCall(LineReader& line, const std::string& function,
                                                    std::vector<const Node*> operands) {
  for (const ir::ReduceKind kind :
       {ir::ReduceKind::kSum, ir::ReduceKind::kProd, ir::ReduceKind::kMax}) {
    // max of one operand reduces; max of two compares.
    if (function != Name(kind) || operands.size() != 1 || reduce_ranges_.empty()) continue;
    operands.insert(operands.end(), reduce_ranges_.begin(), reduce_ranges_.end());
    const DType dtype = operands[0]->dtype();
    return context_.Get(Op::kReduce, dtype, {}, std::move(operands), ir::ReduceAttr{kind});
  }
  if (const std::optional<DType> dtype = ir::ParseDType(function); dtype.has_value()) {
    if (operands.size() != 1) return line.Error("a cast of more than one operand");
    return context_.Get(Op::kCast, *dtype, {}, std::move(operands));
  }
  if (absl::StartsWith(function, "bitcast_")) {
    const std::optional<DType> dtype = ir::ParseDType(function.substr(8));
    if (!dtype.has_value() || operands.size() != 1) return line.Error("a malformed bitcast");
    return context_.Get(Op::kBitcast, *dtype, {}, std::move(operands));
  }
  const std::optional<Op> op = FindOp(function);
  // Only elementwise ops are written as functions; all others have their own notation.
  if (!op.has_value() || *op < Op::kNeg || *op > Op::kWhere) {
    return line.Error(absl::StrCat("no function \"", function, "\""));
  }
  if (*op == Op::kWhere) {
    if (operands.size() != 3) return line.Error("where takes three operands");
    const DType dtype = operands[1]->dtype();
    return context_.Get(*op, dtype, {}, std::move(operands));
  }
  if (operands.size() == 2) return Binary(line, *op, operands[0], operands[1]);
  const DType dtype = operands[0]->dtype();
  return context_.Get(*op, dtype, {}, std::move(operands));
}

}  // namespace kiln::kernel
