// Runs independent work items on a few threads.
#ifndef KILN_COMPILER_PARALLEL_FOR_H_
#define KILN_COMPILER_PARALLEL_FOR_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace kiln::compiler {

// Returns the number of threads that ParallelFor uses.
inline int ThreadsFor(size_t count, int threads) {
  return static_cast<int>(std::min(count, static_cast<size_t>(std::max(threads, 1))));
}

// Calls work(i) for every i in [0, count), on up to `threads` threads including the caller's.
// Assigns items in order. Returns when all have finished.
template <typename Work>
void ParallelFor(size_t count, int threads, const Work& work) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  const int wanted = ThreadsFor(count, threads);
  for (int t = 1; t < wanted; ++t) others.emplace_back(run);
  run();
  for (std::thread& thread : others) thread.join();
}

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_PARALLEL_FOR_H_
