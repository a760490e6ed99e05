// Plants faults, which the application of a schedule could make, into loop programs, one at a time.
#ifndef KILN_TESTS_NUMERICS_KERNELS_PLANTED_FAULTS_H_
#define KILN_TESTS_NUMERICS_KERNELS_PLANTED_FAULTS_H_

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "compiler/schedule/loop_program.h"

namespace kiln::numerics {

struct PlantedFault {
  std::string what;  // "index of a load, one more; statement 3"
  schedule::LoopProgram program;
};

// Returns the program with one fault, for `faults_max` faults at random places. Of a store: its
// index, the indices and conditions of what it loads, its own condition, the store itself (omitted
// or repeated). Of a loop: its bound. Of a branch: its condition and its sides. Copies of operands
// are such places, too.
std::vector<PlantedFault> PlantFaults(const schedule::LoopProgram& program, size_t faults_max,
                                      std::mt19937& random);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_KERNELS_PLANTED_FAULTS_H_
