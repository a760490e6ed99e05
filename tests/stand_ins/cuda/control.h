// A test's controls of the stand-in for libcuda.so.1, and its counters.
#ifndef KILN_TESTS_STAND_INS_CUDA_CONTROL_H_
#define KILN_TESTS_STAND_INS_CUDA_CONTROL_H_

#include <atomic>
#include <cstdint>

#include "tests/stand_ins/asked.h"
#include "tests/stand_ins/device_time.h"
#include "tests/stand_ins/gate.h"
#include "tests/stand_ins/loss.h"

namespace kiln::stand_ins::cuda {

// One object for the process. Codes are CUresult's, 0 for none.
// Every call for the lost device, and the pending work of its streams, fails with `lost`. It works
// again when `lost` is 0 and its context was reset.
struct Control : Loss {
  // The hardware, for queries from now on.
  std::atomic<int> devices = DevicesAsked();  // at most 8
  std::atomic<int> driver_version = 13000;
  std::atomic<int> compute_capability = 80;
  std::atomic<int> units = 4;
  std::atomic<int64_t> memory_bytes = int64_t{2} << 30;  // of each device
  std::atomic<bool> peers = PeersAsked();                // devices access each other's memory

  DeviceTime time;   // the times of events
  Gate launch_gate;  // every kernel passes it before it runs

  // Only the first bytes of each copy and fill are written; the rest is left unchanged.
  std::atomic<int64_t> bytes_moved_max = INT64_MAX;

  // For launches; see ptx::LaunchOptions.
  std::atomic<int64_t> branches_max = int64_t{1} << 30;
  std::atomic<bool> find_races = true;
  // Selects the order of unordered nodes in a graph; incremented by each launch.
  std::atomic<uint64_t> graph_seed = 1;

  // Faults.
  std::atomic<int> init_fails = 0;
  std::atomic<bool> out_of_memory = false;
  std::atomic<int> next_load_fails = 0;
  std::atomic<int> next_launch_refused = 0;  // the launch call's result, once; also a graph's
  std::atomic<int> next_launch_fails = 0;    // the launch's result, once: a sticky error

  // Counts.
  std::atomic<int64_t> modules_loaded = 0;
  std::atomic<int64_t> kernels_run = 0;  // including those of graphs
  std::atomic<int64_t> copies_run = 0;
  std::atomic<int64_t> fills_run = 0;
  std::atomic<int64_t> graph_nodes_added = 0;
  std::atomic<int64_t> graph_nodes_updated = 0;
  std::atomic<int64_t> graphs_launched = 0;
  std::atomic<int64_t> allocations = 0;  // in total
  std::atomic<int64_t> objects = 0;      // handles and memory that are not released
  std::atomic<int64_t> mistakes = 0;     // calls that the real driver may not tolerate
};

}  // namespace kiln::stand_ins::cuda

// Looked up by name in the library.
extern "C" kiln::stand_ins::cuda::Control* KilnCudaStandInControl();
// Describes the last failed kernel, or the last mistake; valid until the thread's next call of
// this.
extern "C" const char* KilnCudaStandInMessage();

#endif  // KILN_TESTS_STAND_INS_CUDA_CONTROL_H_
