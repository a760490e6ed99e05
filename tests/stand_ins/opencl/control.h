// How a test steers the stand-in for libOpenCL.so.1, and what it counts.
#ifndef KILN_TESTS_STAND_INS_OPENCL_CONTROL_H_
#define KILN_TESTS_STAND_INS_OPENCL_CONTROL_H_

#include <atomic>
#include <cstdint>

#include "tests/stand_ins/device_time.h"
#include "tests/stand_ins/gate.h"

namespace kiln::stand_ins::opencl {

// A kernel's run on the device: its parameters, addresses among them, and the memory that it was
// told of, both as they were when it was launched or recorded.
struct KernelRun {
  const uint64_t* parameters;
  int num_parameters;
  const void* const* named;
  int num_named;
};

// The whole process's. Codes are OpenCL's, 0 for none.
struct Control {
  // What there is, for those who ask from now on.
  std::atomic<bool> has_platform = true;
  std::atomic<int> gpus = 1;
  std::atomic<int> cpus = 1;
  std::atomic<bool> has_shared_virtual_memory = true;
  std::atomic<bool> reaches_all_memory = false;  // the host's too, by any address
  std::atomic<bool> gpus_share_memory = false;   // the host's
  std::atomic<int> driver_version = 1;           // of the vendor's driver
  std::atomic<bool> gives_binaries = true;
  // Which binaries a program is made from: those that have the same number.
  std::atomic<int> binary_form = 1;

  // cl_khr_command_buffer, and its CL_DEVICE_COMMAND_BUFFER_… values.
  std::atomic<bool> has_command_buffers = false;
  std::atomic<uint64_t> command_buffer_capabilities = 0;
  std::atomic<uint64_t> required_queue_properties = 0;
  std::atomic<int> recorded_launches_max = 1 << 20;  // in one command buffer

  // What a kernel does, whatever its source says; nothing if null. On the queue's thread.
  std::atomic<void (*)(const KernelRun&)> kernel = nullptr;
  DeviceTime time;   // what events tell
  Gate launch_gate;  // every launch passes it before it runs
  // How many threads wait for events and queues that have not ended.
  std::atomic<int> waiting = 0;

  // Faults.
  std::atomic<bool> out_of_memory = false;
  std::atomic<int> next_launch_refused = 0;  // the launch call's answer, once
  std::atomic<int> next_launch_fails = 0;    // how the launch ends, once
  std::atomic<int> finalize_refused = 0;     // the answer to every clFinalizeCommandBufferKHR
  std::atomic<int> next_buffer_refused = 0;  // the answer to clEnqueueCommandBufferKHR, once
  std::atomic<int> next_buffer_fails = 0;    // how a command buffer ends, once
  std::atomic<bool> lost = false;            // nothing runs any more, on any device
  std::atomic<bool> unplugged = false;       // no device is available
  // What the compiler does at sources that have these words in them; null: nothing.
  std::atomic<const char*> aborts_at = nullptr;
  std::atomic<const char*> spins_at = nullptr;
  std::atomic<const char*> eats_memory_at = nullptr;

  // Counts.
  std::atomic<int64_t> sources_built = 0;
  std::atomic<int64_t> binaries_built = 0;
  std::atomic<int64_t> arguments_set = 0;
  std::atomic<int64_t> memory_named = 0;  // calls that tell a kernel of memory
  std::atomic<int64_t> copies = 0;
  std::atomic<int64_t> kernels_made = 0;
  std::atomic<int64_t> launches = 0;           // that were run, recorded or not
  std::atomic<int64_t> launches_enqueued = 0;  // one by one
  std::atomic<int64_t> launches_recorded = 0;
  std::atomic<int64_t> buffers_made = 0;  // command buffers
  std::atomic<int64_t> buffers_enqueued = 0;
  std::atomic<int64_t> misuses = 0;  // what the extension forbids, each of which is an error, too
  std::atomic<int64_t> objects = 0;  // of OpenCL's, and blocks of memory, that are not released
};

}  // namespace kiln::stand_ins::opencl

// Found by name in the library.
extern "C" kiln::stand_ins::opencl::Control* KilnOpenClStandInControl();

#endif  // KILN_TESTS_STAND_INS_OPENCL_CONTROL_H_
