// How a test steers the stand-in for libOpenCL.so.1, and what it counts.
#ifndef KILN_TESTS_STAND_INS_OPENCL_CONTROL_H_
#define KILN_TESTS_STAND_INS_OPENCL_CONTROL_H_

#include <atomic>
#include <cstdint>

namespace kiln::stand_ins::opencl {

// The whole process's. Codes are OpenCL's, 0 for none.
struct Control {
  // What there is, for those who ask from now on.
  std::atomic<bool> has_platform = true;
  std::atomic<int> gpus = 1;
  std::atomic<int> cpus = 1;
  std::atomic<bool> has_shared_virtual_memory = true;
  std::atomic<bool> reaches_all_memory = false;  // the host's too, by any address
  std::atomic<bool> gpus_share_memory = false;   // the host's

  // How long a launch takes.
  std::atomic<int> launch_milliseconds = 0;

  // Faults.
  std::atomic<bool> out_of_memory = false;
  std::atomic<int> next_launch_refused = 0;  // the launch call's answer, once
  std::atomic<int> next_launch_fails = 0;    // how the launch ends, once
  std::atomic<bool> lost = false;            // nothing runs any more, on any device
  std::atomic<bool> unplugged = false;       // no device is available

  // Counts.
  std::atomic<int64_t> arguments_set = 0;
  std::atomic<int64_t> memory_named = 0;  // calls that tell a kernel of memory
  std::atomic<int64_t> copies = 0;
  std::atomic<int64_t> kernels_made = 0;
  std::atomic<int64_t> launches = 0;
  std::atomic<int64_t> objects = 0;  // of OpenCL's, and blocks of memory, that are not released
};

}  // namespace kiln::stand_ins::opencl

// Found by name in the library.
extern "C" kiln::stand_ins::opencl::Control* KilnOpenClStandInControl();

#endif  // KILN_TESTS_STAND_INS_OPENCL_CONTROL_H_
