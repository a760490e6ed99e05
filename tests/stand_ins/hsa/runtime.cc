// The runtime, its agents and their properties.
#include <chrono>
#include <cstring>

#include "tests/stand_ins/hsa/objects.h"

namespace kiln::drivers::hsa {

Runtime& TheRuntime() {
  static auto* const runtime = new Runtime;
  return *runtime;
}
stand_ins::hsa::Control& TheControl() {
  static auto* const control = new stand_ins::hsa::Control;
  return *control;
}

uint64_t Ticks() {
  return static_cast<uint64_t>(TheControl().time.Nanoseconds()) / (1'000'000'000 / kTicksPerSecond);
}

hsa_status_t Mistake(const std::string& what, hsa_status_t code) {
  ++TheControl().mistakes;
  TheRuntime().message = what;
  return code;
}

bool IsOpen() {
  if (TheRuntime().opened > 0) return true;
  Mistake("a call before hsa_init or behind hsa_shut_down", HSA_STATUS_ERROR_NOT_INITIALIZED);
  return false;
}

bool IsAgent(uint64_t agent) {
  const auto devices = static_cast<uint64_t>(TheControl().devices.load());
  return agent == kHostAgent || (agent >= kFirstGpu && agent < kFirstGpu + devices);
}

namespace {

constexpr struct {
  hsa_status_t code;
  const char* text;
} kTexts[] = {
    {HSA_STATUS_ERROR_INVALID_ARGUMENT,
     "HSA_STATUS_ERROR_INVALID_ARGUMENT: One of the actual arguments does not meet a "
     "precondition."},
    {HSA_STATUS_ERROR_OUT_OF_RESOURCES,
     "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources."},
    {HSA_STATUS_ERROR_INVALID_PACKET_FORMAT,
     "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT: The AQL packet is malformed."},
    {HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
     "HSA_STATUS_ERROR_INVALID_CODE_OBJECT: The code object is invalid."},
    {HSA_STATUS_ERROR_EXCEPTION,
     "HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception."},
    {HSA_STATUS_ERROR_MEMORY_FAULT,
     "HSA_STATUS_ERROR_MEMORY_FAULT: Agent executed an invalid memory access."},
    {HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION,
     "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: The agent attempted to execute an illegal shader "
     "instruction."},
};

template <typename Value>
hsa_status_t Give(void* to, Value value) {
  std::memcpy(to, &value, sizeof(value));
  return HSA_STATUS_SUCCESS;
}
hsa_status_t GiveText(void* to, const char* text) {
  std::memcpy(to, text, std::strlen(text) + 1);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t GiveGpu(uint64_t agent, hsa_agent_info_t attribute, void* value) {
  const auto& control = TheControl();
  switch (attribute) {
    case HSA_AGENT_INFO_NAME:
      return GiveText(value, "gfx0");
    case HSA_AGENT_INFO_WAVEFRONT_SIZE:
      return Give(value, static_cast<uint32_t>(control.wave));
    case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
      return Give(value, uint32_t{1024});
    case HSA_AGENT_INFO_QUEUE_MAX_SIZE:
      return Give(value, static_cast<uint32_t>(control.queue_packets_max));
    case HSA_AGENT_INFO_DEVICE:
      return Give(value, HSA_DEVICE_TYPE_GPU);
    case HSA_AGENT_INFO_CACHE_SIZE: {
      const uint32_t sizes[] = {32 << 10, 6 << 20, 0, 0};
      std::memcpy(value, sizes, sizeof(sizes));
      return HSA_STATUS_SUCCESS;
    }
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
      return Give(value, static_cast<uint32_t>(control.units));
    case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
      return Give(value, uint32_t{2500});
    case HSA_AMD_AGENT_INFO_BDFID:
      return Give(value, uint32_t{0x0300});
    case HSA_AMD_AGENT_INFO_DOMAIN:
      return Give(value, uint32_t{0});
    case HSA_AMD_AGENT_INFO_MEMORY_WIDTH:
      return Give(value, uint32_t{384});
    case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY:
      return Give(value, uint32_t{1250});
    case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
      return GiveText(value, "Stand-in for a GPU of AMD's");
    case HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU:
      return Give(value, uint32_t{32});
    case HSA_AMD_AGENT_INFO_UUID:
      return GiveText(value, ("GPU-5374616e642d69" + std::to_string(agent)).c_str());
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

}  // namespace

extern "C" {

hsa_status_t hsa_init() {
  std::unique_lock lock(TheRuntime().mutex);
  if (const int code = TheControl().init_fails) return static_cast<hsa_status_t>(code);
  if (TheRuntime().opened++ > 0) return HSA_STATUS_SUCCESS;
  TheRuntime().stopping = false;
  TheRuntime().copier = std::thread(RunCopies);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_shut_down() {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (--TheRuntime().opened > 0) return HSA_STATUS_SUCCESS;
  if (TheControl().objects != 0)
    Mistake("the runtime is shut down with " + std::to_string(TheControl().objects) +
                " handles and pieces of memory left",
            HSA_STATUS_ERROR);
  TheRuntime().stopping = true;
  TheRuntime().changed.notify_all();
  std::thread copier = std::move(TheRuntime().copier);
  lock.unlock();
  copier.join();
  lock.lock();
  TheRuntime().copies.clear();
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_status_string(hsa_status_t status, const char** text) {
  for (const auto& row : kTexts) {
    if (row.code != status) continue;
    *text = row.text;
    return HSA_STATUS_SUCCESS;
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void* value) {
  if (attribute != HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return Give(value, kTicksPerSecond);
}

hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void* data),
                                void* data) {
  {
    std::unique_lock lock(TheRuntime().mutex);
    if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  }
  hsa_status_t status = callback({kHostAgent}, data);
  for (int i = 0; i < TheControl().devices && status == HSA_STATUS_SUCCESS; ++i)
    status = callback({kFirstGpu + static_cast<uint64_t>(i)}, data);
  return status;
}

hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void* value) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (!IsAgent(agent.handle))
    return Mistake("information on an agent that is none", HSA_STATUS_ERROR_INVALID_AGENT);
  if (agent.handle != kHostAgent) return GiveGpu(agent.handle, attribute, value);
  if (attribute == HSA_AGENT_INFO_DEVICE) return Give(value, HSA_DEVICE_TYPE_CPU);
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent,
                                    hsa_status_t (*callback)(hsa_isa_t isa, void* data),
                                    void* data) {
  {
    std::unique_lock lock(TheRuntime().mutex);
    if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!IsAgent(agent.handle) || agent.handle == kHostAgent)
      return Mistake("instruction sets of an agent that has none", HSA_STATUS_ERROR_INVALID_AGENT);
  }
  return callback({agent.handle}, data);
}

hsa_status_t hsa_isa_get_info_alt(hsa_isa_t, hsa_isa_info_t attribute, void* value) {
  const char* name = TheControl().isa;
  if (attribute == HSA_ISA_INFO_NAME_LENGTH)
    return Give(value, static_cast<uint32_t>(std::strlen(name)));
  // Without the terminating zero, as the specified length requires.
  std::memcpy(value, name, std::strlen(name));
  return HSA_STATUS_SUCCESS;
}

}  // extern "C"

}  // namespace kiln::drivers::hsa

extern "C" {

kiln::stand_ins::hsa::Control* KilnHsaStandInControl() { return &kiln::drivers::hsa::TheControl(); }

const char* KilnHsaStandInMessage() {
  static std::string* const told = new std::string;
  std::unique_lock lock(kiln::drivers::hsa::TheRuntime().mutex);
  *told = kiln::drivers::hsa::TheRuntime().message;
  return told->c_str();
}

}  // extern "C"
