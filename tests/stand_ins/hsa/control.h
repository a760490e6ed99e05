// A test's controls of the stand-in for libhsa-runtime64.so.1, and its counters.
#ifndef KILN_TESTS_STAND_INS_HSA_CONTROL_H_
#define KILN_TESTS_STAND_INS_HSA_CONTROL_H_

#include <atomic>
#include <cstdint>

#include "tests/stand_ins/asked.h"
#include "tests/stand_ins/device_time.h"
#include "tests/stand_ins/gate.h"
#include "tests/stand_ins/loss.h"

namespace kiln::stand_ins::hsa {

// One object for the process. Codes are hsa_status_t's, 0 for none.
// Queues of the lost device fail with `lost` at their next packet.
struct Control : Loss {
  // The hardware, for queries from now on.
  std::atomic<int> devices = DevicesAsked();  // at most 8
  std::atomic<const char*> isa = "amdgcn-amd-amdhsa--gfx1100:kiln-host-twin+";
  std::atomic<int> wave = 32;
  std::atomic<int> units = 4;
  std::atomic<int64_t> memory_bytes = int64_t{2} << 30;  // of each device
  std::atomic<int> queue_packets_max = 4096;
  std::atomic<bool> peers = PeersAsked();  // devices access each other's memory

  DeviceTime time;   // the times of signals
  Gate launch_gate;  // every kernel passes it before it runs

  // Faults.
  std::atomic<int> init_fails = 0;
  std::atomic<bool> out_of_memory = false;
  std::atomic<int> next_load_fails = 0;
  std::atomic<int> next_copy_fails = 0;    // the call's result, once
  std::atomic<int> next_launch_fails = 0;  // the queue fails with it

  // Counts.
  std::atomic<int64_t> kernels_run = 0;
  std::atomic<int64_t> barriers_run = 0;  // packets
  std::atomic<int64_t> copies_run = 0;
  std::atomic<int64_t> doorbells = 0;
  std::atomic<int64_t> side_by_side_max = 0;  // kernels without a barrier bit between them
  std::atomic<int64_t> signals_made = 0;      // in total
  std::atomic<int64_t> objects = 0;           // handles and memory that are not released
  std::atomic<int64_t> mistakes = 0;          // calls that the real runtime may not tolerate
};

}  // namespace kiln::stand_ins::hsa

// Looked up by name in the library.
extern "C" kiln::stand_ins::hsa::Control* KilnHsaStandInControl();
// Describes the last failed kernel, or the last mistake; valid until the next call.
extern "C" const char* KilnHsaStandInMessage();

#endif  // KILN_TESTS_STAND_INS_HSA_CONTROL_H_
