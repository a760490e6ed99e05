#include "tests/stand_ins/hsa/object/twin.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/stand_ins/hsa/object/fiber.h"

namespace kiln::stand_ins::hsa {
namespace {

using codegen::HostTwin;
using codegen::HostTwinCall;
using codegen::HostTwinFooter;

constexpr int kUnwritten = 0xff;  // NaNs, as numbers

// Stacks of one host thread's fibers, which are reused.
class Stacks {
 public:
  ~Stacks() {
    for (char* stack : stacks_) munmap(stack, kFiberStackBytes);
  }
  // The end of stack number `i`; null if out of memory.
  char* End(size_t i) {
    while (stacks_.size() <= i) {
      void* stack = mmap(nullptr, kFiberStackBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (stack == MAP_FAILED) return nullptr;
      stacks_.push_back(static_cast<char*>(stack));
    }
    return stacks_[i] + kFiberStackBytes;
  }

 private:
  std::vector<char*> stacks_;
};

// A block whose threads wait for each other.
class BlockRun {
 public:
  BlockRun(HostTwin twin, const Dispatch& dispatch, void* shared)
      : twin_(twin), dispatch_(dispatch), shared_(shared), fibers_(dispatch.threads) {}

  absl::Status Run(uint32_t block) {
    thread_local Stacks stacks;
    for (uint32_t i = 0; i < dispatch_.threads; ++i) {
      char* end = stacks.End(i);
      if (end == nullptr) return absl::InternalError("no memory for a thread's stack");
      fibers_[i].call = {.kernel_arguments = dispatch_.arguments,
                         .shared = shared_,
                         .thread = i,
                         .block = block,
                         .barrier = nullptr,
                         .shuffle = nullptr};
      StartFiber(&fibers_[i], twin_, end);
    }
    while (true) {
      for (uint32_t begin = 0; begin < dispatch_.threads; begin += Wave()) {
        const uint32_t end = std::min(begin + Wave(), dispatch_.threads);
        if (absl::Status status = RunWave(begin, end, block % 2 == 1); !status.ok()) return status;
      }
      if (fibers_[0].state == FiberState::kEnded) break;
      for (const Fiber& fiber : fibers_) {
        if (fiber.state != fibers_[0].state)
          return absl::InternalError(absl::StrCat("thread ", fiber.call.thread, " of block ", block,
                                                  " is not at the barrier of the others"));
      }
      for (Fiber& fiber : fibers_) fiber.state = FiberState::kRuns;
    }
    for (const Fiber& fiber : fibers_) {
      if (fiber.state != FiberState::kEnded)
        return absl::InternalError(absl::StrCat("thread ", fiber.call.thread, " of block ", block,
                                                " waits for one that has ended"));
    }
    return absl::OkStatus();
  }

 private:
  uint32_t Wave() const { return static_cast<uint32_t>(dispatch_.wave); }

  // Runs the wave until all of its threads are at a barrier or have ended.
  absl::Status RunWave(uint32_t begin, uint32_t end, bool backwards) {
    while (true) {
      bool shuffles = false;
      for (uint32_t i = begin; i < end; ++i) {
        Fiber& fiber = fibers_[backwards ? begin + end - 1 - i : i];
        if (fiber.state == FiberState::kRuns) ResumeFiber(&fiber);
        shuffles = shuffles || fiber.state == FiberState::kAtShuffle;
      }
      if (!shuffles) return absl::OkStatus();
      if (absl::Status status = Shuffle(begin, end); !status.ok()) return status;
    }
  }

  // Threads that are furthest behind go first: threads that have branched away come later.
  absl::Status Shuffle(uint32_t begin, uint32_t end) {
    uint64_t site = UINT64_MAX;
    for (uint32_t i = begin; i < end; ++i) {
      if (fibers_[i].state == FiberState::kAtShuffle) site = std::min(site, fibers_[i].site);
    }
    std::vector<uint64_t> values(end - begin);
    for (uint32_t i = begin; i < end; ++i) {
      const Fiber& fiber = fibers_[i];
      if (fiber.state != FiberState::kAtShuffle || fiber.site != site) continue;
      const uint32_t from = begin + static_cast<uint32_t>(fiber.thread) % Wave();
      const bool there =
          from < end && fibers_[from].state == FiberState::kAtShuffle && fibers_[from].site == site;
      if (!there) {
        return absl::InternalError(absl::StrCat("thread ", i, " of block ", fiber.call.block,
                                                " shuffles with thread ", from,
                                                ", which is not there"));
      }
      values[i - begin] = fibers_[from].value;
    }
    for (uint32_t i = begin; i < end; ++i) {
      Fiber& fiber = fibers_[i];
      if (fiber.state != FiberState::kAtShuffle || fiber.site != site) continue;
      fiber.value = values[i - begin];
      fiber.state = FiberState::kRuns;
    }
    return absl::OkStatus();
  }

  const HostTwin twin_;
  const Dispatch& dispatch_;
  void* const shared_;
  std::vector<Fiber> fibers_;
};

void NoBarrier(HostTwinCall*) {}
uint32_t NoShuffle(HostTwinCall*, uint32_t, uint32_t value) { return value; }

}  // namespace

absl::StatusOr<std::unique_ptr<Twin>> Twin::Load(std::string_view file) {
  HostTwinFooter footer = {};
  if (file.size() >= sizeof(footer))
    std::memcpy(&footer, file.data() + file.size() - sizeof(footer), sizeof(footer));
  if (footer.magic != codegen::kHostTwinMagic)
    return absl::InvalidArgumentError("the code object has no twin for the host");
  if (footer.code_bytes > file.size() - sizeof(footer) || footer.entry >= footer.code_bytes)
    return absl::InvalidArgumentError("the code object's twin is cut short");
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return absl::FailedPreconditionError("twins of kernels need a processor with AVX2 and FMA");
  std::unique_ptr<Twin> twin(new Twin(footer));
  void* memory =
      mmap(nullptr, footer.code_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return absl::InternalError("no memory for a kernel's twin");
  twin->memory_ = memory;
  std::memcpy(memory, file.data() + file.size() - sizeof(footer) - footer.code_bytes,
              footer.code_bytes);
  if (mprotect(memory, footer.code_bytes, PROT_READ | PROT_EXEC) != 0)
    return absl::InternalError("a kernel's twin may not be executed");
  return twin;
}

Twin::~Twin() {
  if (memory_ != nullptr) munmap(memory_, footer_.code_bytes);
}

absl::Status Twin::Run(const Dispatch& dispatch) const {
  const auto twin = reinterpret_cast<HostTwin>(static_cast<char*>(memory_) + footer_.entry);
  // Longer than needed, so that it can be aligned to 64.
  std::vector<char> shared(dispatch.shared_bytes + 64);
  void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(shared.data()) + 63) / 64 *
                                          64);  // NOLINT(performance-no-int-to-ptr)
  for (uint32_t block = 0; block < dispatch.blocks; ++block) {
    std::memset(aligned, kUnwritten, dispatch.shared_bytes);
    if (footer_.waits != 0) {
      absl::Status status = BlockRun(twin, dispatch, aligned).Run(block);
      if (!status.ok()) return status;
      continue;
    }
    for (uint32_t i = 0; i < dispatch.threads; ++i) {
      HostTwinCall call = {.kernel_arguments = dispatch.arguments,
                           .shared = aligned,
                           .thread = block % 2 == 1 ? dispatch.threads - 1 - i : i,
                           .block = block,
                           .barrier = NoBarrier,
                           .shuffle = NoShuffle};
      twin(&call);
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln::stand_ins::hsa
