// Decodes a module's functions, one statement after another.
#include "tests/stand_ins/cuda/ptx/decode.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/machine.h"

namespace kiln::stand_ins::ptx {
namespace {

constexpr int64_t kRegistersMax = 1 << 18;

int64_t AlignTo(int64_t at, int64_t alignment) {
  return (at + alignment - 1) / alignment * alignment;
}

void CollectNames(const Operand& operand, std::set<std::string>& names) {
  if (operand.kind == Operand::Kind::kName) names.insert(operand.name);
  for (const Operand& element : operand.elements) CollectNames(element, names);
}

std::set<std::string> NamesIn(const Function& function) {
  std::set<std::string> names;
  for (const Statement& statement : function.statements)
    for (const Operand& operand : statement.operands) CollectNames(operand, names);
  return names;
}

// The addresses of shared variables. Variables of functions have one place in the module, before
// those of the entries. Each entry's variables begin after them.
class SharedLayout {
 public:
  explicit SharedLayout(const Module& module) : module_(module) {
    for (const Function& function : module.functions)
      if (!function.is_entry && function.has_body) function_bytes_ = Add(function, function_bytes_);
  }

  // Returns how many bytes the function's variables need, all static ones.
  absl::StatusOr<int64_t> Place(const Function& function, Names& names) {
    absl::flat_hash_map<std::string, int64_t> saved = places_;
    int64_t end = Add(function, function_bytes_);
    const auto used = NamesIn(function);
    for (const Variable* variable : SharedOf(function, used)) {
      if (variable->bytes == 0) {
        if (!function.is_entry)
          return absl::UnimplementedError(
              absl::StrCat("line ", variable->line,
                           ": not interpreted: shared memory of the launch's size in a function"));
        names.variables[variable->name] = {Space::kShared, static_cast<uint64_t>(AlignTo(end, 16))};
      } else {
        names.variables[variable->name] = {Space::kShared,
                                           static_cast<uint64_t>(places_[variable->name])};
      }
    }
    for (const Variable* variable : SharedOf(function, used))
      if (variable->bytes == 0) end = AlignTo(end, 16);
    places_ = std::move(saved);
    return end;
  }

 private:
  std::vector<const Variable*> SharedOf(const Function& function,
                                        const std::set<std::string>& used) const {
    std::vector<const Variable*> found;
    for (const std::vector<Variable>* variables : {&module_.variables, &function.variables})
      for (const Variable& variable : *variables)
        if (variable.space == Space::kShared && used.count(variable.name) > 0)
          found.push_back(&variable);
    return found;
  }

  int64_t Add(const Function& function, int64_t end) {
    for (const Variable* variable : SharedOf(function, NamesIn(function))) {
      if (variable->bytes == 0 || places_.contains(variable->name)) continue;
      const int64_t place = AlignTo(end, variable->alignment);
      places_[variable->name] = place;
      end = place + variable->bytes;
    }
    return end;
  }

