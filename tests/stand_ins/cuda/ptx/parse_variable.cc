#include <bit>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "tests/stand_ins/cuda/ptx/parser.h"

namespace kiln::stand_ins::ptx {
namespace {

constexpr int64_t kVariableBytesMax = int64_t{1} << 30;

// The initialiser's values as bytes.
class InitialBytes {
 public:
  explicit InitialBytes(TokenReader& reader, Variable& variable)
      : reader_(reader), variable_(variable), element_(BytesOf(variable.type)) {}

  void Read() {
    ReadValues();
    if (static_cast<int64_t>(variable_.initial.size()) > variable_.bytes)
      reader_.Fail(absl::StrCat(variable_.name, " has more initial values than elements"));
    variable_.initial.resize(variable_.bytes);
  }

 private:
  void ReadValues() {
    if (!reader_.Take("{")) return ReadValue();
    if (reader_.Take("}")) return;
    do {
      ReadValues();
    } while (reader_.Take(","));
    reader_.Expect("}");
  }

  void ReadValue() {
    uint64_t bits = 0;
    if (reader_.Peek().kind == Token::Kind::kWord) {
      if (element_ != 8) reader_.Refuse("an address in an array of less than 8 bytes an element");
      variable_.references.push_back(ReadReference());
    } else {
      bits = BitsFor(ReadNumber(reader_));
    }
    for (int i = 0; i < element_; ++i) variable_.initial.push_back(bits >> (8 * i) & 0xff);
  }

  uint64_t BitsFor(const Operand& number) {
    if (number.kind == Operand::Kind::kFloat64 && variable_.type == Type::kF32) {
      return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(number.bits)));
    }
    return number.bits;
  }

  Variable::Reference ReadReference() {
    const int64_t offset = variable_.initial.size();
    std::string name = reader_.Word();
    if (name == "generic") {
      reader_.Expect("(");
      name = reader_.Word();
      reader_.Expect(")");
    }
    const bool plus = reader_.Take("+");
    const int64_t addend = plus || reader_.Peek().Is("-") ? reader_.Integer() : 0;
    return {offset, std::move(name), addend};
  }

  TokenReader& reader_;
  Variable& variable_;
  const int element_;
};

}  // namespace

Operand ReadNumber(TokenReader& reader) {
  const bool negative = reader.Take("-");
  const Token token = reader.Next();
  Operand number{.kind = Operand::Kind::kInteger};
  absl::string_view text = token.text;
  double value;
  bool read = token.kind == Token::Kind::kNumber;
  if (absl::StartsWith(text, "0f") || absl::StartsWith(text, "0F")) {
    number.kind = Operand::Kind::kFloat32;
    read = read && text.size() == 10 && absl::SimpleHexAtoi(text.substr(2), &number.bits);
    if (negative) number.bits ^= uint64_t{1} << 31;
    if (!read) reader.Fail(absl::StrCat("'", text, "' is no number"));
    return number;
  }
  if (absl::StartsWith(text, "0d") || absl::StartsWith(text, "0D")) {
    number.kind = Operand::Kind::kFloat64;
    read = read && text.size() == 18 && absl::SimpleHexAtoi(text.substr(2), &number.bits);
  } else if (absl::StartsWith(text, "0x") || absl::StartsWith(text, "0X")) {
    if (absl::EndsWith(text, "U")) text.remove_suffix(1);
    read = read && absl::SimpleHexAtoi(text, &number.bits);
  } else if (text.find('.') != text.npos) {
    number.kind = Operand::Kind::kFloat64;
    read = read && absl::SimpleAtod(text, &value);
    if (read) number.bits = std::bit_cast<uint64_t>(value);
  } else {
    if (absl::EndsWith(text, "U")) text.remove_suffix(1);
    read = read && absl::SimpleAtoi(text, &number.bits);
  }
  if (!read) reader.Fail(absl::StrCat("'", token.text, "' is no number"));
  if (negative && number.kind == Operand::Kind::kInteger) number.bits = -number.bits;
  if (negative && number.kind == Operand::Kind::kFloat64) number.bits ^= uint64_t{1} << 63;
  return number;
}

Variable ReadVariable(TokenReader& reader, Space space) {
  Variable variable{.space = space, .line = reader.Peek().line};
  while (absl::StartsWith(reader.Peek().text, ".")) {
    const std::string directive = reader.Word();
    if (directive == ".align") {
      variable.alignment = reader.Integer();
    } else if (directive == ".ptr") {  // describes a pointer parameter's target; ignored
      if (SpaceNamed(absl::StripPrefix(reader.Peek().text, "."))) reader.Next();
      if (reader.Take(".align")) reader.Integer();
    } else if (const auto type = TypeNamed(absl::StripPrefix(directive, "."))) {
      variable.type = *type;
      variable.alignment = std::max<int64_t>(variable.alignment, BytesOf(*type));
    } else {
      reader.Refuse(absl::StrCat("a variable's ", directive));
    }
  }
  variable.name = reader.Word();
  variable.bytes = BytesOf(variable.type);
  while (reader.Take("[")) {
    const int64_t elements = reader.Peek().Is("]") ? 0 : reader.Integer();
    reader.Expect("]");
    if (elements < 0 || elements > kVariableBytesMax / std::max<int64_t>(variable.bytes, 1)) {
      reader.Fail(absl::StrCat(variable.name, " is too large"));
      return variable;
    }
    variable.bytes *= elements;
  }
  if (!std::has_single_bit(static_cast<uint64_t>(variable.alignment)))
    reader.Fail(absl::StrCat(variable.name, "'s alignment is no power of two"));
  if (reader.Take("=")) InitialBytes(reader, variable).Read();
  return variable;
}

}  // namespace kiln::stand_ins::ptx
