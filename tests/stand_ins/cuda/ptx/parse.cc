#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "tests/stand_ins/cuda/ptx/parser.h"

namespace kiln::stand_ins::ptx {

const Token& TokenReader::Peek(int ahead) const {
  return status_.ok() ? tokens_[std::min(at_ + ahead, tokens_.size() - 1)] : tokens_.back();
}
Token TokenReader::Next() {
  const Token token = Peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}
bool TokenReader::Take(absl::string_view text) {
  if (!Peek().Is(text)) return false;
  Next();
  return true;
}
void TokenReader::Expect(absl::string_view text) {
  if (!Take(text)) Fail(absl::StrCat("'", text, "' is expected, not '", Peek().text, "'"));
}
std::string TokenReader::Word() {
  if (Peek().kind == Token::Kind::kWord) return std::string(Next().text);
  Fail(absl::StrCat("a name is expected, not '", Peek().text, "'"));
  return "";
}
int64_t TokenReader::Integer() {
  const Operand number = ReadNumber(*this);
  if (number.kind != Operand::Kind::kInteger) Fail("an integer is expected");
  return number.bits;
}
void TokenReader::SkipLine() {
  for (const int line = Peek().line; !AtEnd() && Peek().line == line;) Next();
}
void TokenReader::SkipBraces() {
  Expect("{");
  for (int depth = 1; depth > 0 && !AtEnd();) {
    const Token token = Next();
    depth += token.Is("{") ? 1 : token.Is("}") ? -1 : 0;
  }
}
void TokenReader::Fail(absl::string_view what) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat("line ", Peek().line, ": ", what));
}
void TokenReader::Refuse(absl::string_view what) {
  if (!status_.ok()) return;
  status_ =
      absl::UnimplementedError(absl::StrCat("line ", Peek().line, ": not interpreted: ", what));
}

namespace {

std::vector<Variable> ReadParameters(TokenReader& reader) {
  std::vector<Variable> parameters;
  if (reader.Take(")")) return parameters;
  do {
    reader.Expect(".param");
    parameters.push_back(ReadVariable(reader, Space::kParam));
  } while (reader.Take(","));
  reader.Expect(")");
  return parameters;
}

void ReadThreads(TokenReader& reader, std::array<uint32_t, 3>& threads) {
  threads = {1, 1, 1};
  int i = 0;
  do {
    threads[i++] = reader.Integer();
  } while (i < 3 && reader.Take(","));
}

// Reads the directives between a function's parameters and its body.
void ReadPerformanceDirectives(TokenReader& reader, Function& function) {
  while (absl::StartsWith(reader.Peek().text, ".")) {
    const std::string directive = reader.Word();
    if (directive == ".maxntid") {
      std::array<uint32_t, 3> threads;
      ReadThreads(reader, threads);
      function.threads_max = int64_t{threads[0]} * threads[1] * threads[2];
    } else if (directive == ".reqntid") {
      ReadThreads(reader, function.required_threads);
    } else if (directive == ".minnctapersm" || directive == ".maxnreg") {
      reader.Integer();
    } else if (directive == ".pragma") {
      reader.SkipLine();
    } else if (directive != ".noreturn") {
      reader.Refuse(absl::StrCat("a function's ", directive));
    }
  }
}

Function ReadFunction(TokenReader& reader, bool is_entry) {
  Function function{.line = reader.Peek().line, .is_entry = is_entry};
  if (reader.Take("(")) function.results = ReadParameters(reader);
  function.name = reader.Word();
  if (reader.Take("(")) function.parameters = ReadParameters(reader);
  ReadPerformanceDirectives(reader, function);
  if (reader.Take(";")) return function;
  reader.Expect("{");
  function.has_body = true;
  ReadBody(reader, function);
  return function;
}

void AddFunction(TokenReader& reader, Function function, Module& module) {
  for (Function& other : module.functions) {
    if (other.name != function.name) continue;
    if (other.has_body && function.has_body)
      reader.Fail(absl::StrCat("a second body of ", function.name));
    if (function.has_body) other = std::move(function);
    return;
  }
  module.functions.push_back(std::move(function));
}

void ReadDirective(TokenReader& reader, Module& module) {
  const std::string directive = reader.Word();
  if (directive == ".version") {
    const absl::string_view version = reader.Next().text;
    double number = 0;
    if (!absl::SimpleAtod(version, &number)) reader.Fail("a version is expected");
    module.version = static_cast<int>(number * 10 + 0.5);
  } else if (directive == ".target") {
    module.target = reader.Word();
    while (reader.Take(",")) reader.Word();
  } else if (directive == ".address_size") {
    if (reader.Integer() != 64) reader.Refuse("addresses of 32 bits");
  } else if (directive == ".file" || directive == ".loc" || directive == ".pragma") {
    reader.SkipLine();
  } else if (directive == ".section") {
    reader.Word();
    reader.SkipBraces();
  } else if (directive == ".entry" || directive == ".func") {
    AddFunction(reader, ReadFunction(reader, directive == ".entry"), module);
  } else if (directive == ".global" || directive == ".const" || directive == ".shared") {
    module.variables.push_back(
        ReadVariable(reader, *SpaceNamed(absl::StripPrefix(directive, "."))));
    reader.Expect(";");
  } else if (directive != ".visible" && directive != ".extern" && directive != ".weak" &&
             directive != ".common") {
    reader.Refuse(absl::StrCat("the directive ", directive));
  }
}

}  // namespace

absl::StatusOr<Module> Parse(absl::string_view text) {
  absl::StatusOr<std::vector<Token>> tokens = SplitIntoTokens(text);
  if (!tokens.ok()) return tokens.status();
  TokenReader reader(*std::move(tokens));
  Module module;
  if (!reader.Peek().Is(".version")) reader.Fail("a PTX text begins with .version");
  while (!reader.AtEnd()) ReadDirective(reader, module);
  if (module.target.empty()) reader.Fail(".target is missing");
  if (!reader.status().ok()) return reader.status();
  return module;
}

}  // namespace kiln::stand_ins::ptx
