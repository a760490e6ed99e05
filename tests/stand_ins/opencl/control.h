// A test's controls of the stand-in for libOpenCL.so.1, and its counters.
#ifndef KILN_TESTS_STAND_INS_OPENCL_CONTROL_H_
#define KILN_TESTS_STAND_INS_OPENCL_CONTROL_H_

#include <atomic>
#include <cstdint>

#include "tests/stand_ins/device_time.h"
#include "tests/stand_ins/gate.h"

namespace kiln::stand_ins::opencl {

// A kernel's run on the device: its parameters, including addresses, and the memory named to it, as
// of its launch or recording.
struct KernelRun {
  const uint64_t* parameters;
  int num_parameters;
  const void* const* named;
  int num_named;
};

// One object for the process. Codes are OpenCL's, 0 for none.
struct Control {
  // The hardware, for queries from now on.
  std::atomic<bool> has_platform = true;
  std::atomic<int> gpus = 1;
  std::atomic<int> cpus = 1;
  std::atomic<bool> has_shared_virtual_memory = true;
  std::atomic<bool> reaches_all_memory = false;  // also the host's, by any address
  std::atomic<bool> gpus_share_memory = false;   // with the host
  std::atomic<int> driver_version = 1;           // of the vendor's driver
  std::atomic<bool> gives_binaries = true;
  // A program can only be made from binaries with the same number.
  std::atomic<int> binary_form = 1;

  // cl_khr_command_buffer, and its CL_DEVICE_COMMAND_BUFFER_… values.
  std::atomic<bool> has_command_buffers = false;
  std::atomic<uint64_t> command_buffer_capabilities = 0;
  std::atomic<uint64_t> required_queue_properties = 0;
  std::atomic<int> recorded_launches_max = 1 << 20;  // in one command buffer

  // The effect of every kernel, whatever its source says; null: none. Called on the queue's thread.
  std::atomic<void (*)(const KernelRun&)> kernel = nullptr;
  DeviceTime time;   // the times of events
  Gate launch_gate;  // every launch passes it before it runs
  // The number of threads that wait for events and queues.
  std::atomic<int> waiting = 0;

  // Faults.
  std::atomic<bool> out_of_memory = false;
  std::atomic<int> next_launch_refused = 0;  // the launch call's result, once
  std::atomic<int> next_launch_fails = 0;    // the launch's result, once
  std::atomic<int> finalize_refused = 0;     // the result of every clFinalizeCommandBufferKHR
  std::atomic<int> next_buffer_refused = 0;  // the result of clEnqueueCommandBufferKHR, once
  std::atomic<int> next_buffer_fails = 0;    // the result of a command buffer, once
  std::atomic<bool> lost = false;            // nothing runs any more, on any device
  std::atomic<bool> unplugged = false;       // no device is available
  // Faults of the compiler at sources that contain these words; null: none.
  std::atomic<const char*> aborts_at = nullptr;
  std::atomic<const char*> spins_at = nullptr;
  std::atomic<const char*> eats_memory_at = nullptr;

  // Counts.
  std::atomic<int64_t> sources_built = 0;
  std::atomic<int64_t> binaries_built = 0;
  std::atomic<int64_t> arguments_set = 0;
  std::atomic<int64_t> memory_named = 0;  // calls that name memory to a kernel
  std::atomic<int64_t> copies = 0;
  std::atomic<int64_t> kernels_made = 0;
  std::atomic<int64_t> launches = 0;           // that ran, recorded or not
  std::atomic<int64_t> launches_enqueued = 0;  // one by one
  std::atomic<int64_t> launches_recorded = 0;
  std::atomic<int64_t> buffers_made = 0;  // command buffers
  std::atomic<int64_t> buffers_enqueued = 0;
  std::atomic<int64_t> mistakes = 0;  // errors that the extension forbids
  std::atomic<int64_t> objects = 0;  // OpenCL objects and memory blocks not released
};

}  // namespace kiln::stand_ins::opencl

// Found by name in the library.
extern "C" kiln::stand_ins::opencl::Control* KilnOpenClStandInControl();

#endif  // KILN_TESTS_STAND_INS_OPENCL_CONTROL_H_
