// A test's controls of the stand-in for libze_loader.so.1, and its counters.
#ifndef KILN_TESTS_STAND_INS_LEVEL_ZERO_CONTROL_H_
#define KILN_TESTS_STAND_INS_LEVEL_ZERO_CONTROL_H_

#include <atomic>
#include <cstdint>

#include "tests/stand_ins/asked.h"
#include "tests/stand_ins/device_time.h"
#include "tests/stand_ins/gate.h"
#include "tests/stand_ins/loss.h"

namespace kiln::stand_ins::level_zero {

// One object for the process. Codes are ze_result_t's, 0 for none.
// Every call for the lost device fails with `lost`, and so does the pending work of its queues. For
// contexts that have seen the loss, the device stays lost permanently, and their host memory with
// it.
struct Control : Loss {
  // Kernels are not run by an OpenCL runtime: each adds 1 to the first 32-bit number of its last
  // argument. Set this before zeInit, which otherwise fails if there is no such runtime.
  std::atomic<bool> host_kernels = false;

  // The hardware, for queries from now on.
  std::atomic<int> devices = DevicesAsked();  // at most 4
  std::atomic<bool> integrated = false;
  std::atomic<bool> fp64 = true;
  std::atomic<bool> copy_queues = true;  // has a group of copy-only queues
  std::atomic<int> driver_version = 1;
  std::atomic<int> spirv_minor = 4;
  std::atomic<int64_t> memory_bytes = int64_t{2} << 30;  // of each device
  std::atomic<int64_t> allocation_bytes_max = int64_t{1} << 30;
  std::atomic<int> block_threads_max = 1024;  // of kernels, as built
  std::atomic<bool> gives_binaries = true;

  DeviceTime time;   // the times of events
  Gate launch_gate;  // every launch and fill passes it before it runs
  // Selects the order of commands without a barrier between them; incremented by each list that
  // runs.
  std::atomic<uint64_t> order_seed = 1;

  // Faults.
  std::atomic<int> init_fails = 0;
  std::atomic<bool> out_of_memory = false;
  std::atomic<bool> next_build_fails = false;
  std::atomic<int> next_execution_refused = 0;  // the call's result, once
  std::atomic<int> next_append_refused = 0;     // a launch's result, once

  // Counts.
  std::atomic<int64_t> modules_built = 0;    // of SPIR-V
  std::atomic<int64_t> binaries_loaded = 0;  // of native modules
  std::atomic<int64_t> kernels_run = 0;
  std::atomic<int64_t> copies_run = 0;
  std::atomic<int64_t> fills_run = 0;
  std::atomic<int64_t> executions = 0;         // calls
  std::atomic<int64_t> commands_appended = 0;  // including barriers
  std::atomic<int64_t> arguments_set = 0;
  std::atomic<int64_t> objects = 0;   // handles and memory that are not released
  std::atomic<int64_t> mistakes = 0;  // calls that the real driver may not tolerate
};

}  // namespace kiln::stand_ins::level_zero

// Looked up by name in the library.
extern "C" kiln::stand_ins::level_zero::Control* KilnLevelZeroStandInControl();
// Describes the last mistake, or why a kernel did not run; valid until the thread's next call of
// this.
extern "C" const char* KilnLevelZeroStandInMessage();

#endif  // KILN_TESTS_STAND_INS_LEVEL_ZERO_CONTROL_H_
