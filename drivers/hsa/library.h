// The functions of libhsa-runtime64.so.1, looked up at run time.
#ifndef KILN_DRIVERS_HSA_LIBRARY_H_
#define KILN_DRIVERS_HSA_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/common/dynamic_library.h"
#include "drivers/hsa/api.h"

namespace kiln::drivers::hsa {

// All functions that the driver calls, without the "hsa_" prefix.
#define KILN_HSA_FUNCTIONS(function)               \
  function(agent_get_info);                        \
  function(agent_iterate_isas);                    \
  function(amd_agent_iterate_memory_pools);        \
  function(amd_agent_memory_pool_get_info);        \
  function(amd_agents_allow_access);               \
  function(amd_memory_async_copy);                 \
  function(amd_memory_fill);                       \
  function(amd_memory_pool_allocate);              \
  function(amd_memory_pool_free);                  \
  function(amd_memory_pool_get_info);              \
  function(amd_profiling_async_copy_enable);       \
  function(amd_profiling_get_async_copy_time);     \
  function(amd_profiling_get_dispatch_time);       \
  function(amd_profiling_set_profiler_enabled);    \
  function(code_object_reader_create_from_memory); \
  function(code_object_reader_destroy);            \
  function(executable_create_alt);                 \
  function(executable_destroy);                    \
  function(executable_freeze);                     \
  function(executable_get_symbol_by_name);         \
  function(executable_load_agent_code_object);     \
  function(executable_symbol_get_info);            \
  function(init);                                  \
  function(isa_get_info_alt);                      \
  function(iterate_agents);                        \
  function(queue_add_write_index_relaxed);         \
  function(queue_create);                          \
  function(queue_destroy);                         \
  function(queue_load_read_index_scacquire);       \
  function(shut_down);                             \
  function(signal_create);                         \
  function(signal_destroy);                        \
  function(signal_load_scacquire);                 \
  function(signal_store_relaxed);                  \
  function(signal_store_screlease);                \
  function(signal_wait_scacquire);                 \
  function(status_string);                         \
  function(system_get_info)

// Called as `hsa.queue_destroy(queue)`. All functions are thread-safe.
struct Library : FunctionTable {
  using FunctionTable::FunctionTable;
  // Opens and initialises the library. NOT_FOUND: it is missing, lacks a function, or finds no
  // device; the message is one sentence with the remedy.
  static absl::StatusOr<std::shared_ptr<const Library>> Open(const std::string& name);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define KILN_HSA_POINTER(name) decltype(&hsa_##name) name = Find("hsa_" #name)
  KILN_HSA_FUNCTIONS(KILN_HSA_POINTER);
#undef KILN_HSA_POINTER
  bool initialised = false;
  double ticks_per_second = 1e9;  // of the system's clock
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_LIBRARY_H_
