#include "drivers/cpu/prepared_list.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::drivers::cpu {
namespace {

constexpr int64_t kCopyChunk = 512 << 10;

// By estimates, how often a list that may end early reads the clock. Estimates may be too
// optimistic, so a kernel's first portion is this long, too.
constexpr double kLookSeconds = 40e-6;
constexpr double kCallSecondsMin = 0.2e-6;
constexpr double kEstimatedTooShort = 64;
// A portion is divided into at least this many parts per thread.
constexpr int64_t kPartsPerThread = 8;

// Time on one thread; only decides whether other threads are worth waking.
double EstimatedSeconds(const KernelImage& image, const Rates& rates) {
  return std::max(image.flops / rates.unit_flops_per_second,
                  image.bytes / rates.unit_bytes_per_second);
}

// The fewest grid points that a thread takes at once; all of them if one thread is enough.
int64_t ChunkOf(const KernelImage& image, const Threads& threads) {
  const double seconds = EstimatedSeconds(image, threads.rates);
  if (threads.count == 1 || image.grid_size == 1 || seconds < threads.rates.parallel_seconds_min) {
    return image.grid_size;
  }
  const int64_t chunks =
      std::min(static_cast<int64_t>(std::min(seconds / threads.rates.chunk_seconds_min, 1e6)),
               WorkerPool::kChunksMax);
  return (image.grid_size + chunks - 1) / chunks;
}

int64_t CopyChunkOf(int64_t bytes, int threads) {
  if (threads == 1) return std::max<int64_t>(bytes, 1);
  // Whole cache lines, so that no two threads write to the same one; rounded up to limit the number
  // of chunks.
  return std::max(kCopyChunk, bytes / WorkerPool::kChunksMax / 64 * 64 + 64);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Program>> Program::Make(const CommandList& list,
                                                       const Threads& threads) {
  auto needs = CheckCommandList(list);
  if (!needs.ok()) return needs.status();
  std::shared_ptr<Program> program(new Program);
  program->needs_ = *std::move(needs);
  program->patches_.resize(list.num_slots);
  program->slots_.resize(list.num_slots);
  for (size_t i = 0; i < list.commands.size(); ++i) {
    program->first_pointer_.push_back(program->pointers_.size());
    absl::Status status = std::visit(
        [&](const auto& command) { return program->Add(command, threads); }, list.commands[i]);
    if (!status.ok())
      return absl::InvalidArgumentError(absl::StrCat("command ", i, ": ", status.message()));
  }
  program->ResolvePointers();
  KILN_CHECK_EQ(program->calls_.size(), list.commands.size());
  // As much work as building it.
  KILN_VALIDATE(*program, 1);
  return program;
}

void Program::Validate() const {
  KILN_CHECK_EQ(first_pointer_.size(), calls_.size());
  KILN_CHECK_EQ(slots_.size(), patches_.size());
  KILN_CHECK_EQ(needs_.slot_bytes.size(), patches_.size());
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    const size_t end = i + 1 < calls_.size() ? first_pointer_[i + 1] : pointers_.size();
    KILN_CHECK_LE(first_pointer_[i], end);
    KILN_CHECK_EQ(call.pointers - pointers_.data(), first_pointer_[i]);
    const size_t count = end - first_pointer_[i];
    const bool is_kernel = call.kind == Kind::kKernel || call.kind == Kind::kParallelKernel;
    const size_t expected = call.kind == Kind::kCopy ? 2 : call.kind == Kind::kFill ? 1 : 0;
    KILN_CHECK(is_kernel || count == expected) << "call " << i << " has " << count << " pointers";
    KILN_CHECK_EQ(call.function != nullptr, is_kernel) << "call " << i;
    if (call.kind == Kind::kSignal || call.kind == Kind::kWait) {
      KILN_CHECK(call.signal >= 0 && call.signal < needs_.signals) << call.signal;
    } else {
      KILN_CHECK_GE(call.chunk, 1) << "call " << i;
    }
  }
  std::vector<bool> patched(pointers_.size(), false);
  size_t count = 0;
  for (const std::vector<Patch>& patches : patches_) {
    for (const Patch& patch : patches) {
      KILN_CHECK_LT(patch.pointer, pointers_.size());
      KILN_CHECK(!patched[patch.pointer]) << "pointer " << patch.pointer << " is of two slots";
      patched[patch.pointer] = true;
      ++count;
    }
  }
  KILN_CHECK_EQ(count, pointers_.size());
}

absl::Status Program::Add(const LaunchCommand& launch, const Threads& threads) {
  // Checked once per list, so that runs need no check.
  const auto* kernel = dynamic_cast<const CpuKernel*>(launch.kernel);
  if (kernel == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel ", launch.kernel->image().name,
                                                   " was not loaded by a CPU device"));
  }
  const KernelImage& image = kernel->image();
  const int64_t chunk = ChunkOf(image, threads);
  const GridRange points = PointsOf(launch);
  calls_.push_back({.kind = chunk < image.grid_size ? Kind::kParallelKernel : Kind::kKernel,
                    .function = kernel->function(),
                    .first = points.begin,
                    .size = points.size(),
                    .chunk = chunk});
  SetEstimate(EstimatedSeconds(image, threads.rates) * static_cast<double>(points.size()) /
                  static_cast<double>(image.grid_size),
              &calls_.back());
  for (const SlotRange& range : launch.arguments) AddPointer(range);
  return absl::OkStatus();
}

