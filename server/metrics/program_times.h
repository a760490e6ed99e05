// Device time by user and program: a histogram for each user's program, and for its kernels.
#ifndef KILN_SERVER_METRICS_PROGRAM_TIMES_H_
#define KILN_SERVER_METRICS_PROGRAM_TIMES_H_

#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/metrics.h"

namespace kiln::metrics {

// A name is kept while its program is used. A program that has not run for this many scrapes may
// lose its name to another, and its times are added to its user's "other".
inline constexpr int kIdleScrapes = 40;

// The times of one device. At most kProgramNamesMax programs and kKernelNamesMax of their kernels
// have names; the rest are "other", separately for each of the first kUserNamesMax users. A user
// gets another name, of either kind, only while the user has fewer names in use than are free or
// idle. Thread-safe.
class ProgramTimes {
 public:
  explicit ProgramTimes(std::string device) : device_(std::move(device)) {}

  void RunFinished(const RunLabels& run, double seconds,
                   const std::shared_ptr<const KernelShares>& shares) ABSL_LOCKS_EXCLUDED(mutex_);
  void KernelRan(const RunLabels& run, absl::string_view kernel, double seconds)
      ABSL_LOCKS_EXCLUDED(mutex_);

  struct Families {
    prometheus::MetricFamily programs;        // histogram of runs
    prometheus::MetricFamily kernels;         // histogram of sampled launches
    prometheus::MetricFamily kernel_seconds;  // counter
  };
  // Adds all times to the families; counts as a scrape.
  void Scrape(Families& families) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Kernel {
    Kernel();
    prometheus::Histogram launches;  // sampled
    double seconds = 0;              // of all runs, not only sampled ones
  };
  using Kernels = std::map<std::string, Kernel, std::less<>>;
  struct Times {
    explicit Times(bool has_name);
    bool is_idle() const { return idle_scrapes >= kIdleScrapes; }

    const bool has_name;
    prometheus::Histogram runs;
    Kernels kernels;
    double outside_seconds = 0;  // outside of kernels
    // Time of runs that is not divided yet, and the shares for it (not null if there is any).
    // Dividing takes a step for each kernel, so it is done once for many runs.
    double undivided_seconds = 0;
    std::shared_ptr<const KernelShares> shares;
    bool has_run = true;  // since the last scrape
    int idle_scrapes = 0;
  };
  struct User {
    absl::flat_hash_map<std::string, std::unique_ptr<Times>> programs;  // with names
    std::unique_ptr<Times> others;                                      // null: no others
    int idle = 0;                                                       // among those
    int kernels = 0;                                                    // with names
  };

  User& FindUser(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Times& Find(User& user, absl::string_view program) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Times& OthersOf(User& user);
  // Returns the kernel with this name, or "other" if it has no name.
  Kernel& FindKernel(User& user, Times& times, absl::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Divide(User& user, Times& times) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops the most idle program of all users. Requires: there is an idle one.
  void DropMostIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Age(User& user, Times& times) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t entries() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return users_.size() + static_cast<size_t>(programs_ + kernels_);
  }
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void ValidateUser(const std::string& name, const User& user);

  const std::string device_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, User> users_ ABSL_GUARDED_BY(mutex_);
  // For all users.
  int programs_ ABSL_GUARDED_BY(mutex_) = 0;
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;
  int kernels_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_PROGRAM_TIMES_H_
