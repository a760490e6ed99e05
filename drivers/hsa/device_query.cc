#include "drivers/hsa/device_query.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "drivers/hsa/error.h"

namespace kiln::drivers::hsa {
namespace {

// More than any machine has; limits what a broken library can make the daemon open.
constexpr size_t kAgentsMax = 256;
constexpr char kIsaPrefix[] = "amdgcn-amd-amdhsa--";

// The processors that code objects are generated and tested for. The runtime does not report a
// unit's vector registers, nor the float32 operations that it starts per cycle.
struct Processor {
  const char* name;
  int64_t register_bytes_per_unit;
  int lanes;
};
constexpr Processor kProcessors[] = {{"gfx90a", 512 << 10, 128},
                                     {"gfx942", 512 << 10, 256},
                                     {"gfx1030", 256 << 10, 64},
                                     {"gfx1100", 384 << 10, 128},
                                     {"gfx1201", 384 << 10, 128}};

const Processor* FindProcessor(const std::string& name) {
  const auto* found = std::find_if(std::begin(kProcessors), std::end(kProcessors),
                                   [&](const Processor& row) { return row.name == name; });
  return found == std::end(kProcessors) ? nullptr : found;
}

// 0 for an attribute that the agent does not report.
uint32_t Number(const Library& hsa, hsa_agent_t agent, hsa_agent_info_t attribute) {
  uint32_t value = 0;
  return hsa.agent_get_info(agent, attribute, &value) == HSA_STATUS_SUCCESS ? value : 0;
}

std::string AgentText(const Library& hsa, hsa_agent_t agent, hsa_agent_info_t attribute) {
  char text[65] = {};
  if (hsa.agent_get_info(agent, attribute, text) != HSA_STATUS_SUCCESS) return "";
  return text;
}

std::string ModelOf(const Library& hsa, hsa_agent_t agent) {
  std::string name = AgentText(hsa, agent, HSA_AMD_AGENT_INFO_PRODUCT_NAME);
  if (name.empty()) name = AgentText(hsa, agent, HSA_AGENT_INFO_NAME);
  if (name.empty()) name = "unknown";
  const std::string uuid = AgentText(hsa, agent, HSA_AMD_AGENT_INFO_UUID);
  return uuid.empty() ? name : absl::StrCat(name, " (", uuid, ")");
}

// Returns a callback that calls `use(item)` for each item of an iteration.
template <typename Item, typename Use>
auto Each(Use& use) {
  return [](Item item, void* data) {
    (*static_cast<Use*>(data))(item);
    return HSA_STATUS_SUCCESS;
  };
}

std::string IsaOf(const Library& hsa, hsa_agent_t agent) {
  std::string name;
  auto take_first = [&](hsa_isa_t isa) {
    uint32_t length = 0;
    if (!name.empty() ||
        hsa.isa_get_info_alt(isa, HSA_ISA_INFO_NAME_LENGTH, &length) != HSA_STATUS_SUCCESS)
      return;
    std::string text(std::min<uint32_t>(length, 256) + 1, '\0');
    if (length > 256 ||
        hsa.isa_get_info_alt(isa, HSA_ISA_INFO_NAME, text.data()) != HSA_STATUS_SUCCESS)
      return;
    name = text.c_str();
  };
  hsa.agent_iterate_isas(agent, Each<hsa_isa_t>(take_first), &take_first);
  return name;
}

struct Pool {
  hsa_amd_memory_pool_t pool;
  uint32_t flags;
  size_t bytes;
};

// The pools of an agent's global memory that allow allocation.
std::vector<Pool> PoolsOf(const Library& hsa, hsa_agent_t agent) {
  std::vector<Pool> pools;
  auto take = [&](hsa_amd_memory_pool_t pool) {
    hsa_amd_segment_t segment = HSA_AMD_SEGMENT_GROUP;
    bool allowed = false;
    Pool found = {.pool = pool, .flags = 0, .bytes = 0};
    const bool known =
        hsa.amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment) ==
            HSA_STATUS_SUCCESS &&
        segment == HSA_AMD_SEGMENT_GLOBAL &&
        hsa.amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
                                     &allowed) == HSA_STATUS_SUCCESS &&
        hsa.amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &found.flags) ==
            HSA_STATUS_SUCCESS &&
        hsa.amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &found.bytes) ==
            HSA_STATUS_SUCCESS;
    if (known && allowed) pools.push_back(found);
  };
  hsa.amd_agent_iterate_memory_pools(agent, Each<hsa_amd_memory_pool_t>(take), &take);
  return pools;
}

