// The metrics served at /metrics. README.md of this folder has the table of names and labels.
//
// Labels are bounded: devices by configuration, codes by gRPC, users by kUserNamesMax, programs and
// kernels by kProgramNamesMax and kKernelNamesMax for each device; the rest is counted as "other"
// (program_times.h). All methods are thread-safe.
#ifndef KILN_SERVER_METRICS_METRICS_H_
#define KILN_SERVER_METRICS_METRICS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/metrics/kernel_shares.h"

namespace kiln::metrics {

inline constexpr int kKernelNamesMax = 300;
inline constexpr int kUserNamesMax = 100;
inline constexpr int kProgramNamesMax = 100;

// Values that are read at a scrape.
struct DeviceGauges {
  std::string device;
  int64_t memory_used_bytes = 0;
  int64_t memory_total_bytes = 0;
  int64_t memory_cached_bytes = 0;
  int64_t queued = 0;
  bool healthy = true;
  double busy_seconds = 0;      // a counter, as are
  int64_t to_device_bytes = 0;  // these
  int64_t from_device_bytes = 0;
  double utilization = 0;  // 0 to 1
  // nullopt: not measured.
  std::optional<double> celsius = std::nullopt;
  std::optional<double> watts = std::nullopt;
  std::optional<double> clock_hertz = std::nullopt;
};
struct UserGauges {
  std::string user;
  std::string device;
  double device_seconds = 0;  // a counter, as is
  int64_t runs = 0;           // this
  int64_t memory_bytes = 0;
  int64_t sessions = 0;
  int64_t waiting = 0;            // operations
  double queue_wait_seconds = 0;  // a counter
};
// Of a user on all devices.
struct UserTotals {
  std::string user;
  double compile_wait_seconds = 0;  // a counter
  absl::Duration oldest_session = absl::ZeroDuration();
  int64_t unprotected_sessions = 0;
};
struct ProgramInfo {
  std::string program;  // as RunLabels::program
  std::string name;
  std::string devices;
};
// The file system of a folder.
struct DiskGauges {
  std::string folder;  // what the folder is for
  int64_t free_bytes = 0;
  int64_t size_bytes = 0;
};
struct Gauges {
  std::vector<DeviceGauges> devices;
  std::vector<UserGauges> users;
  std::vector<UserTotals> user_totals;
  std::vector<ProgramInfo> program_infos;  // the first kProgramNamesMax are shown
  std::vector<DiskGauges> disks;
  int64_t saved_session_bytes = 0;  // on disk
  int64_t sessions = 0;
  int64_t connections = 0;
  int64_t programs = 0;
  int64_t blob_bytes = 0;
  std::vector<std::pair<std::string, int64_t>> host_memory;  // bytes by use
  int64_t host_memory_limit_bytes = 0;
  int64_t host_memory_refused = 0;  // a counter
  int64_t cache_bytes = 0;
  int64_t cache_kernels = 0;
  absl::Time certificate_expiry = absl::InfiniteFuture();  // InfiniteFuture: there is none
};

// The labels of a run: the user's name, empty for the daemon's own runs, and the first digits of
// the program's digest, as shown by `kiln programs`.
struct RunLabels {
  absl::string_view user;
  absl::string_view program;
};

// The metrics of one device. Fast enough for every run: a counter, or a look-up and a histogram.
class DeviceMetrics {
 public:
  virtual ~DeviceMetrics() = default;
  virtual void RunStarted(absl::Duration waited_in_queue) = 0;
  // `seconds` on the device, divided among the kernels by `shares`; null: not known yet.
  virtual void RunFinished(const RunLabels& run, double seconds,
                           const std::shared_ptr<const KernelShares>& shares) = 0;
  virtual void RunFailed() = 0;
  // Only for sampled runs, and not for a program's first run, which is cold.
  virtual void KernelRan(const RunLabels& run, absl::string_view kernel, double seconds) = 0;
};

class Metrics {
 public:
  // `commit`: of the sources, "unknown" if it is not known.
  explicit Metrics(const std::string& version, const std::string& commit = "unknown");
  ~Metrics();

  // Never null; lives as long as this object.
  DeviceMetrics* ForDevice(const std::string& device);

  void Compiled(double seconds);
  void CompileFailed();
  // A process that compiled a kernel was lost: it died, or exceeded its time or memory.
  void CompileWorkerFailed();
  // A process that compiles kernels was started, as a spare or because more were needed.
  void CompileWorkerStarted();
  // The proof refused a kernel's schedule, so the kernel was compiled with the plain one.
  void ScheduleRefused();
  void ProgramCacheLookup(bool hit);
  // A program was run with new values of its variables. `shared`: one program serves all values;
  // else these values got their own.
  void ProgramBound(bool shared);
  void KernelCacheLookup(bool hit);
  // A row of the cache on disk was not what the daemon had stored.
  void KernelCacheRejected();
  // `origin`, who wanted a search, is one of a few words: tuner::OriginName.
  //
  // Candidates of a search for a kernel's schedule: those that were timed, and those that cannot be
  // chosen.
  void TuneTried(std::string_view origin, int timed, int refused);
  // `outcome`, one of a few words: tuner::TuneStateName.
  void KernelTuned(std::string_view origin, std::string_view outcome);
  void TuneEnded(std::string_view origin, double seconds);
  void Received(int64_t bytes);
  void Sent(int64_t bytes);
  // A failed call or operation.
  void Failed(absl::StatusCode code);
  // A call was answered, after `seconds`. Requires: `method` is one of the API.
  void CallEnded(const std::string& method, double seconds);
  // A caller could not be identified. `reason` is one of a few words: that of the error.
  void LoginFailed(const std::string& reason);
  void ConnectionRefused();
  // A scrape was answered.
  void Scraped(int64_t bytes, double seconds);
  // A call with a large response lost its client before the response.
  void Abandoned();

  // `gauges` is called by Text.
  void SetGauges(std::function<Gauges()> gauges);

  // The response to a scrape (server/scrape); every call counts as a scrape.
  std::string Text() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_METRICS_H_
