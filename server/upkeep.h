// Periodic tasks of a serving daemon.
#ifndef KILN_SERVER_UPKEEP_H_
#define KILN_SERVER_UPKEEP_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/buffers/blob_store.h"
#include "server/memory/host_memory.h"
#include "server/rpc/services/open_uploads.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/health/health_probe.h"
#include "server/sessions/registry.h"

namespace kiln {

// Expired leases, idle uploads, unused memory and programs, lost devices and the health of others,
// replaced certificates: all on one thread. Thread-safe.
class Upkeep {
 public:
  struct Options {
    sessions::Registry* registry = nullptr;
    rpc::OpenUploads* open_uploads = nullptr;
    std::function<void()> reload_tls;  // if its files were replaced
    buffers::BlobStore* blobs = nullptr;
    memory::HostMemory* host = nullptr;
    runtime::ProgramCache* programs = nullptr;
    std::vector<runtime::ManagedDevice*> devices;
    std::vector<std::shared_ptr<runtime::HealthProbe>> health_probes;
    std::function<absl::Time()> steady_now;                     // for leases and ages
    absl::Duration interval;                                    // between two rounds
    absl::Duration unused_programs = absl::InfiniteDuration();  // dropped after this long
  };
  // Starts the thread. Requires: the objects in the options are there, and outlive Stop.
  explicit Upkeep(Options options);
  ~Upkeep() { Stop(); }

  // Waits for the round under way. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // False if no round has ended for a minute, so it hangs.
  bool IsAlive() const;
  // The number of rounds that have ended.
  int64_t rounds() const { return rounds_; }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void GoRound();
  // The tasks that are too expensive for every round.
  void DropUnused();
  // Detects lost devices even if they are unused, and tries to revive lost ones.
  void ReviveDevices();
  void GiveMemoryBack();
  // True if the process is larger than when it last returned memory.
  bool HasGrown();

  const Options options_;
  absl::Mutex mutex_;
  absl::CondVar stop_requested_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // When a round last ended. Not the clock of leases, which tests stop.
  std::atomic<std::chrono::steady_clock::time_point> last_round_{std::chrono::steady_clock::now()};
  std::atomic<int64_t> rounds_{0};

  // Used by the thread only.
  int64_t highest_held_ = 0;                                     // since memory was last returned
  int64_t resident_then_ = std::numeric_limits<int64_t>::max();  // at that time
  absl::Time next_growth_ = absl::InfinitePast();
  absl::Time next_programs_ = absl::InfinitePast();
  absl::Time next_memory_ = absl::InfinitePast();

  std::thread thread_;  // last: it uses the other members
};

}  // namespace kiln

#endif  // KILN_SERVER_UPKEEP_H_
