// How a test steers the stand-in for libze_loader.so.1, and what it counts.
#ifndef KILN_TESTS_STAND_INS_LEVEL_ZERO_CONTROL_H_
#define KILN_TESTS_STAND_INS_LEVEL_ZERO_CONTROL_H_

#include <atomic>
#include <cstdint>

#include "tests/stand_ins/asked.h"
#include "tests/stand_ins/device_time.h"
#include "tests/stand_ins/gate.h"

namespace kiln::stand_ins::level_zero {

// The whole process's. Codes are ze_result_t's, 0 for none.
struct Control {
  // Kernels are not run by an OpenCL runtime: each adds 1 to the first 32-bit number of its last
  // argument. To be set before zeInit, which else fails where there is no such runtime.
  std::atomic<bool> host_kernels = false;

  // What there is, for those who ask from now on.
  std::atomic<int> devices = DevicesAsked();  // at most 4
  std::atomic<bool> integrated = false;
  std::atomic<bool> fp64 = true;
  std::atomic<bool> copy_queues = true;  // a group of queues that copy alone
  std::atomic<int> driver_version = 1;
  std::atomic<int> spirv_minor = 4;
  std::atomic<int64_t> memory_bytes = int64_t{2} << 30;  // of each device
  std::atomic<int64_t> allocation_bytes_max = int64_t{1} << 30;
  std::atomic<int> block_threads_max = 1024;  // of kernels, as they were built
  std::atomic<bool> gives_binaries = true;

  DeviceTime time;  // what events tell
  Gate gate;        // every launch and fill passes it before it runs
  // In which order commands run that no barrier orders; counted up by each list that runs.
  std::atomic<uint64_t> order_seed = 1;

  // Faults.
  std::atomic<int> init_fails = 0;
  std::atomic<bool> out_of_memory = false;
  std::atomic<bool> next_build_fails = false;
  std::atomic<int> next_execution_refused = 0;  // the call's answer, once
  std::atomic<int> next_append_refused = 0;     // a launch's, once
  // Everything that is asked of this device ends with `lost`, and so does what its queues still
  // have to do. For contexts that have met it the device stays so for ever, and their memory of the
  // host with it.
  std::atomic<int> lost = 0;
  std::atomic<int> lost_device = 0;
  // Once this device has run so many more kernels, `lost` becomes `lost_then`; 0: it does not.
  std::atomic<int> kernels_until_lost = 0;
  std::atomic<int> lost_then = 0;

  // Counts.
  std::atomic<int64_t> modules_built = 0;    // of SPIR-V
  std::atomic<int64_t> binaries_loaded = 0;  // of native modules
  std::atomic<int64_t> kernels_run = 0;
  std::atomic<int64_t> copies_run = 0;
  std::atomic<int64_t> fills_run = 0;
  std::atomic<int64_t> executions = 0;         // calls
  std::atomic<int64_t> commands_appended = 0;  // barriers as well
  std::atomic<int64_t> arguments_set = 0;
  std::atomic<int64_t> objects = 0;   // handles and memory that are not released
  std::atomic<int64_t> mistakes = 0;  // calls that the real driver may not forgive
};

}  // namespace kiln::stand_ins::level_zero

// Found by name in the library.
extern "C" kiln::stand_ins::level_zero::Control* KilnLevelZeroStandInControl();
// What the last mistake was, or why a kernel did not run: valid until the thread asks again.
extern "C" const char* KilnLevelZeroStandInMessage();

#endif  // KILN_TESTS_STAND_INS_LEVEL_ZERO_CONTROL_H_
