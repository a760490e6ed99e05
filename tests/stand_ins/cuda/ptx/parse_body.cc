#include "absl/strings/match.h"
#include "tests/stand_ins/cuda/ptx/parser.h"

namespace kiln::stand_ins::ptx {
namespace {

class BodyReader {
 public:
  BodyReader(TokenReader& reader, Function& function) : reader_(reader), function_(function) {}

  void Read() {
    while (depth() >= 0 && !reader_.AtEnd()) ReadStatement();
    if (depth() >= 0) reader_.Fail(absl::StrCat("the body of ", function_.name, " has no end"));
  }

 private:
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }

  void ReadStatement() {
    const Token& token = reader_.Peek();
    if (reader_.Take("{")) return scopes_.emplace_back(), void();
    if (reader_.Take("}")) return scopes_.pop_back();
    if (reader_.Take(";")) return;
    if (token.kind == Token::Kind::kWord && reader_.Peek(1).Is(":")) return ReadLabel();
    if (absl::StartsWith(token.text, ".")) return ReadDirective();
    ReadInstruction();
  }

  void ReadLabel() {
    std::string name = reader_.Word();
    reader_.Expect(":");
    if (reader_.Take(".branchtargets")) {
      std::vector<std::string>& targets = function_.branch_targets[name];
      do {
        targets.push_back(reader_.Word());
      } while (reader_.Take(","));
      return reader_.Expect(";");
    }
    if (!function_.labels.try_emplace(name, function_.statements.size()).second)
      reader_.Fail(absl::StrCat("a second label ", name));
  }

  void ReadDirective() {
    const std::string directive = reader_.Word();
    if (directive == ".loc" || directive == ".pragma" || directive == ".file")
      return reader_.SkipLine();
    if (directive == ".reg") return ReadRegisters();
    const auto space = SpaceNamed(absl::StripPrefix(directive, "."));
    if (!space) return reader_.Refuse(absl::StrCat("the directive ", directive));
    do {
      Variable variable = ReadVariable(reader_, *space);
      variable.name = Declare(variable.name);
      function_.variables.push_back(std::move(variable));
    } while (reader_.Take(","));
    reader_.Expect(";");
  }

  void ReadRegisters() {
    const auto type = TypeNamed(absl::StripPrefix(reader_.Word(), "."));
    if (!type) return reader_.Refuse("registers of this type");
    do {
      std::string name = reader_.Word();
      int64_t count = -1;
      if (reader_.Take("<")) {
        count = reader_.Integer();
        reader_.Expect(">");
      }
      function_.registers.insert_or_assign(Declare(name), Function::Registers{*type, count});
    } while (reader_.Take(","));
    reader_.Expect(";");
  }

  // Names in an inner pair of braces are local to it: they get a suffix that cannot occur in the
  // text.
  std::string Declare(const std::string& name) {
    if (depth() == 0) return name;
    return scopes_.back()[name] = absl::StrCat(name, "@", ++inner_names_);
  }
  std::string Meant(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    return name;
  }

  void ReadInstruction() {
    Statement statement{.line = reader_.Peek().line};
    if (reader_.Take("@")) {
      statement.guard_negated = reader_.Take("!");
      statement.guard = Meant(reader_.Word());
    }
    statement.opcode = reader_.Word();
    if (!reader_.Peek().Is(";")) {
      do {
        statement.operands.push_back(ReadOperand());
      } while (reader_.Take(","));
    }
    reader_.Expect(";");
    function_.statements.push_back(std::move(statement));
  }

  Operand ReadOperand() {
    Operand first = ReadPart();
    if (!reader_.Take("|")) return first;
    Operand pair{.kind = Operand::Kind::kPair};
    pair.elements.push_back(std::move(first));
    pair.elements.push_back(ReadPart());
    return pair;
  }

  Operand ReadPart() {
    const Token& token = reader_.Peek();
    if (reader_.Take("{")) return ReadElements(Operand::Kind::kVector, "}");
    if (reader_.Take("(")) return ReadElements(Operand::Kind::kList, ")");
    if (reader_.Take("[")) return ReadAddress();
    if (token.kind == Token::Kind::kNumber || token.Is("-")) return ReadNumber(reader_);
    if (reader_.Take("_")) return Operand{.kind = Operand::Kind::kSink};
    Operand name{.kind = Operand::Kind::kName};
    name.negated = reader_.Take("!");
    name.name = Meant(reader_.Word());
    if (reader_.Take("+")) name.offset = reader_.Integer();
    return name;
  }

  Operand ReadElements(Operand::Kind kind, absl::string_view end) {
    Operand whole{.kind = kind};
    if (reader_.Take(end)) return whole;
    do {
      whole.elements.push_back(ReadPart());
    } while (reader_.Take(","));
    reader_.Expect(end);
    return whole;
  }

  Operand ReadAddress() {
    Operand address{.kind = Operand::Kind::kAddress};
    address.elements.push_back(ReadPart());
    std::swap(address.offset, address.elements[0].offset);
    if (reader_.Peek().Is("-")) address.offset = reader_.Integer();
    reader_.Expect("]");
    return address;
  }

  TokenReader& reader_;
  Function& function_;
  std::vector<absl::flat_hash_map<std::string, std::string>> scopes_{1};
  int64_t inner_names_ = 0;
};

}  // namespace

void ReadBody(TokenReader& reader, Function& function) { BodyReader(reader, function).Read(); }

}  // namespace kiln::stand_ins::ptx
