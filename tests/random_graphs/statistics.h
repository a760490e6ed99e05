// Records what a run of random graphs has covered.
#ifndef KILN_TESTS_RANDOM_GRAPHS_STATISTICS_H_
#define KILN_TESTS_RANDOM_GRAPHS_STATISTICS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/random_graphs/trial.h"

namespace kiln::random_graphs {

class Statistics {
 public:
  void Add(const Trial& trial);

  uint64_t graphs() const { return graphs_; }
  uint64_t failures() const { return failures_; }
  uint64_t kernels() const { return kernels_; }
  // Rows of the table of ops that occurred in no graph.
  std::vector<std::string> MissingOps() const;
  std::string Summary() const;

 private:
  uint64_t graphs_ = 0;
  uint64_t failures_ = 0;
  uint64_t nodes_ = 0;
  uint64_t kernels_ = 0;
  uint64_t outputs_ = 0;
  uint64_t slopes_ = 0;
  size_t highest_nodes_ = 0;
  std::map<std::string, uint64_t> ops_;
  std::array<uint64_t, ir::kNumDTypes> dtypes_ = {};
  std::vector<double> tolerances_;  // of outputs in float32
};

}  // namespace kiln::random_graphs

#endif  // KILN_TESTS_RANDOM_GRAPHS_STATISTICS_H_