const Pool* FindPool(const std::vector<Pool>& pools, uint32_t flag) {
  const auto found = std::find_if(pools.begin(), pools.end(),
                                  [&](const Pool& pool) { return (pool.flags & flag) != 0; });
  return found == pools.end() ? nullptr : &*found;
}

Limits MakeLimits(const Library& hsa, hsa_agent_t agent, const Processor& processor) {
  const auto get = [&](hsa_agent_info_t attribute) {
    return static_cast<int>(Number(hsa, agent, attribute));
  };
  Limits limits;
  limits.vector_bytes = 4;  // lanes are threads
  limits.vector_registers = 256;
  limits.compute_units = std::max(1, get(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT));
  limits.threads_per_block = std::max(1, get(HSA_AGENT_INFO_WORKGROUP_MAX_SIZE));
  limits.threads_per_subgroup = std::max(1, get(HSA_AGENT_INFO_WAVEFRONT_SIZE));
  // From gfx10 on, one instruction exchanges values only within one half of a wide wave.
  const bool whole = absl::StartsWith(processor.name, "gfx9");
  limits.threads_per_shuffle =
      whole ? limits.threads_per_subgroup : std::min(32, limits.threads_per_subgroup);
  limits.bytes_per_access = 16;
  limits.threads_per_unit =
      std::max(limits.threads_per_block,
               get(HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU) * limits.threads_per_subgroup);
  limits.register_bytes_per_unit = processor.register_bytes_per_unit;
  limits.shared_bytes_per_block = 64 << 10;
  limits.near_memory_bytes = 64 << 10;
  std::array<uint32_t, 4> caches = {};
  if (hsa.agent_get_info(agent, HSA_AGENT_INFO_CACHE_SIZE, caches.data()) == HSA_STATUS_SUCCESS &&
      caches[1] > 0)
    limits.private_cache_bytes = caches[1] / limits.compute_units;
  // A thread has little private memory, and there are many threads.
  limits.local_bytes_max = 4 << 10;
  // Arguments are read from memory; more would be slow.
  limits.arguments_max = 511;
  // A cache line.
  limits.buffer_alignment = 128;
  return limits;
}

// Estimates from the clocks: a multiplication and an addition per lane and cycle, two transfers per
// memory clock.
Rates MakeRates(const Library& hsa, hsa_agent_t agent, int lanes, int units) {
  const double clock = 1e6 * Number(hsa, agent, HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY);
  const double bytes = Number(hsa, agent, HSA_AMD_AGENT_INFO_MEMORY_WIDTH) / 8.0;
  const double memory_clock = 1e6 * Number(hsa, agent, HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY);
  return GpuRates(2 * lanes * clock * units, 2 * memory_clock * bytes, units);
}

std::string ProcessorNames() {
  return absl::StrJoin(kProcessors, ", ", [](std::string* out, const Processor& row) {
    absl::StrAppend(out, row.name);
  });
}

absl::Status CheckUsable(const DeviceFacts& facts, const IsaName& isa) {
  if (FindProcessor(isa.processor) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("is ", isa.processor.empty() ? "of an unknown kind" : isa.processor,
                     "; Kiln generates code for ", ProcessorNames()));
  }
  const int wave = facts.target.limits.threads_per_subgroup;
  const bool known = wave == 64 || (wave == 32 && !absl::StartsWith(isa.processor, "gfx9"));
  if (!known) return absl::FailedPreconditionError(absl::StrCat("has waves of ", wave, " threads"));
  if (facts.memory.handle == 0)
    return absl::FailedPreconditionError("has no coarse-grained memory");
  if (facts.arguments.handle == 0)
    return absl::FailedPreconditionError("has no host memory for kernels' arguments");
  return absl::OkStatus();
}

