// Mistakes that the application of a schedule could make, planted into loop programs one by one.
#ifndef KILN_TESTS_NUMERICS_PLANTED_FAULTS_H_
#define KILN_TESTS_NUMERICS_PLANTED_FAULTS_H_

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

// The program with a fault in it, `most` times at random places: of a store its index, the indices
// and conditions of what it loads, its own condition, and itself (left out, done twice); of a loop
// its bound; of a branch its condition and its sides. Copies of operands are such places, too.
std::vector<PlantedFault> PlantFaults(const schedule::LoopProgram& program, size_t most,
                                      std::mt19937& random);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_PLANTED_FAULTS_H_
