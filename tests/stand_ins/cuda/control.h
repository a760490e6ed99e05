// How a test steers the stand-in for libcuda.so.1, and what it counts.
#ifndef KILN_TESTS_STAND_INS_CUDA_CONTROL_H_
#define KILN_TESTS_STAND_INS_CUDA_CONTROL_H_

#include <atomic>
#include <cstdint>

#include "tests/stand_ins/asked.h"
#include "tests/stand_ins/device_time.h"
#include "tests/stand_ins/gate.h"

namespace kiln::stand_ins::cuda {

// The whole process's. Codes are CUresult's, 0 for none.
struct Control {
  // What there is, for those who ask from now on.
  std::atomic<int> devices = DevicesAsked();  // at most 8
  std::atomic<int> driver_version = 13000;
  std::atomic<int> compute_capability = 80;
  std::atomic<int> units = 4;
  std::atomic<int64_t> memory_bytes = int64_t{2} << 30;  // of each device
  std::atomic<bool> peers = PeersAsked();                // devices reach each other's memory

  DeviceTime time;   // what events tell
  Gate launch_gate;  // every kernel passes it before it runs

  // Of each copy and fill, those that come first; the rest stays as it was.
  std::atomic<int64_t> bytes_moved_max = INT64_MAX;

  // Of a launch; see ptx::LaunchOptions.
  std::atomic<int64_t> branches_max = int64_t{1} << 30;
  std::atomic<bool> find_races = true;
  // In which order nodes of a graph run that no dependency orders; counted up by each launch.
  std::atomic<uint64_t> graph_seed = 1;

  // Faults.
  std::atomic<int> init_fails = 0;
  std::atomic<bool> out_of_memory = false;
  std::atomic<int> next_load_fails = 0;
  std::atomic<int> next_launch_refused = 0;  // the launch call's answer, once; a graph's as well
  std::atomic<int> next_launch_fails = 0;    // how the launch ends, once: an error that stays
  // Everything that is asked of this device, and what its streams still have to do, ends with
  // `lost`. It answers again when `lost` is 0 and its context was reset.
  std::atomic<int> lost = 0;
  std::atomic<int> lost_device = 0;
  // Once this device has run so many more kernels, `lost` becomes `lost_then`; 0: it does not.
  std::atomic<int> kernels_until_lost = 0;
  std::atomic<int> lost_then = 0;

  // Counts.
  std::atomic<int64_t> modules_loaded = 0;
  std::atomic<int64_t> kernels_run = 0;  // those of graphs as well
  std::atomic<int64_t> copies_run = 0;
  std::atomic<int64_t> fills_run = 0;
  std::atomic<int64_t> graph_nodes_added = 0;
  std::atomic<int64_t> graph_nodes_updated = 0;
  std::atomic<int64_t> graphs_launched = 0;
  std::atomic<int64_t> allocations = 0;  // ever made
  std::atomic<int64_t> objects = 0;      // handles and memory that are not released
  std::atomic<int64_t> mistakes = 0;     // calls that the real driver may not forgive
};

}  // namespace kiln::stand_ins::cuda

// Found by name in the library.
extern "C" kiln::stand_ins::cuda::Control* KilnCudaStandInControl();
// What the last kernel that failed did, or the last mistake: valid until the thread asks again.
extern "C" const char* KilnCudaStandInMessage();

#endif  // KILN_TESTS_STAND_INS_CUDA_CONTROL_H_
