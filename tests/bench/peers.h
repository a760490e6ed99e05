// What Kiln's kernels are measured against.
#ifndef KILN_TESTS_BENCH_PEERS_H_
#define KILN_TESTS_BENCH_PEERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/measure.h"

namespace kiln::bench {

// Debian's libopenblas. Which kernels it takes is decided by OPENBLAS_CORETYPE when it is loaded.
class OpenBlas {
 public:
  static absl::StatusOr<OpenBlas> Load(int threads);
  // c (m x n) = a (m x k) * b (k x n), row-major, by sgemm.
  void Multiply(int m, int n, int k, const float* a, const float* b, float* c) const;
  // The same for m = 1, by sgemv.
  void MultiplyRow(int n, int k, const float* a, const float* b, float* c) const;
  std::string core() const;

 private:
  void* library_ = nullptr;
};

// Copies a block with as many threads as asked for, each its part with memcpy.
class ParallelCopy {
 public:
  ParallelCopy(int64_t bytes, int threads);
  absl::Status Run(int times);

 private:
  const int threads_;
  std::vector<char> from_;
  std::vector<char> to_;
};

}  // namespace kiln::bench

#endif  // KILN_TESTS_BENCH_PEERS_H_
