// Costs of work on each kind of machine: a table with one row for each kind. The compiler's models
// compare ways to compute the same thing, so each struct has one unit and only ratios within it
// matter. No cost changes a result.
#ifndef KILN_DRIVERS_INTERFACE_COSTS_H_
#define KILN_DRIVERS_INTERFACE_COSTS_H_

#include <string>

namespace kiln::drivers {

// Costs for deciding which values are stored and which are recomputed (compiler/partition). Unit:
// reading one element of a large tensor from memory.
struct StorageCosts {
  double operation = 0;  // an addition, comparison, conversion, … of one element
  double division = 0;   // a division, remainder or square root
  double transcendental = 0;
  double power = 0;
  double write = 0;  // of one element, including the read of its cache line
};

// Costs for choosing the vectorized axis and the task size (compiler/search), on machines with
// vector registers. Unit: one arithmetic instruction on a whole vector.
struct InstructionCosts {
  double broadcast = 0;      // of one element to all lanes; usually it is in a register
  double load = 0;           // of consecutive elements
  double store = 0;          // of consecutive elements
  double masked = 0;         // extra cost of a load or store with some lanes off
  double shuffled_load = 0;  // of every other element: two loads and their shuffle
  double gather = 0;
  double scatter = 0;
  double horizontal = 0;  // reduces the lanes of a vector to one value
  double task_min = 0;    // the least work worth handing to another thread
  double task_max = 0;    // the most work before a thread should be free for other users
};

// Costs of register tiles and packed panels of contractions (compiler/search), on machines with
// vector registers. Unit: a cycle.
struct ContractionCosts {
  // Throughput in one cycle: fused multiply-adds of whole vectors, and loads of vectors.
  double multiplies_per_cycle = 1;
  double loads_per_cycle = 1;
  double multiply_latency = 0;
  // Costs that do not fully overlap: a step's counter and branch, each load, and each vector that
  // comes from the next cache level.
  double step = 0;
  double load = 0;
  double far_vector = 0;
  // Copying one element: in memory order, and across it (transposing).
  double copy = 0;
  double copy_across = 0;
};

struct Costs {
  StorageCosts storage = {};
  InstructionCosts instructions = {};
  ContractionCosts contraction = {};

  // All numbers in order; part of the kernel cache's key.
  std::string Key() const;
};

// Throughput of a device and the overhead of launching work. Estimates; compiled code does not
// depend on them.
struct Rates {
  // For one compute unit alone; decides whether waking others is worth it.
  double unit_flops_per_second = 0;
  double unit_bytes_per_second = 0;
  // Of the whole device; predicts a program's time until its first run.
  double flops_per_second = 0;
  double bytes_per_second = 0;
  double launch_seconds = 0;  // per kernel in a replayed list, in addition to its work
  // Kernels that one compute unit runs in less time than this stay on one unit.
  double parallel_seconds_min = 0;
  // The smallest amount of work that a compute unit takes at once.
  double chunk_seconds_min = 0;
};

// The table. Each row names its fields.

// An out-of-order core with vector registers and private caches, one of several in the machine:
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
// Roughly one core's share, and the total of a small server. Waking a thread takes some
// microseconds.
inline constexpr Rates kVectorCoreRates = {
    .unit_flops_per_second = 30e9,
    .unit_bytes_per_second = 15e9,
    .flops_per_second = 50e9,
    .bytes_per_second = 10e9,
    .launch_seconds = 1e-6,
    .parallel_seconds_min = 15e-6,
    .chunk_seconds_min = 5e-6,
};

// A GPU: units that run thousands of threads each, which hide memory latency, in subgroups that run
// in lockstep. Estimates for server and workstation GPUs, from instruction tables. A GPU that does
// 20 multiplications per element read from memory and one that does 150 differ only in `operation`.
// A write does not read its cache line first. Correctly rounded division and functions are
// sequences of ordinary instructions. Blocks of threads are chosen by the device's limits, so only
// storage has costs.
inline constexpr Costs kGpuCosts = {
    .storage =
        {.operation = 0.02, .division = 0.25, .transcendental = 0.5, .power = 1.5, .write = 1},
};
// A small GPU. Drivers replace fields that the device reports.
inline constexpr Rates kGpuRates = {
    .unit_flops_per_second = 200e9,
    .unit_bytes_per_second = 10e9,
    .flops_per_second = 4e12,
    .bytes_per_second = 200e9,
    .launch_seconds = 2e-6,
    // The device distributes its work itself.
    .parallel_seconds_min = 1e-6,
    .chunk_seconds_min = 1e-6,
};

// kGpuRates with what a device reports of its totals; 0: it does not.
Rates GpuRates(double flops_per_second, double bytes_per_second, int units);

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_COSTS_H_
