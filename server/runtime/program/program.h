// A program on its devices: compiled, loaded, recorded, ready to be replayed.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_PROGRAM_H_
#define KILN_SERVER_RUNTIME_PROGRAM_PROGRAM_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "compiler/compiler.h"
#include "server/buffers/value.h"
#include "server/memory/host_memory.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/first_call.h"
#include "server/runtime/program/kernel_samples.h"
#include "server/runtime/program/loaded_program.h"
#include "server/runtime/program/pieces.h"
#include "server/runtime/program/sharded_program.h"
#include "server/runtime/program/signature.h"

namespace kiln::runtime {

class JointMemory;

// Returns the digest as logs and lists show it.
inline std::string ShortDigest(const std::string& digest) { return digest.substr(0, 12); }

// Thread-safe.
class Program {
 public:
  struct Description {
    std::string digest;
    std::string source_key;  // GraphSource::key
    std::string name;
    absl::Time compiled;
    double compile_seconds = 0;
    uint64_t settings = 0;  // ProgramRequest::settings
    std::string owner{};    // ProgramRequest::owner
  };

  // Loads the kernels and records the lists. The devices outlive the program. `same_results`: for
  // each result, the first one that is equal in every run (share_results.h); empty: no two are
  // equal. Errors: the devices'.
  static absl::StatusOr<std::shared_ptr<Program>> Load(ShardedProgram sharded,
                                                       Description description, Signature signature,
                                                       std::vector<int> same_results = {});

  const ShardedProgram& sharded() const { return sharded_; }
  const Description& description() const { return description_; }
  std::string short_digest() const { return ShortDigest(description_.digest); }
  const Signature& signature() const { return signature_; }
  // The compiled program. If its devices run several: the kernels and calls of all of them, one
  // program after another; the rest is from the first device's.
  const compiler::CompiledProgram& compiled() const { return *compiled_; }
  // Returns the result (outputs, then updates) that is the value of this one: the first of all that
  // are equal.
  size_t same_result(size_t result) const {
    return same_results_.empty() ? result : static_cast<size_t>(same_results_[result]);
  }
  // Returns whether no other result is the same value.
  bool is_only_result(size_t result) const {
    return same_results_.empty() ||
           std::count(same_results_.begin(), same_results_.end(), same_results_[result]) == 1;
  }
  // Returns the names of all devices that it runs on, without repetition.
  std::vector<std::string> device_names() const;
  // Returns the device that runs this kernel of compiled(), the first one if there are several.
  ManagedDevice& device_of_kernel(size_t kernel) const;
  // The first of its devices.
  ManagedDevice& device() const { return sharded_.device(0); }
  // Returns the loaded program; loads it again if a device was lost and revived since. Errors: the
  // devices'.
  absl::StatusOr<std::shared_ptr<const LoadedProgram>> OnDevices()
      ABSL_LOCKS_EXCLUDED(loading_mutex_);
  // Returns the memory that all runs of a joint program share. Errors: RESOURCE_EXHAUSTED, or the
  // devices' errors.
  absl::StatusOr<std::shared_ptr<JointMemory>> ReserveJointMemory(
      const std::shared_ptr<const LoadedProgram>& loaded) ABSL_LOCKS_EXCLUDED(loading_mutex_);
  // Whether its lists can end early: on one device, if that yields. Others would keep the lists
  // that wait for them waiting.
  bool yields() const { return !sharded_.is_joint() && device().device().yields(); }
  // Returns whether a run that begins now may take longer than a slice, and yields. It is then
  // submitted as a list that may end early. True before the first run, when no time is known. Runs
  // differ more in time if dimensions are variables (`varies`).
  bool MayEndEarly(bool varies) const;
  // Returns the pieces in which a run that begins now is submitted, or null if it is submitted
  // whole, as the lists of `loaded`; always null if it yields. A run is cut if it is expected to
  // take longer than a slice. The expected times are those measured for its kernels; it is cut
  // again when they have been timed eight times as often. Before the first run they are estimated
  // from the kernels' sizes, and the pieces are a fraction as long, since sizes underestimate.
  // Errors: the devices'.
  absl::StatusOr<std::shared_ptr<const Pieces>> CutIntoPieces(
      const std::shared_ptr<const LoadedProgram>& loaded)
      ABSL_LOCKS_EXCLUDED(loading_mutex_, mutex_);
  // Expected device time of the first piece of a run that is not cut yet; for one that may end
  // early, a slice.
  double first_seconds(bool varies = false) const;
  // Approximate host memory that it takes.
  int64_t host_bytes() const { return host_bytes_; }
  // Owns the charge for that memory as long as the program lives. Requires: no other thread uses
  // the program yet.
  void Keep(memory::Charge charge) { charge_ = std::move(charge); }
  // The memory for intermediate results on the first device.
  int64_t arena_bytes() const { return sharded_.arena_bytes(0); }

