#include "server/upkeep.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "proto/check/check.h"

namespace kiln {
namespace {

// Normally a round takes milliseconds.
constexpr std::chrono::minutes kLongestRound{1};
// How often to look for unused programs, of which there are many.
constexpr absl::Duration kLookAtPrograms = absl::Minutes(1);
// How long uploads leave their memory to later ones: a client that sends a data set in parts needs
// it again.
constexpr absl::Duration kKeepMemory = absl::Seconds(10);
// An upload without data for this long is ended: even over a slow link, a chunk takes less time.
constexpr absl::Duration kIdleUpload = absl::Minutes(10);
// Returns freed memory to the system once this much less is held than at the peak, or once the
// process has grown by this much: gRPC's memory is in no account of the daemon.
constexpr int64_t kTrimAfter = 32 << 20;
// How often growth alone is a reason: work that frees and allocates this much in each step would
// otherwise get new pages each time.
constexpr absl::Duration kLookAtGrowth = absl::Seconds(10);

// Returns the resident memory of this process in bytes; 0 without /proc.
int64_t ResidentBytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

Upkeep::Upkeep(Options options) : options_(std::move(options)) {
  KILN_CHECK(options_.registry != nullptr && options_.open_uploads != nullptr);
  KILN_CHECK(options_.blobs != nullptr && options_.host != nullptr);
  KILN_CHECK(options_.programs != nullptr && options_.reload_tls != nullptr);
  for (const runtime::ManagedDevice* device : options_.devices) KILN_CHECK_NE(device, nullptr);
  thread_ = std::thread([this] { Run(); });
}

void Upkeep::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(stopping_, true)) return;
    stop_requested_.SignalAll();
  }
  thread_.join();
}

bool Upkeep::IsAlive() const {
  return std::chrono::steady_clock::now() - last_round_.load() < kLongestRound;
}

void Upkeep::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (!stopping_) stop_requested_.WaitWithTimeout(&mutex_, options_.interval);
      if (stopping_) return;
    }
    // Without the lock: closing a session calls callbacks of its streams and readers.
    GoRound();
    last_round_ = std::chrono::steady_clock::now();
    ++rounds_;
    GiveMemoryBack();
  }
}

void Upkeep::GoRound() {
  options_.registry->CloseExpired();
  options_.open_uploads->EndIdle(options_.steady_now() - kIdleUpload);
  options_.reload_tls();
  options_.blobs->DropIdleMemory(options_.host->limit_bytes() - options_.host->used_bytes());
  DropUnused();
  ReviveDevices();
  for (const auto& probe : options_.health_probes) probe->Tick(options_.steady_now());
}

void Upkeep::DropUnused() {
  const absl::Time now = options_.steady_now();
  if (now >= next_memory_) {
    options_.blobs->DropUnusedMemory();
    next_memory_ = now + kKeepMemory;
  }
  if (options_.unused_programs < absl::InfiniteDuration() && now >= next_programs_) {
    options_.programs->DropUnused(now, options_.unused_programs);
    next_programs_ = now + kLookAtPrograms;
  }
}

void Upkeep::ReviveDevices() {
  for (runtime::ManagedDevice* device : options_.devices) {
    device->CheckHealth();
    if (!device->TryRevive()) continue;
    for (const auto& session : options_.registry->List()) session->DropLost(*device);
  }
}

void Upkeep::GiveMemoryBack() {
  // Memory cached for the next upload also counts until it is freed.
  const int64_t held = options_.host->used_bytes() + options_.blobs->idle_bytes();
  KILN_CHECK_GE(options_.blobs->idle_bytes(), 0);
  highest_held_ = std::max(highest_held_, held);
  if (highest_held_ - held < kTrimAfter && !HasGrown()) return;
  // glibc keeps freed memory until it is told to return it; see malloc_trim(3).
  malloc_trim(0);
  highest_held_ = held;
  resident_then_ = ResidentBytes();
}

bool Upkeep::HasGrown() {
  const absl::Time now = options_.steady_now();
  if (now < next_growth_) return false;
  next_growth_ = now + kLookAtGrowth;
  const int64_t resident = ResidentBytes();
  resident_then_ = std::min(resident_then_, resident);
  return resident - resident_then_ >= kTrimAfter;
}

}  // namespace kiln
