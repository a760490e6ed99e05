#include "tests/stand_ins/cuda/ptx/load.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln::stand_ins::ptx {
namespace {

absl::Status WriteInitialBytes(const Variable& variable, const LoadedModule& loaded) {
  const LoadedVariable& place = *loaded.FindVariable(variable.name);
  std::copy(variable.initial.begin(), variable.initial.end(), place.region.host);
  for (const Variable::Reference& reference : variable.references) {
    const LoadedVariable* target = loaded.FindVariable(reference.variable);
    if (target == nullptr)
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", variable.line, ": ", reference.variable, " is no variable of device memory"));
    const uint64_t address = target->region.address + static_cast<uint64_t>(reference.addend);
    std::memcpy(place.region.host + reference.offset, &address, sizeof(address));
  }
  return absl::OkStatus();
}

bool IsInDeviceMemory(const Variable& variable) {
  return variable.space == Space::kGlobal || variable.space == Space::kConst;
}

}  // namespace

const LoadedVariable* LoadedModule::FindVariable(absl::string_view name) const {
  for (const LoadedVariable& variable : variables)
    if (variable.name == name) return &variable;
  return nullptr;
}

absl::StatusOr<std::unique_ptr<LoadedModule>> Load(absl::string_view text,
                                                   AllocateVariable allocate) {
  absl::StatusOr<Module> module = Parse(text);
  if (!module.ok()) return module.status();
  auto loaded = std::make_unique<LoadedModule>();
  loaded->version = module->version;
  loaded->target = module->target;
  absl::StatusOr<Program> program = Decode(*module, [&](const Variable& variable) {
    loaded->variables.push_back({variable.name, allocate(variable.bytes, variable.alignment)});
    return loaded->variables.back().region.address;
  });
  if (!program.ok()) return program.status();
  loaded->program = *std::move(program);
  const auto write_all = [&](const std::vector<Variable>& variables) {
    absl::Status status;
    for (const Variable& variable : variables)
      if (status.ok() && IsInDeviceMemory(variable)) status = WriteInitialBytes(variable, *loaded);
    return status;
  };
  absl::Status status = write_all(module->variables);
  for (const Function& function : module->functions)
    if (status.ok()) status = write_all(function.variables);
  if (!status.ok()) return status;
  return loaded;
}

}  // namespace kiln::stand_ins::ptx