  // Sets the breakdown of the time until the answer to its first run. Requires: no other thread
  // uses the program yet.
  void SetFirstCall(std::shared_ptr<FirstCall> call) { first_call_ = std::move(call); }
  const std::shared_ptr<FirstCall>& first_call() const { return first_call_; }
  // Returns the first call to the first run that asks, which continues it; null to all others.
  std::shared_ptr<FirstCall> TakeFirstCall() {
    if (has_begun_.load(std::memory_order_relaxed) || has_begun_.exchange(true)) return nullptr;
    return first_call_;
  }

  // Expected device time of a run: a moving average of measured times; before the first one, an
  // estimate from the kernels' sizes.
  double predicted_seconds() const { return predicted_.load(std::memory_order_relaxed); }
  // Returns whether the run that begins now is to be timed kernel by kernel. These are the runs
  // (counted from 0) 0 and 1, then 2, 4, 8, 16, 32 and every multiple of 64. From run 2 on, at most
  // ten runs a second are timed over all programs; this keeps the cost far below 1%, see
  // metrics/README.md.
  bool TakeSample();
  // Records a successful run by `user`: by member, the time of its lists and of each of its calls.
  // `call_seconds` is empty unless the run was sampled. Returns true if it was, except for the
  // first one, which is cold.
  bool Record(const std::string& user, absl::Span<const double> seconds,
              absl::Span<const std::vector<double>> call_seconds) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how a run's time on this member's device divides among kernels; null before a run has
  // been timed.
  std::shared_ptr<const metrics::KernelShares> kernel_shares(int member = 0) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  double device_seconds() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that a user asked for the program, and the user's name for it. Of more than 64 users,
  // those who asked least recently are forgotten.
  void NoteUser(const std::string& user, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets the user, as if they had never asked: the user name may later belong to another person.
  void ForgetUser(const std::string& user) ABSL_LOCKS_EXCLUDED(mutex_);
  // One user's use of the program.
  struct Use {
    std::string name;  // the user's name for the program
    absl::Time since;  // the user's first request, once it was ready; others may have asked before
    int64_t runs = 0;  // since the user has been known
    double device_seconds = 0;
  };
  // Nothing if `user` has not asked for it or is forgotten.
  std::optional<Use> UseBy(const std::string& user) const ABSL_LOCKS_EXCLUDED(mutex_);
  // False for programs that the daemon runs for itself. Forgotten users count.
  bool has_users() const ABSL_LOCKS_EXCLUDED(mutex_);
  // One for each kernel of compiled().
  std::vector<KernelTimes> kernel_times() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Program(ShardedProgram sharded, Description description, Signature signature,
          std::vector<int> same_results);
  // Returns whether it is to be cut into pieces.
  bool IsSliced() const;
  void RecordRun(const std::string& user, double seconds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<KernelTimes> KernelTimesNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the expected device time of each call of compiled(). `samples`: how often they were
  // timed.
  std::vector<double> CallSeconds(int64_t* samples) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the factor that makes the calls' times add up to the measured time of whole runs, which
  // are measured more often; before the first run, a factor for guesses. `total`: the sum of the
  // calls' times.
  double ScaleOf(double total) const;
  // Returns the costs of each member's commands, for CutLists.
  std::vector<std::vector<fairness::CommandCost>> CommandCosts(int64_t* samples) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::vector<std::pair<std::string, Use>>::iterator FindUser(const std::string& user)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShardedProgram sharded_;
  const Description description_;
  const Signature signature_;
  const std::shared_ptr<const compiler::CompiledProgram> compiled_;
  const std::vector<int> same_results_;  // empty: no two are equal
  int64_t host_bytes_ = 0;
  memory::Charge charge_;
  std::shared_ptr<FirstCall> first_call_;
  std::atomic<bool> has_begun_{false};  // the first run has begun
  absl::Mutex loading_mutex_;
  std::shared_ptr<const LoadedProgram> loaded_ ABSL_GUARDED_BY(loading_mutex_);
  std::weak_ptr<JointMemory> joint_memory_ ABSL_GUARDED_BY(loading_mutex_);
  struct Cut {
    std::shared_ptr<const LoadedProgram> loaded;  // the parts that were cut
    std::shared_ptr<const Pieces> pieces;         // shared with runs
    int64_t samples = 0;                          // the number of samples when it was cut
  };
  Cut cut_ ABSL_GUARDED_BY(loading_mutex_);
  std::atomic<double> predicted_{0};
  std::atomic<int64_t> started_{0};
  std::atomic<int64_t> runs_{0};
  mutable absl::Mutex mutex_;
  double device_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  // By user, the most recent last.
  std::vector<std::pair<std::string, Use>> users_ ABSL_GUARDED_BY(mutex_);
  bool has_users_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<KernelSamples> kernel_samples_ ABSL_GUARDED_BY(mutex_);  // by member
  int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;  // runs that were timed kernel by kernel
};

// Returns an estimate of the host memory of a compiled program, once it is loaded.
int64_t HostBytes(const compiler::CompiledProgram& compiled);

// Returns the part of a name for labels and lists: the first line, at most 80 bytes.
std::string ShortName(const std::string& name);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_PROGRAM_H_