absl::Status Program::Add(const CopyCommand& copy, const Threads& threads) {
  const int64_t bytes = copy.destination.bytes;
  calls_.push_back(
      {.kind = Kind::kCopy, .size = bytes, .chunk = CopyChunkOf(bytes, threads.count)});
  SetEstimate(2 * static_cast<double>(bytes) / threads.rates.unit_bytes_per_second, &calls_.back());
  AddPointer(copy.destination);
  AddPointer(copy.source);
  return absl::OkStatus();
}

absl::Status Program::Add(const FillCommand& fill, const Threads& threads) {
  const int64_t bytes = fill.destination.bytes;
  calls_.push_back({.kind = Kind::kFill,
                    .value = fill.value,
                    .size = bytes,
                    .chunk = CopyChunkOf(bytes, threads.count)});
  SetEstimate(static_cast<double>(bytes) / threads.rates.unit_bytes_per_second, &calls_.back());
  AddPointer(fill.destination);
  return absl::OkStatus();
}

absl::Status Program::Add(const SignalCommand& command, const Threads& threads) {
  calls_.push_back({.kind = Kind::kSignal, .signal = command.signal});
  return absl::OkStatus();
}

absl::Status Program::Add(const WaitCommand& command, const Threads& threads) {
  calls_.push_back({.kind = Kind::kWait, .signal = command.signal});
  return absl::OkStatus();
}

void Program::SetEstimate(double seconds, Call* call) {
  call->is_long = seconds > kLookSeconds && call->size > 1;
  call->task_seconds =
      kEstimatedTooShort * seconds / static_cast<double>(std::max<int64_t>(call->size, 1));
  unlooked_seconds_ += std::max(seconds, kCallSecondsMin);
  if (unlooked_seconds_ < kLookSeconds) return;
  unlooked_seconds_ = 0;
  call->looks = true;
}

void Program::AddPointer(const SlotRange& range) {
  patches_[range.slot].push_back({pointers_.size(), range.offset});
  pointers_.push_back(nullptr);
}

// Called last, because the array of pointers then has its final address.
void Program::ResolvePointers() {
  for (size_t i = 0; i < calls_.size(); ++i)
    calls_[i].pointers = pointers_.data() + first_pointer_[i];
}

void Program::SetPointers(absl::Span<char* const> slots) {
  KILN_CHECK_EQ(slots.size(), slots_.size());
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot] == slots_[slot]) continue;
    slots_[slot] = slots[slot];
    for (const Patch& patch : patches_[slot]) pointers_[patch.pointer] = slots[slot] + patch.offset;
    pointers_set_ += static_cast<int64_t>(patches_[slot].size());
  }
}

void Program::RunTasks(const Call& call, const Portion& portion, const std::atomic<bool>* unwanted,
                       WorkerPool& pool) {
  const auto run = call.kind == Kind::kCopy   ? RunCopyRange
                   : call.kind == Kind::kFill ? RunFillRange
                                              : RunKernelRange;
  Job job{run,        &call,    portion.end - portion.begin,
          call.chunk, unwanted, call.first + portion.begin};
  // Small enough for this thread alone.
  if (call.kind == Kind::kKernel || call.size <= call.chunk) return pool.RunAlone(job);
  if (job.tasks < call.size) {
    // Whole cache lines of a copy.
    const int64_t unit = call.kind == Kind::kParallelKernel ? 1 : 64;
    const int64_t part = job.tasks / (kPartsPerThread * pool.threads()) / unit * unit;
    job.chunk = std::clamp(part, unit, call.chunk);
  }
  pool.Run(job);
}

absl::Status Program::Execute(const Call& call, const Portion& portion,
                              const SubmitOptions& options, WorkerPool& pool) const {
  const std::atomic<bool>* unwanted = options.unwanted.get();
  switch (call.kind) {
    case Kind::kKernel:
    case Kind::kParallelKernel:
    case Kind::kCopy:
    case Kind::kFill:
      RunTasks(call, portion, unwanted, pool);
      break;
    case Kind::kSignal:
      KILN_CHECK(options.group != nullptr) << "signal " << call.signal;
      options.group->Raise(call.signal);
      break;
    case Kind::kWait:
      KILN_CHECK(options.group != nullptr) << "signal " << call.signal;
      if (absl::Status status = options.group->Wait(call.signal); !status.ok()) return status;
      break;
  }
  if (unwanted != nullptr && unwanted->load())
    return absl::CancelledError("the command list was cancelled");
  return absl::OkStatus();
}

void Program::RunKernelRange(const void* context, int64_t begin, int64_t end, void* scratch) {
  const auto& call = *static_cast<const Call*>(context);
  call.function(call.pointers, begin, end, scratch);
}

// Two slots may hold the same buffer, and its ranges may then overlap although that is not allowed:
// memmove then at worst writes wrong bytes.
void Program::RunCopyRange(const void* context, int64_t begin, int64_t end, void* scratch) {
  const auto& call = *static_cast<const Call*>(context);
  std::memmove(static_cast<char*>(call.pointers[0]) + begin,
               static_cast<const char*>(call.pointers[1]) + begin, end - begin);
}

void Program::RunFillRange(const void* context, int64_t begin, int64_t end, void* scratch) {
  const auto& call = *static_cast<const Call*>(context);
  std::memset(static_cast<char*>(call.pointers[0]) + begin, call.value, end - begin);
}

}  // namespace kiln::drivers::cpu
