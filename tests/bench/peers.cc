#include "tests/bench/peers.h"

#include <dlfcn.h>
#include <emmintrin.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"

namespace kiln::bench {
namespace {

// CblasRowMajor, CblasNoTrans and CblasTrans from cblas.h, which need not be installed.
constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;
constexpr int kTranspose = 112;

template <typename Function>
Function* Symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

void CopyCached(char* to, const char* from, size_t bytes) { std::memcpy(to, from, bytes); }

// Copies a whole cache line of 64 bytes in each step.
void CopyStreamed(char* to, const char* from, size_t bytes) {
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* target = reinterpret_cast<__m128i*>(to);
  for (size_t i = 0; i < bytes / sizeof(__m128i); i += 4) {
    const __m128i a = _mm_load_si128(source + i);
    const __m128i b = _mm_load_si128(source + i + 1);
    const __m128i c = _mm_load_si128(source + i + 2);
    const __m128i d = _mm_load_si128(source + i + 3);
    _mm_stream_si128(target + i, a);
    _mm_stream_si128(target + i + 1, b);
    _mm_stream_si128(target + i + 2, c);
    _mm_stream_si128(target + i + 3, d);
  }
  // Streaming stores are weakly ordered; see Intel's manual on MOVNTDQ.
  _mm_sfence();
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

ParallelCopy::Memory ParallelCopy::Allocate(int64_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t whole = (static_cast<size_t>(bytes) + kHugePage - 1) / kHugePage * kHugePage;
  auto* memory = static_cast<char*>(std::aligned_alloc(kHugePage, whole));
  madvise(memory, whole, MADV_HUGEPAGE);
  // Touched here, so that no copy includes the time in which the kernel clears pages.
  std::memset(memory, 1, whole);
  return Memory(memory);
}

ParallelCopy::ParallelCopy(int64_t bytes, int threads)
    : threads_(threads),
      bytes_(static_cast<size_t>(bytes)),
      from_(Allocate(bytes)),
      to_(Allocate(bytes)),
      copy_(CopyCached) {
  constexpr int kTrials = 5;
  auto best = std::chrono::nanoseconds::max();
  for (int trial = 0; trial < kTrials; ++trial) {
    for (Copy candidate : {Copy{CopyCached}, Copy{CopyStreamed}}) {
      const auto start = std::chrono::steady_clock::now();
      RunWith(candidate, 1);
      const auto taken = std::chrono::steady_clock::now() - start;
      if (taken >= best) continue;
      best = taken;
      copy_ = candidate;
    }
  }
}

absl::Status ParallelCopy::Run(int times) {
  RunWith(copy_, times);
  return absl::OkStatus();
}

void ParallelCopy::RunWith(Copy copy, int times) {
  auto copy_part = [this, copy, times](int part) {
    const size_t size = bytes_ / threads_;
    for (int i = 0; i < times; ++i) copy(to_.get() + part * size, from_.get() + part * size, size);
  };
  std::vector<std::thread> helpers;
  for (int part = 1; part < threads_; ++part) helpers.emplace_back(copy_part, part);
  copy_part(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace kiln::bench
