// The main loop of the fuzzers: makes inputs from consecutive seeds and checks each once. Uses no
// external engine; a failure can be repeated on any machine from the seed that it prints.
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

// The outcome for an input: a label to count ("accepted", "SHAPE_MISMATCH"), or a defect.
struct Outcome {
  std::string label;
  std::optional<std::string> defect;
};

// Makes an input from the generator and checks it. A crash counts as a defect, too: its seed is
// printed before the process ends.
using OneInput = std::function<Outcome(Random& random)>;

// Reads --inputs and --seed, runs the inputs, prints the count of each label. Returns the process's
// exit status: 0 if no input showed a defect and at least the fraction `accepted_min` of the
// inputs were "accepted" (otherwise the fuzzer tests only noise).
int Run(int argc, char** argv, double accepted_min, const OneInput& one_input);

// Returns a number in [0, n). Requires: n > 0.
size_t Below(Random& random, size_t n);
// Returns true with probability 1 / n.
bool OneIn(Random& random, size_t n);

}  // namespace kiln::fuzz

#endif  // KILN_TESTS_FUZZ_RUN_H_