Target MakeTarget(const Library& hsa, hsa_agent_t agent, const IsaName& isa) {
  static constexpr Processor kUnknown = {"", 256 << 10, 64};
  const Processor* found = FindProcessor(isa.processor);
  const Processor& processor = found == nullptr ? kUnknown : *found;
  Target target;
  target.architecture = "amdgcn";
  target.processor = isa.processor;
  target.features = isa.features;
  target.limits = MakeLimits(hsa, agent, processor);
  target.variant = absl::StrCat(isa.processor, ",wave", target.limits.threads_per_subgroup);
  target.capabilities = {.fma = true, .fp64 = true, .fp16 = true};
  target.costs = kGpuCosts;
  target.rates = MakeRates(hsa, agent, processor.lanes, target.limits.compute_units);
  return target;
}

DeviceFacts Query(const Library& hsa, hsa_agent_t agent) {
  DeviceFacts facts;
  facts.agent = agent;
  facts.model = ModelOf(hsa, agent);
  const IsaName isa = ParseIsaName(IsaOf(hsa, agent));
  facts.target = MakeTarget(hsa, agent, isa);
  facts.queue_packets_max = Number(hsa, agent, HSA_AGENT_INFO_QUEUE_MAX_SIZE);
  const std::vector<Pool> pools = PoolsOf(hsa, agent);
  if (const Pool* pool = FindPool(pools, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)) {
    facts.memory = pool->pool;
    facts.memory_bytes = static_cast<int64_t>(pool->bytes);
  }
  if (const uint32_t place = Number(hsa, agent, HSA_AMD_AGENT_INFO_BDFID); place != 0) {
    facts.pci_address = PciAddress(Number(hsa, agent, HSA_AMD_AGENT_INFO_DOMAIN), place >> 8,
                                   (place >> 3) & 31, place & 7);
  }
  facts.usable = absl::OkStatus();
  return facts;
}

}  // namespace

IsaName ParseIsaName(const std::string& name) {
  if (!absl::StartsWith(name, kIsaPrefix)) return {};
  const std::vector<std::string> words = absl::StrSplit(name.substr(sizeof(kIsaPrefix) - 1), ':');
  IsaName isa = {.processor = words[0], .features = ""};
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2) continue;
    absl::StrAppend(&isa.features, isa.features.empty() ? "" : ",", word.substr(word.size() - 1),
                    word.substr(0, word.size() - 1));
  }
  return isa;
}

absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& hsa) {
  std::vector<hsa_agent_t> agents;
  auto take = [&](hsa_agent_t agent) {
    if (agents.size() < kAgentsMax) agents.push_back(agent);
  };
  const hsa_status_t code = hsa.iterate_agents(Each<hsa_agent_t>(take), &take);
  if (code != HSA_STATUS_SUCCESS) return ToStatus(hsa, "cannot list HSA's agents", code);
  std::vector<DeviceFacts> devices;
  hsa_agent_t host = {};
  hsa_amd_memory_pool_t arguments = {};
  for (hsa_agent_t agent : agents) {
    const uint32_t kind = Number(hsa, agent, HSA_AGENT_INFO_DEVICE);
    if (kind == HSA_DEVICE_TYPE_GPU) devices.push_back(Query(hsa, agent));
    if (kind != HSA_DEVICE_TYPE_CPU || host.handle != 0) continue;
    const std::vector<Pool> pools = PoolsOf(hsa, agent);
    const Pool* pool = FindPool(pools, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT);
    if (pool == nullptr) continue;
    host = agent;
    arguments = pool->pool;
  }
  if (devices.empty()) {
    return absl::NotFoundError(
        "HSA has no GPU; check that rocminfo lists one and that ROCR_VISIBLE_DEVICES includes it");
  }
  for (DeviceFacts& facts : devices) {
    facts.host = host;
    facts.arguments = arguments;
    facts.usable = CheckUsable(
        facts, {.processor = facts.target.processor, .features = facts.target.features});
  }
  return devices;
}

}  // namespace kiln::drivers::hsa
