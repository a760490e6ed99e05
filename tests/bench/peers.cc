#include "tests/bench/peers.h"

#include <dlfcn.h>

#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"

namespace kiln::bench {
namespace {

constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;
constexpr int kTranspose = 112;

template <typename Function>
Function* Symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

absl::StatusOr<OpenBlas> OpenBlas::Load(int threads) {
  OpenBlas blas;
  blas.library_ = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (blas.library_ == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(dlerror(), "; deploy/dependencies --test installs OpenBLAS"));
  }
  Symbol<void(int)>(blas.library_, "openblas_set_num_threads")(threads);
  return blas;
}

void OpenBlas::Multiply(int m, int n, int k, const float* a, const float* b, float* c) const {
  static auto* gemm = Symbol<void(int, int, int, int, int, int, float, const float*, int,
                                  const float*, int, float, float*, int)>(library_, "cblas_sgemm");
  gemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, a, k, b, n, 0, c, n);
}

void OpenBlas::MultiplyRow(int n, int k, const float* a, const float* b, float* c) const {
  static auto* gemv = Symbol<void(int, int, int, int, float, const float*, int, const float*, int,
                                  float, float*, int)>(library_, "cblas_sgemv");
  gemv(kRowMajor, kTranspose, k, n, 1, b, n, a, 1, 0, c, 1);
}

std::string OpenBlas::core() const { return Symbol<char*()>(library_, "openblas_get_corename")(); }

ParallelCopy::ParallelCopy(int64_t bytes, int threads)
    : threads_(threads), from_(bytes, 1), to_(bytes, 2) {}

absl::Status ParallelCopy::Run(int times) {
  auto copy_part = [this, times](int part) {
    const size_t size = from_.size() / threads_;
    for (int i = 0; i < times; ++i)
      std::memcpy(to_.data() + part * size, from_.data() + part * size, size);
  };
  std::vector<std::thread> helpers;
  for (int part = 1; part < threads_; ++part) helpers.emplace_back(copy_part, part);
  copy_part(0);
  for (std::thread& helper : helpers) helper.join();
  return absl::OkStatus();
}

}  // namespace kiln::bench
