#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/ir/text_attribute.h"

namespace kiln::ir {
namespace {

// Bounds the rank, so that a short text cannot make a shape of millions of dimensions or an
// unbounded message.
constexpr size_t kRankMax = 64;
constexpr std::string_view kSpace = " \t\r\n";

absl::Status Invalid(std::string_view a, std::string_view b = "", std::string_view c = "") {
  return absl::InvalidArgumentError(StrCat(a, b, c));
}

std::optional<Op> ParseOp(std::string_view name) {
  for (int i = 0; i < kNumOps; ++i) {
    if (Name(static_cast<Op>(i)) == name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

absl::StatusOr<int64_t> ParseReference(std::string_view text) {
  if (text.starts_with('%')) {
    absl::StatusOr<int64_t> number = ParseInt(text.substr(1));
    if (number.ok() && *number >= 0) return number;
  }
  return Invalid("'", text, "' is not a node's number such as %0");
}

}  // namespace

std::string_view StripLine(std::string_view line) {
  line = line.substr(0, line.find('#'));
  size_t begin = line.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kSpace) - begin + 1);
}

std::vector<std::string_view> SplitWords(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kSpace); begin != std::string_view::npos;
       begin = line.find_first_not_of(kSpace, begin)) {
    size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

absl::StatusOr<int64_t> ParseInt(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return Invalid("'", text, "' is not an integer of 64 bits");
}

absl::StatusOr<std::vector<int64_t>> ParseIntList(std::string_view text) {
  std::vector<int64_t> values;
  // `<=` includes the end, so that the text after the last comma must be a number too.
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    absl::StatusOr<int64_t> value = ParseInt(text.substr(begin, end - begin));
    if (!value.ok()) return value.status();
    values.push_back(*value);
    begin = end + 1;
  }
  return values;
}

absl::StatusOr<Type> ParseType(std::string_view text) {
  std::string_view name = text.substr(0, text.find('['));
  std::optional<DType> dtype = ParseDType(name);
  if (!dtype.has_value()) return Invalid("'", name, "' is not a dtype");
  Type type{*dtype, {}};
  std::string_view sizes = text.substr(name.size());
  if (sizes.empty()) return type;
  if (sizes.size() < 2 || sizes.back() != ']') {
    return Invalid("'", text, "' is not a type such as float32[2,3]");
  }
  absl::StatusOr<std::vector<int64_t>> shape = ParseIntList(sizes.substr(1, sizes.size() - 2));
  if (!shape.ok()) return shape.status();
  if (shape->size() > kRankMax) return Invalid("a shape has at most 64 dimensions");
  type.shape = *std::move(shape);
  return type;
}

absl::Status AtLine(int number, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), StrCat("line ", number, ": ", status.message()));
}

absl::StatusOr<const Node*> TextParser::Lookup(std::string_view reference) const {
  absl::StatusOr<int64_t> number = ParseReference(reference);
  if (!number.ok()) return number.status();
  auto found = nodes_.find(*number);
  if (found == nodes_.end()) return Invalid("no node ", reference, " before this line");
  return found->second;
}

absl::Status TextParser::ParseNode(std::string_view line) {
  std::vector<std::string_view> words = SplitWords(line);
  if (words.size() < 4 || words[1] != "=") {
    return Invalid("expected a node such as '%2 = add float32 %0 %1'");
  }
  absl::StatusOr<int64_t> number = ParseReference(words[0]);
  if (!number.ok()) return number.status();
  if (nodes_.contains(*number)) return Invalid(words[0], " is defined twice");
  std::optional<Op> op = ParseOp(words[2]);
  if (!op.has_value()) return Invalid("'", words[2], "' is not an op");
  absl::StatusOr<Type> type = ParseType(words[3]);
  if (!type.ok()) return type.status();

  std::vector<const Node*> operands;
  std::vector<Field> fields;
  for (size_t i = 4; i < words.size(); ++i) {
    size_t equals = words[i].find('=');
    if (equals != std::string_view::npos) {
      fields.emplace_back(words[i].substr(0, equals), words[i].substr(equals + 1));
      continue;
    }
    if (!fields.empty()) return Invalid("operands must come before attributes");
    absl::StatusOr<const Node*> operand = Lookup(words[i]);
    if (!operand.ok()) return operand.status();
    operands.push_back(*operand);
  }
  absl::StatusOr<Attribute> attribute = ParseAttribute(*op, type->dtype, fields);
  if (!attribute.ok()) return attribute.status();
  const Node* node = context_.Get(*op, type->dtype, std::move(type->shape), std::move(operands),
                                  *std::move(attribute));
  absl::Status legal = VerifyNode(level_, node);
  // VerifyNode returns INTERNAL, for nodes made by the compiler; here the text is wrong.
  if (!legal.ok()) return absl::InvalidArgumentError(legal.message());
  nodes_[*number] = node;
  return absl::OkStatus();
}

}  // namespace kiln::ir
