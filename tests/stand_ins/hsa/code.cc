// Code objects and executables.
#include <cstring>

#include "tests/stand_ins/hsa/objects.h"

namespace kiln::drivers::hsa {
namespace {

Executable* FindExecutable(hsa_executable_t executable) {
  const auto found = TheRuntime().executables.find(executable.handle);
  if (found != TheRuntime().executables.end()) return &found->second;
  Mistake("a call with an executable that is none", HSA_STATUS_ERROR_INVALID_EXECUTABLE);
  return nullptr;
}

// The processor in the name of the devices' instruction set.
std::string Processor() {
  std::string name = TheControl().isa.load();
  name = name.substr(name.find("--") + 2);
  return name.substr(0, name.find(':'));
}

hsa_status_t Refuse(const std::string& why, hsa_status_t code) {
  TheRuntime().message = why;
  return code;
}

}  // namespace

extern "C" {

hsa_status_t hsa_code_object_reader_create_from_memory(const void* file, size_t bytes,
                                                       hsa_code_object_reader_t* reader) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (file == nullptr || bytes == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  reader->handle = TheRuntime().next_handle++;
  TheRuntime().readers[reader->handle] = std::string(static_cast<const char*>(file), bytes);
  ++TheControl().objects;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader) {
  std::unique_lock lock(TheRuntime().mutex);
  if (TheRuntime().readers.erase(reader.handle) == 0)
    return Mistake("the end of a reader that is none", HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER);
  --TheControl().objects;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_create_alt(hsa_profile_t profile, hsa_default_float_rounding_mode_t,
                                       const char*, hsa_executable_t* executable) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (profile != HSA_PROFILE_FULL)
    return Mistake("an executable of another profile", HSA_STATUS_ERROR_INVALID_ARGUMENT);
  executable->handle = TheRuntime().next_handle++;
  TheRuntime().executables[executable->handle] = {};
  ++TheControl().objects;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_destroy(hsa_executable_t executable) {
  std::unique_lock lock(TheRuntime().mutex);
  const Executable* found = FindExecutable(executable);
  if (found == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  TheRuntime().kernels.erase(found->symbol);
  TheRuntime().executables.erase(executable.handle);
  --TheControl().objects;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                   hsa_code_object_reader_t reader, const char*,
                                                   hsa_loaded_code_object_t*) {
  std::unique_lock lock(TheRuntime().mutex);
  Executable* found = FindExecutable(executable);
  if (found == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  const auto file = TheRuntime().readers.find(reader.handle);
  if (file == TheRuntime().readers.end())
    return Mistake("a load from a reader that is none",
                   HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER);
  if (!IsAgent(agent.handle) || agent.handle == kHostAgent)
    return Mistake("code for an agent that runs none", HSA_STATUS_ERROR_INVALID_AGENT);
  if (found->frozen || found->symbol != 0)
    return Mistake("a load into an executable that has its code",
                   HSA_STATUS_ERROR_FROZEN_EXECUTABLE);
  if (const int code = TheControl().next_load_fails.exchange(0))
    return static_cast<hsa_status_t>(code);
  auto object = stand_ins::hsa::ReadCodeObject(file->second);
  if (!object.ok())
    return Refuse(std::string(object.status().message()), HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
  if (object->processor != Processor() || object->wave != TheControl().wave)
    return Refuse("the code object is for " + object->processor,
                  HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS);
  auto twin = stand_ins::hsa::Twin::Load(file->second);
  if (!twin.ok())
    return Refuse(std::string(twin.status().message()), HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
  const auto& footer = (*twin)->footer();
  if (footer.argument_bytes != object->argument_bytes || footer.shared_bytes > object->group_bytes)
    return Refuse("the code object's twin has other arguments",
                  HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
  auto kernel = std::make_shared<Kernel>();
  kernel->object = *std::move(object);
  kernel->twin = *std::move(twin);
  kernel->agent = agent.handle;
  found->symbol = TheRuntime().next_handle++;
  TheRuntime().kernels[found->symbol] = std::move(kernel);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char*) {
  std::unique_lock lock(TheRuntime().mutex);
  Executable* found = FindExecutable(executable);
  if (found == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  if (found->frozen) return Mistake("frozen twice", HSA_STATUS_ERROR_FROZEN_EXECUTABLE);
  found->frozen = true;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char* name,
                                               const hsa_agent_t* agent,
                                               hsa_executable_symbol_t* symbol) {
  std::unique_lock lock(TheRuntime().mutex);
  const Executable* found = FindExecutable(executable);
  if (found == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  if (!found->frozen)
    return Mistake("a symbol of an executable that is not frozen",
                   HSA_STATUS_ERROR_INVALID_EXECUTABLE);
  const auto kernel = TheRuntime().kernels.find(found->symbol);
  if (kernel == TheRuntime().kernels.end() || kernel->second->object.symbol != name ||
      agent == nullptr || agent->handle != kernel->second->agent)
    return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME;
  symbol->handle = found->symbol;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t symbol,
                                            hsa_executable_symbol_info_t attribute, void* value) {
  std::unique_lock lock(TheRuntime().mutex);
  const auto found = TheRuntime().kernels.find(symbol.handle);
  if (found == TheRuntime().kernels.end())
    return Mistake("information on a symbol that is none",
                   HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL);
  const stand_ins::hsa::CodeObject& object = found->second->object;
  const auto give = [value](uint32_t number) {
    std::memcpy(value, &number, sizeof(number));
    return HSA_STATUS_SUCCESS;
  };
  switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE:
      return give(object.argument_bytes);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT:
      // At least this, whatever the metadata says.
      return give(16);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE:
      return give(object.group_bytes);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE:
      return give(object.private_bytes);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
      std::memcpy(value, &symbol.handle, sizeof(symbol.handle));
      return HSA_STATUS_SUCCESS;
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

}  // extern "C"

}  // namespace kiln::drivers::hsa
