// Memory pools, copies and fills.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tests/stand_ins/hsa/objects.h"

namespace kiln::drivers::hsa {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kUnwritten = 0xff;  // NaNs, as numbers
// Size of the host's memory.
constexpr int64_t kHostBytes = int64_t{8} << 30;

uint64_t AgentOf(uint64_t pool) { return pool / kPoolKinds; }

bool IsPool(uint64_t pool) {
  const uint64_t agent = AgentOf(pool);
  if (!IsAgent(agent)) return false;
  const uint64_t kind = pool % kPoolKinds;
  return agent == kHostAgent ? kind <= kCoarsePool : kind == kCoarsePool || kind == kGroupPool;
}

int64_t SizeOf(uint64_t pool) {
  if (pool % kPoolKinds == kGroupPool) return 64 << 10;
  return AgentOf(pool) == kHostAgent ? kHostBytes : TheControl().memory_bytes.load();
}

uint32_t FlagsOf(uint64_t pool) {
  if (pool % kPoolKinds == kArgumentPool)
    return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT |
           HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
  return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
}

hsa_amd_memory_pool_access_t AccessTo(uint64_t pool, uint64_t agent) {
  if (AgentOf(pool) == agent) return HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT;
  const bool host = AgentOf(pool) == kHostAgent;
  const bool reached = host || (agent != kHostAgent && TheControl().peers);
  return reached ? HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT
                 : HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
}

template <typename Value>
hsa_status_t GivePool(void* to, Value value) {
  std::memcpy(to, &value, sizeof(value));
  return HSA_STATUS_SUCCESS;
}

}  // namespace

const Block* FindBlock(const void* memory, uint64_t bytes) {
  const auto& blocks = TheRuntime().blocks;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return nullptr;
  const auto& [begin, block] = *--after;
  const bool inside = address - begin <= block.bytes && bytes <= block.bytes - (address - begin);
  return inside ? &block : nullptr;
}

void RunCopies() {
  Runtime& runtime = TheRuntime();
  std::unique_lock lock(runtime.mutex);
  while (!runtime.stopping || !runtime.copies.empty()) {
    // The last one that may begin, so that only requested orders are kept.
    const auto ready =
        std::find_if(runtime.copies.rbegin(), runtime.copies.rend(),
                     [](const CopyTask& task) { return AreZero(task.dependencies); });
    if (ready == runtime.copies.rend()) {
      if (runtime.stopping) return;
      runtime.changed.wait(lock);
      continue;
    }
    const CopyTask task = *ready;
    runtime.copies.erase(std::next(ready).base());
    lock.unlock();
    const uint64_t begin = Ticks();
    std::memcpy(task.to, task.from, task.bytes);
    TheControl().time.HasCopied();
    const uint64_t end = std::max(Ticks(), begin + 1);
    lock.lock();
    ++TheControl().copies_run;
    CountDown(task.completion, begin, end, /*dispatched=*/false, runtime.copies_timed);
  }
}

extern "C" {

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent,
                                                hsa_status_t (*callback)(hsa_amd_memory_pool_t pool,
                                                                         void* data),
                                                void* data) {
  hsa_status_t status = HSA_STATUS_SUCCESS;
  for (PoolKind kind : {kGroupPool, kArgumentPool, kCoarsePool}) {
    {
      std::unique_lock lock(TheRuntime().mutex);
      if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
      if (!IsPool(PoolOf(agent.handle, kind))) continue;
    }
    if (status == HSA_STATUS_SUCCESS) status = callback({PoolOf(agent.handle, kind)}, data);
  }
  return status;
}

hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool,
                                          hsa_amd_memory_pool_info_t attribute, void* value) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (!IsPool(pool.handle))
    return Mistake("information on a pool that is none", HSA_STATUS_ERROR_INVALID_MEMORY_POOL);
  const bool group = pool.handle % kPoolKinds == kGroupPool;
  switch (attribute) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
      return GivePool(value, group ? HSA_AMD_SEGMENT_GROUP : HSA_AMD_SEGMENT_GLOBAL);
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
      if (group) return Mistake("flags of group memory", HSA_STATUS_ERROR_INVALID_ARGUMENT);
      return GivePool(value, FlagsOf(pool.handle));
    case HSA_AMD_MEMORY_POOL_INFO_SIZE:
      return GivePool(value, static_cast<size_t>(SizeOf(pool.handle)));
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
      return GivePool(value, !group);
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool,
                                                hsa_amd_agent_memory_pool_info_t attribute,
                                                void* value) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (!IsAgent(agent.handle) || !IsPool(pool.handle) ||
      attribute != HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS)
    return Mistake("access of no agent to no pool", HSA_STATUS_ERROR_INVALID_ARGUMENT);
  return GivePool(value, AccessTo(pool.handle, agent.handle));
}

hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t bytes, uint32_t flags,
                                          void** memory) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (!IsPool(pool.handle) || pool.handle % kPoolKinds == kGroupPool || flags != 0 || bytes == 0)
    return Mistake("an allocation of " + std::to_string(bytes) + " bytes with flags " +
                       std::to_string(flags) + " from a pool that does not give them",
                   HSA_STATUS_ERROR_INVALID_ARGUMENT);
  // In whole pages, as in the kernel driver, followed by an inaccessible page.
  const uint64_t whole = (bytes + kPage - 1) / kPage * kPage;
  int64_t& allocated = TheRuntime().allocated[pool.handle];
  const bool device = AgentOf(pool.handle) != kHostAgent;
  if ((device && TheControl().out_of_memory) ||
      allocated + static_cast<int64_t>(whole) > SizeOf(pool.handle))
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  void* mapped = mmap(nullptr, whole + kPage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  mprotect(static_cast<char*>(mapped) + whole, kPage, PROT_NONE);
  std::memset(mapped, kUnwritten, whole);
  allocated += static_cast<int64_t>(whole);
  TheRuntime().blocks[reinterpret_cast<uintptr_t>(mapped)] = {.bytes = whole,
                                                              .mapped = whole + kPage,
                                                              .pool = pool.handle,
                                                              .agents = {AgentOf(pool.handle)}};
  ++TheControl().objects;
  *memory = mapped;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_pool_free(void* memory) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  auto& blocks = TheRuntime().blocks;
  const auto found = blocks.find(reinterpret_cast<uintptr_t>(memory));
  if (found == blocks.end())
    return Mistake("memory is freed that was not allocated", HSA_STATUS_ERROR_INVALID_ALLOCATION);
  TheRuntime().allocated[found->second.pool] -= static_cast<int64_t>(found->second.mapped - kPage);
  munmap(memory, found->second.mapped);
  blocks.erase(found);
  --TheControl().objects;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_agents_allow_access(uint32_t count, const hsa_agent_t* agents,
                                         const uint32_t* flags, const void* memory) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  const auto found = TheRuntime().blocks.find(reinterpret_cast<uintptr_t>(memory));
  if (found == TheRuntime().blocks.end() || count == 0 || flags != nullptr)
    return Mistake("access to memory that was not allocated", HSA_STATUS_ERROR_INVALID_ARGUMENT);
  // Agents that are not named lose access, except the owner.
  std::set<uint64_t> let_in = {AgentOf(found->second.pool)};
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t agent = agents[i].handle;
    if (!IsAgent(agent) ||
        AccessTo(found->second.pool, agent) == HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED)
      return Mistake("access for an agent that cannot have it", HSA_STATUS_ERROR_INVALID_AGENT);
    let_in.insert(agent);
  }
  found->second.agents = std::move(let_in);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_async_copy(void* to, hsa_agent_t to_agent, const void* from,
                                       hsa_agent_t from_agent, size_t bytes,
                                       uint32_t dependency_count, const hsa_signal_t* dependencies,
                                       hsa_signal_t completion) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (const int code = TheControl().next_copy_fails.exchange(0))
    return static_cast<hsa_status_t>(code);
  const Block* target = FindBlock(to, bytes);
  const Block* source = FindBlock(from, bytes);
  if (bytes == 0 || target == nullptr || source == nullptr)
    return Mistake("a copy of " + std::to_string(bytes) + " bytes that are not one allocation's",
                   HSA_STATUS_ERROR_INVALID_ARGUMENT);
  // One of the two agents makes the copy.
  const auto reaches = [&](hsa_agent_t agent) {
    return agent.handle != kHostAgent && target->agents.contains(agent.handle) &&
           source->agents.contains(agent.handle);
  };
  if (!IsAgent(to_agent.handle) || !IsAgent(from_agent.handle) ||
      !(reaches(to_agent) || reaches(from_agent)))
    return Mistake("a copy between memory that neither agent may use both of",
                   HSA_STATUS_ERROR_INVALID_AGENT);
  CopyTask task = {to, from, bytes, {}, completion.handle};
  for (uint32_t i = 0; i < dependency_count; ++i) {
    if (!IsSignalOrNone(dependencies[i], "a copy's dependency"))
      return HSA_STATUS_ERROR_INVALID_SIGNAL;
    task.dependencies.push_back(dependencies[i].handle);
  }
  if (completion.handle == 0 || !IsSignalOrNone(completion, "a copy's completion"))
    return Mistake("a copy that nobody can wait for", HSA_STATUS_ERROR_INVALID_SIGNAL);
  TheRuntime().copies.push_back(std::move(task));
  TheRuntime().changed.notify_all();
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_fill(void* memory, uint32_t value, size_t count) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (FindBlock(memory, count * sizeof(value)) == nullptr ||
      reinterpret_cast<uintptr_t>(memory) % sizeof(value) != 0)
    return Mistake("a fill of memory that is not one allocation's",
                   HSA_STATUS_ERROR_INVALID_ARGUMENT);
  std::fill_n(static_cast<uint32_t*>(memory), count, value);
  return HSA_STATUS_SUCCESS;
}

}  // extern "C"

}  // namespace kiln::drivers::hsa
