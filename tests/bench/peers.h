// The implementations that Kiln's kernels are compared with.
#ifndef KILN_TESTS_BENCH_PEERS_H_
#define KILN_TESTS_BENCH_PEERS_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/measure.h"

namespace kiln::bench {

// Debian's libopenblas. OPENBLAS_CORETYPE selects its kernels when it is loaded.
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

// Copies a block with `threads` threads, each a part of it: with memcpy or with non-temporal
// stores, whichever is faster here. The C library decides by the sizes of the caches, which a
// virtual machine may misreport.
class ParallelCopy {
 public:
  ParallelCopy(int64_t bytes, int threads);  // bytes: a multiple of 64 * threads
  absl::Status Run(int times);

 private:
  using Copy = void (*)(char* to, const char* from, size_t bytes);
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<char, Free>;
  static Memory Allocate(int64_t bytes);
  void RunWith(Copy copy, int times);

  const int threads_;
  const size_t bytes_;
  const Memory from_;
  const Memory to_;
  Copy copy_;
};

}  // namespace kiln::bench

#endif  // KILN_TESTS_BENCH_PEERS_H_
