// What has to be looked after again and again while a daemon serves.
#ifndef KILN_SERVER_UPKEEP_H_
#define KILN_SERVER_UPKEEP_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/buffers/blob_store.h"
#include "server/memory/host_memory.h"
#include "server/rpc/open_uploads.h"
#include "server/runtime/health_probe.h"
#include "server/runtime/managed_device.h"
#include "server/runtime/program_cache.h"
#include "server/sessions/registry.h"

namespace kiln {

// Leases that end, uploads from which nothing comes, memory and programs that nobody uses, devices
// that are lost and the health of others, certificates that are replaced: all on one thread.
// Thread-safe.
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
    std::function<absl::Time()> steady_now;                     // decides on leases and ages
    absl::Duration interval;                                    // from one round to the next
    absl::Duration unused_programs = absl::InfiniteDuration();  // are dropped after so long
  };
  // Starts the thread. What the options name outlives Stop.
  explicit Upkeep(Options options);
  ~Upkeep() { Stop(); }

  // Waits for a round that is under way. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // False if no round has ended for a minute: it hangs.
  bool IsAlive() const;
  // How many have ended.
  int64_t rounds() const { return rounds_; }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void GoRound();
  // What costs more than a look.
  void DropUnused();
  // Notices devices that are lost though nobody uses them, and tries those that are.
  void ReviveDevices();
  void GiveMemoryBack();

  const Options options_;
  absl::Mutex mutex_;
  absl::CondVar stop_requested_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // When a round last ended. Not the clock of leases, which tests stop.
  std::atomic<std::chrono::steady_clock::time_point> last_round_{std::chrono::steady_clock::now()};
  std::atomic<int64_t> rounds_{0};

  // Of the thread.
  int64_t most_held_ = 0;  // since memory was last given back
  absl::Time next_programs_ = absl::InfinitePast();
  absl::Time next_memory_ = absl::InfinitePast();

  std::thread thread_;  // last: it uses the rest
};

}  // namespace kiln

#endif  // KILN_SERVER_UPKEEP_H_
