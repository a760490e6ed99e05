#include "tests/stand_ins/cuda/ptx/interpret.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/ptx/machine.h"
#include "tests/stand_ins/cuda/ptx/touched.h"

namespace kiln::stand_ins::ptx {
namespace {

constexpr int64_t kThreadsMax = 1024;

int64_t Product(const std::array<uint32_t, 3>& sizes) {
  return int64_t{sizes[0]} * sizes[1] * sizes[2];
}

std::string WhatDoesNotFit(const DecodedFunction& entry, const LaunchShape& shape,
                           size_t parameter_bytes) {
  const int64_t threads = Product(shape.block);
  if (threads < 1 || threads > kThreadsMax || Product(shape.grid) < 1)
    return absl::StrCat("a block of ", threads, " threads, or no block");
  if (entry.required_threads[0] != 0 && entry.required_threads != shape.block)
    return "the block is not of the shape that .reqntid demands";
  if (entry.threads_max != 0 && threads > entry.threads_max)
    return absl::StrCat("more threads than the ", entry.threads_max, " of .maxntid");
  if (static_cast<int64_t>(parameter_bytes) != entry.formal_bytes)
    return absl::StrCat(parameter_bytes, " bytes of parameters for ", entry.formal_bytes);
  return "";
}

std::vector<Thread> MakeThreads(Block& block) {
  const auto [width, height, depth] = block.shape.block;
  std::vector<Thread> threads(Product(block.shape.block));
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i].block = &block;
    threads[i].index = static_cast<int>(i);
    threads[i].position = {static_cast<uint32_t>(i % width),
                           static_cast<uint32_t>(i / width % height),
                           static_cast<uint32_t>(i / width / height)};
  }
  return threads;
}

void NoteAccesses(Block& block, LaunchResult& result) {
  for (Site& site : block.sites) {
    for (const Range& range : site.reads) AddRange(result.reads, range.begin, range.end);
    for (const Range& range : site.writes) AddRange(result.writes, range.begin, range.end);
    site.reads.clear();
    site.writes.clear();
  }
}

}  // namespace

LaunchResult Launch(const Program& program, const DecodedFunction& entry, const LaunchShape& shape,
                    absl::Span<const uint8_t> parameters, const GlobalMemory& memory,
                    const LaunchOptions& options) {
  LaunchResult result;
  if (std::string problem = WhatDoesNotFit(entry, shape, parameters.size()); !problem.empty()) {
    result.fault = {FaultKind::kInvalidLaunch, absl::StrCat(entry.name, ": ", problem)};
    return result;
  }
  Block block{.program = &program,
              .entry = &entry,
              .memory = &memory,
              .shape = shape,
              .options = options,
              .branches_left = options.branches_max};
  block.sites.resize(program.sites);
  block.threads = MakeThreads(block);
  const int64_t blocks = Product(shape.grid);
  for (int64_t i = 0; i < blocks && block.fault.kind == FaultKind::kNone; ++i) {
    block.position = {static_cast<uint32_t>(i % shape.grid[0]),
                      static_cast<uint32_t>(i / shape.grid[0] % shape.grid[1]),
                      static_cast<uint32_t>(i / shape.grid[0] / shape.grid[1])};
    block.Run(parameters);
    if (options.note_accesses) NoteAccesses(block, result);
    if (options.stop != nullptr && *options.stop)
      block.fault = {FaultKind::kTimeout, absl::StrCat(entry.name, ": it was stopped")};
  }
  result.fault = block.fault;
  return result;
}

}  // namespace kiln::stand_ins::ptx
