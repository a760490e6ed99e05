// The functions of the HSA runtime that Kiln uses (libhsa-runtime64.so.1). They are looked up at
// run time (library.h), never linked. The stand-in library defines them, so that the compiler
// checks both sides against the same declarations.
#ifndef KILN_DRIVERS_HSA_API_H_
#define KILN_DRIVERS_HSA_API_H_

#include "drivers/hsa/api_types.h"

namespace kiln::drivers::hsa {

// NOLINTBEGIN(readability-identifier-naming)

extern "C" {

// The runtime.
hsa_status_t hsa_init();
hsa_status_t hsa_shut_down();
hsa_status_t hsa_status_string(hsa_status_t status, const char** text);
hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void* value);

// Agents and their memory. Iterations continue while the callback returns success.
hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void* data),
                                void* data);
hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void* value);
hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent,
                                    hsa_status_t (*callback)(hsa_isa_t isa, void* data),
                                    void* data);
hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void* value);
hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent,
                                                hsa_status_t (*callback)(hsa_amd_memory_pool_t pool,
                                                                         void* data),
                                                void* data);
hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool,
                                          hsa_amd_memory_pool_info_t attribute, void* value);
hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool,
                                                hsa_amd_agent_memory_pool_info_t attribute,
                                                void* value);
hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t bytes, uint32_t flags,
                                          void** memory);
hsa_status_t hsa_amd_memory_pool_free(void* memory);
hsa_status_t hsa_amd_agents_allow_access(uint32_t count, const hsa_agent_t* agents,
                                         const uint32_t* flags, const void* memory);

// Copies begin when their dependencies are 0, and then decrement their signal.
hsa_status_t hsa_amd_memory_async_copy(void* to, hsa_agent_t to_agent, const void* from,
                                       hsa_agent_t from_agent, size_t bytes,
                                       uint32_t dependency_count, const hsa_signal_t* dependencies,
                                       hsa_signal_t completion);
// Fills with a 32-bit word; returns when it is done.
hsa_status_t hsa_amd_memory_fill(void* memory, uint32_t value, size_t count);

// Signals.
hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t consumer_count,
                               const hsa_agent_t* consumers, hsa_signal_t* signal);
hsa_status_t hsa_signal_destroy(hsa_signal_t signal);
hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal);
void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);
hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                             hsa_signal_value_t value, uint64_t timeout,
                                             hsa_wait_state_t state);

// Queues.
hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                              void (*callback)(hsa_status_t status, hsa_queue_t* queue, void* data),
                              void* data, uint32_t private_bytes, uint32_t group_bytes,
                              hsa_queue_t** queue);
hsa_status_t hsa_queue_destroy(hsa_queue_t* queue);
uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t* queue);
uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t* queue, uint64_t count);

// Code.
hsa_status_t hsa_code_object_reader_create_from_memory(const void* file, size_t bytes,
                                                       hsa_code_object_reader_t* reader);
hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader);
hsa_status_t hsa_executable_create_alt(hsa_profile_t profile,
                                       hsa_default_float_rounding_mode_t rounding,
                                       const char* options, hsa_executable_t* executable);
hsa_status_t hsa_executable_destroy(hsa_executable_t executable);
hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                   hsa_code_object_reader_t reader,
                                                   const char* options,
                                                   hsa_loaded_code_object_t* loaded);
hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char* options);
hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char* name,
                                               const hsa_agent_t* agent,
                                               hsa_executable_symbol_t* symbol);
hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t symbol,
                                            hsa_executable_symbol_info_t attribute, void* value);

// Times, in ticks of the system's clock.
hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t* queue, int enable);
hsa_status_t hsa_amd_profiling_async_copy_enable(bool enable);
hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t signal,
                                                 hsa_amd_profiling_dispatch_time_t* time);
hsa_status_t hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal,
                                                   hsa_amd_profiling_async_copy_time_t* time);

}  // extern "C"

// NOLINTEND(readability-identifier-naming)

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_API_H_
