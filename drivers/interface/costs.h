// What work costs on each kind of machine: a table with a row for each kind. The compiler's models
// compare ways to compute the same thing, so every struct has one unit and only ratios within it
// matter. None of it changes a result.
#ifndef KILN_DRIVERS_INTERFACE_COSTS_H_
#define KILN_DRIVERS_INTERFACE_COSTS_H_

#include <string>

namespace kiln::drivers {

// Which values are stored and which are computed again (compiler/partition). The unit: reading one
// element of a large tensor from memory.
struct StorageCosts {
  double operation = 0;  // an addition, comparison, conversion, … of one element
  double division = 0;   // a division, remainder or square root
  double transcendental = 0;
  double power = 0;
  double write = 0;  // of one element, with the line that it is read into first
};

// Along which axis lanes stand, and how work is cut into tasks (compiler/search), on machines with
// vector registers. The unit: one arithmetic instruction on a whole vector.
struct InstructionCosts {
  double broadcast = 0;      // loads one element for all lanes; mostly it is there already
  double load = 0;           // of neighbouring elements
  double store = 0;          // likewise
  double masked = 0;         // more, for a load or store of which some lanes are off
  double shuffled_load = 0;  // of every other element: two loads and their shuffle
  double gather = 0;
  double scatter = 0;
  double horizontal = 0;  // folds the lanes of a vector into one value
  double task_min = 0;    // work that is worth handing to another thread
  double task_max = 0;    // after which a thread should be free for somebody else's work
};

// Register tiles and packed panels of contractions (compiler/search), on machines with vector
// registers. The unit: a cycle.
struct ContractionCosts {
  // In one cycle: fused multiply-adds of whole vectors, and loads of vectors.
  double multiplies_per_cycle = 1;
  double loads_per_cycle = 1;
  double multiply_latency = 0;
  // What does not overlap in full: a step's counter and branch, each load, and each vector that
  // comes from the next cache.
  double step = 0;
  double load = 0;
  double far_vector = 0;
  // To copy one element: along the memory's order, and across it.
  double copy = 0;
  double copy_across = 0;
};

struct Costs {
  StorageCosts storage = {};
  InstructionCosts instructions = {};
  ContractionCosts contraction = {};

  // All numbers in their order: part of the kernel cache's key.
  std::string Key() const;
};

// What a device does in a second, and what it costs to hand it work. Estimates; nothing that is
// compiled depends on them.
struct Rates {
  // Of one compute unit by itself, for deciding whether others are worth waking.
  double unit_flops_per_second = 0;
  double unit_bytes_per_second = 0;
  // Of the whole device, for a program's predicted time until its first run.
  double flops_per_second = 0;
  double bytes_per_second = 0;
  double launch_seconds = 0;  // of a kernel in a replayed list, beside its work
  // Kernels that one compute unit runs in less time than this are left to it.
  double parallel_seconds_min = 0;
  // Work that a compute unit takes at once, at least.
  double chunk_seconds_min = 0;
};

// The table. A row names its fields, so that a reader sees what every number is.

// An out-of-order core with vector registers and caches of its own, of which a machine has several:
// x86-64 servers with AVX2 and AVX-512. The contraction costs were fitted to measured kernels, the
// others are estimates.
inline constexpr Costs kVectorCoreCosts = {
    .storage =
        {.operation = 0.03, .division = 0.15, .transcendental = 0.4, .power = 1, .write = 1.5},
    .instructions = {.broadcast = 0.25,
                     .load = 1,
                     .store = 2,
                     .masked = 0.5,
                     .shuffled_load = 4,
                     .gather = 20,
                     .scatter = 36,
                     .horizontal = 40,
                     // About two microseconds.
                     .task_min = 8000,
                     // About a millisecond.
                     .task_max = 4e6},
    .contraction = {.multiplies_per_cycle = 2,
                    .loads_per_cycle = 2,
                    .multiply_latency = 4,
                    .step = 0.4,
                    .load = 0.2,
                    .far_vector = 0.1,
                    .copy = 0.2,
                    .copy_across = 1.2},
};
// One core's share and a small server's whole, roughly. Waking a thread takes some microseconds.
inline constexpr Rates kVectorCoreRates = {
    .unit_flops_per_second = 30e9,
    .unit_bytes_per_second = 15e9,
    .flops_per_second = 50e9,
    .bytes_per_second = 10e9,
    .launch_seconds = 1e-6,
    .parallel_seconds_min = 15e-6,
    .chunk_seconds_min = 5e-6,
};

// A GPU: units that run thousands of threads each, which hide each other's waits, in subgroups that
// run in step. Estimates for those of servers and of workstations, from instruction tables: one
// that multiplies 20 times for each element that memory brings, or 150 times, differs in
// `operation` alone. Nothing is read before it is written, and correctly rounded division and
// functions are sequences of ordinary instructions. Blocks of threads are chosen by the device's
// limits, so only what is stored has costs.
inline constexpr Costs kGpuCosts = {
    .storage =
        {.operation = 0.02, .division = 0.25, .transcendental = 0.5, .power = 1.5, .write = 1},
};
// A small one's. Drivers put in what the device tells.
inline constexpr Rates kGpuRates = {
    .unit_flops_per_second = 200e9,
    .unit_bytes_per_second = 10e9,
    .flops_per_second = 4e12,
    .bytes_per_second = 200e9,
    .launch_seconds = 2e-6,
    // The device shares out its work by itself.
    .parallel_seconds_min = 1e-6,
    .chunk_seconds_min = 1e-6,
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_COSTS_H_
