// The frame of the fuzzers: inputs made from consecutive seeds, one check each. No outside engine;
// a failure is repeated from the seed it prints, on any machine.
//
//   graph_decoder_fuzz --inputs 100000 --seed 1     runs seeds 1 … 100000
#ifndef KILN_TESTS_FUZZ_RUN_H_
#define KILN_TESTS_FUZZ_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

namespace kiln::fuzz {

using Random = std::mt19937_64;

// What one input came to: a label to count ("accepted", "SHAPE_MISMATCH"), or a defect.
struct Outcome {
  std::string label;
  std::optional<std::string> defect;
};

// Makes an input from the generator and checks it. A crash counts as a defect too: its seed is
// printed on the way down.
using OneInput = std::function<Outcome(Random& random)>;

// Reads --inputs and --seed, runs them, prints how often each label came. The process's exit
// status: 0 if no input showed a defect and at least `least_accepted` of the share of inputs were
// "accepted" (or else the fuzzer tests nothing but noise).
int Run(int argc, char** argv, double least_accepted, const OneInput& one_input);

// A number in [0, n); n > 0.
size_t Below(Random& random, size_t n);
// True once in n.
bool OneIn(Random& random, size_t n);

}  // namespace kiln::fuzz

#endif  // KILN_TESTS_FUZZ_RUN_H_