  const Module& module_;
  absl::flat_hash_map<std::string, int64_t> places_;
  int64_t function_bytes_ = 0;
};

void PlaceParameters(const std::vector<Variable>& variables, Names& names, int64_t& end,
                     std::vector<int64_t>& places, std::vector<int64_t>& sizes) {
  for (const Variable& variable : variables) {
    end = AlignTo(end, variable.alignment);
    names.variables[variable.name] = {Space::kParam, static_cast<uint64_t>(end)};
    places.push_back(end);
    sizes.push_back(variable.bytes);
    end += variable.bytes;
  }
}

void PlaceOwn(const Function& function, Names& names, DecodedFunction& decoded) {
  PlaceParameters(function.parameters, names, decoded.parameter_bytes, decoded.parameters,
                  decoded.parameter_sizes);
  decoded.formal_bytes = decoded.parameter_bytes;
  PlaceParameters(function.results, names, decoded.parameter_bytes, decoded.results,
                  decoded.result_sizes);
  for (const Variable& variable : function.variables) {
    if (variable.space != Space::kParam && variable.space != Space::kLocal) continue;
    int64_t& end = variable.space == Space::kParam ? decoded.parameter_bytes : decoded.local_bytes;
    end = AlignTo(end, variable.alignment);
    names.variables[variable.name] = {variable.space, static_cast<uint64_t>(end)};
    end += variable.bytes;
  }
}

absl::Status PlaceRegisters(const Function& function, Names& names, DecodedFunction& decoded) {
  int64_t slots = 1;
  for (const auto& [name, registers] : function.registers) {
    names.registers[name] = {static_cast<uint32_t>(slots), registers};
    slots += std::abs(registers.count);
    if (slots > kRegistersMax)
      return absl::InvalidArgumentError(
          absl::StrCat(function.name, " has more than ", kRegistersMax, " registers"));
  }
  decoded.registers = static_cast<uint32_t>(slots);
  return absl::OkStatus();
}

void Append(Program& program, Instruction instruction, int line, std::string text) {
  program.instructions.push_back(instruction);
  program.lines.push_back(line);
  program.texts.push_back(std::move(text));
}

// The end of a body is an implicit `ret`.
absl::Status DecodeBody(const Function& function, const Names& names, DecodedFunction& decoded,
                        Program& program) {
  decoded.first = static_cast<uint32_t>(program.instructions.size());
  std::vector<Statement> statements = function.statements;
  statements.push_back(
      {.line = statements.empty() ? function.line : statements.back().line, .opcode = "ret"});
  for (const Statement& statement : statements) {
    StatementDecoder decoder(statement, names, decoded, program);
    if (absl::Status status = decoder.Decode(); !status.ok()) return status;
    Append(program, decoder.instruction, statement.line, statement.opcode);
  }
  return absl::OkStatus();
}

}  // namespace

const DecodedFunction* Program::FindEntry(absl::string_view name) const {
  for (const DecodedFunction& function : functions)
    if (function.is_entry && function.name == name) return &function;
  return nullptr;
}

absl::StatusOr<Program> Decode(const Module& module, AddressOf address_of) {
  Program program;
  for (char c : module.target)
    if (c >= '0' && c <= '9') program.architecture = program.architecture * 10 + (c - '0');
  Names common;
  for (const Variable& variable : module.variables)
    if (variable.space != Space::kShared)
      common.variables[variable.name] = {variable.space, address_of(variable)};
  for (size_t i = 0; i < module.functions.size(); ++i) {
    common.functions[module.functions[i].name] = static_cast<uint32_t>(i);
    program.functions.push_back(
        {.name = module.functions[i].name, .is_entry = module.functions[i].is_entry});
  }
  SharedLayout shared(module);
  std::vector<Names> names(module.functions.size(), common);
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const Function& function = module.functions[i];
    DecodedFunction& decoded = program.functions[i];
    names[i].function = &function;
    decoded.required_threads = function.required_threads;
    decoded.threads_max = function.threads_max;
    PlaceOwn(function, names[i], decoded);
    for (const Variable& variable : function.variables)
      if (variable.space == Space::kGlobal || variable.space == Space::kConst)
        names[i].variables[variable.name] = {variable.space, address_of(variable)};
    absl::StatusOr<int64_t> bytes = shared.Place(function, names[i]);
    if (!bytes.ok()) return bytes.status();
    decoded.shared_bytes = *bytes;
    if (absl::Status status = PlaceRegisters(function, names[i], decoded); !status.ok())
      return status;
  }
  for (size_t i = 0; i < module.functions.size(); ++i) {
    if (!module.functions[i].has_body) continue;
    absl::Status status = DecodeBody(module.functions[i], names[i], program.functions[i], program);
    if (!status.ok()) return status;
  }
  return program;
}

}  // namespace kiln::stand_ins::ptx
