// A program on its device: compiled, loaded, recorded, ready to be replayed.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_H_
#define KILN_SERVER_RUNTIME_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "compiler/compiler.h"
#include "server/buffers/value.h"
#include "server/fairness/slices.h"
#include "server/memory/host_memory.h"
#include "server/runtime/first_call.h"
#include "server/runtime/gang.h"
#include "server/runtime/kernel_samples.h"
#include "server/runtime/managed_device.h"
#include "server/runtime/signature.h"

namespace kiln::runtime {

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
  };

  // Loads the kernels and records the list. `device` outlives the program. `shares_results`:
  // results that are equal in every run become one value (share_results.h).
  static absl::StatusOr<std::shared_ptr<Program>> Load(ManagedDevice& device,
                                                       Description description, Signature signature,
                                                       compiler::CompiledProgram compiled,
                                                       bool shares_results = false);

  // The same on several devices; the first one is device().
  static absl::StatusOr<std::shared_ptr<Program>> LoadGang(std::unique_ptr<Gang> gang,
                                                           Description description,
                                                           Signature signature);

  // Null: it runs on device() only, and its loaded parts and pieces are those below.
  Gang* gang() const { return gang_.get(); }
  const Description& description() const { return description_; }
  std::string short_digest() const { return ShortDigest(description_.digest); }
  const Signature& signature() const { return signature_; }
  // For a gang whose members run several programs: the kernels and calls of all of them, one
  // program after another. The rest is from the first program.
  const compiler::CompiledProgram& compiled() const { return compiled_; }
  // Returns the result (outputs, then updates) that is the value of this one: the first of all that
  // are equal.
  size_t same_result(size_t result) const {
    return same_results_.empty() ? result : static_cast<size_t>(same_results_[result]);
  }
  // Returns the names of all devices that it runs on, without repetition.
  std::vector<std::string> device_names() const;
  // Returns the device that runs this kernel of compiled(), the first one if there are several.
  ManagedDevice& device_of_kernel(size_t kernel) const;
  ManagedDevice& device() const { return device_; }
  // The parts of the program that are loaded on the device.
  struct Loaded {
    int64_t life = 0;  // the pool's
    std::vector<std::unique_ptr<drivers::LoadedKernel>> kernels;
    std::unique_ptr<drivers::PreparedList> list;  // after the kernels: destroyed before them
  };
  // The list split into several, so that other lists can run in between (fairness/slices.h).
  struct Pieces {
    struct Piece {
      double seconds = 0;     // expected
      int first_command = 0;  // in the whole list; the piece before may contain a part of it
      std::unique_ptr<drivers::PreparedList> list;
    };
    std::shared_ptr<const Loaded> loaded;  // provides their kernels
    std::vector<Piece> list;               // two or more
  };
  // Returns the loaded program; loads it again if the device was lost and revived since. Errors:
  // the device's.
  absl::StatusOr<std::shared_ptr<const Loaded>> OnDevice() ABSL_LOCKS_EXCLUDED(loading_mutex_);
  // Returns whether a run that begins now may take longer than a slice, on a device that yields. It
  // is then submitted as a list that may end early. True before the first run, when no time is
  // known. Runs differ more in time if dimensions are variables (`varies`).
  bool MayEndEarly(bool varies) const;
  // Returns the pieces in which a run that begins now is submitted, or null if it is submitted
  // whole, as `loaded.list`; always null on devices that yield. A run is cut if it is expected to
  // take longer than a slice. The expected times are those measured for its kernels; it is cut
  // again when they have been timed eight times as often. Before the first run they are estimated
  // from the kernels' sizes, and the pieces are a fraction as long, since sizes underestimate.
  // Errors: the device's.
  absl::StatusOr<std::shared_ptr<const Pieces>> CutIntoPieces(
      const std::shared_ptr<const Loaded>& loaded) ABSL_LOCKS_EXCLUDED(loading_mutex_, mutex_);
  // The same for a gang, whose `loaded` this is.
  absl::StatusOr<std::shared_ptr<const Gang::Pieces>> CutGangIntoPieces(
      const std::shared_ptr<const Gang::Loaded>& loaded)
      ABSL_LOCKS_EXCLUDED(loading_mutex_, mutex_);
  // Expected device time of the first piece; for a run that may end early, a slice.
  double first_seconds(bool varies = false) const;
  // Approximate host memory that it takes.
  int64_t host_bytes() const { return host_bytes_; }
  // Owns the charge for that memory as long as the program lives. Requires: no other thread uses
  // the program yet.
  void Keep(memory::Charge charge) { charge_ = std::move(charge); }
  int64_t arena_bytes() const { return arena_bytes_; }

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
  // Records a successful run by `user` on one device. `command_seconds` is empty unless the run was
  // sampled. Returns true if it was, except for the first one, which is cold.
  bool Record(const std::string& user, double seconds, const std::vector<double>& command_seconds)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a run on several devices: by member, the time of its list and of each of its
  // calls.
  bool RecordGang(const std::string& user, const std::vector<double>& seconds,
                  const std::vector<std::vector<double>>& call_seconds) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how a run's time on its device, or on this member's, divides among kernels; null before
  // a run has been timed.
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
  // `as_they_are`: the device finishes the images itself.
  absl::StatusOr<std::shared_ptr<const Loaded>> LoadNow(bool as_they_are) const;
  Program(ManagedDevice& device, Description description, Signature signature,
          compiler::CompiledProgram compiled);
  drivers::CommandList Commands(const Loaded& loaded) const;
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
  // Returns the cost of each command.
  std::vector<fairness::CommandCost> CommandCosts(int64_t* samples) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the expected time of each call of a gang, by member.
  std::vector<std::vector<double>> GangCallSeconds(int64_t* samples) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::pair<std::string, Use>>::iterator FindUser(const std::string& user)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<const Pieces>> CutNow(const std::shared_ptr<const Loaded>& loaded,
                                                       int64_t* samples) const;

  ManagedDevice& device_;
  const Description description_;
  const Signature signature_;
  const compiler::CompiledProgram compiled_;
  std::unique_ptr<Gang> gang_;
  std::vector<int> same_results_;  // empty: no two are equal
  int64_t arena_bytes_ = 0;
  int64_t host_bytes_ = 0;
  memory::Charge charge_;
  std::shared_ptr<FirstCall> first_call_;
  std::atomic<bool> has_begun_{false};  // the first run has begun
  absl::Mutex loading_mutex_;
  std::shared_ptr<const Loaded> loaded_ ABSL_GUARDED_BY(loading_mutex_);  // shared with runs
  template <typename LoadedParts, typename Parts>
  struct Cut {
    std::shared_ptr<const LoadedParts> loaded;  // the parts that were cut
    std::shared_ptr<const Parts> pieces;        // shared with runs
    int64_t samples = 0;                        // the number of samples when it was cut
  };
  // Returns the pieces in `cut`, or the result of `make_pieces` if `cut` is old or is for other
  // loaded parts.
  template <typename LoadedParts, typename Parts, typename MakePieces>
  absl::StatusOr<std::shared_ptr<const Parts>> CutAgainIfOld(
      const std::shared_ptr<const LoadedParts>& loaded, Cut<LoadedParts, Parts>* cut,
      const MakePieces& make_pieces) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_mutex_)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Cut<Loaded, Pieces> cut_ ABSL_GUARDED_BY(loading_mutex_);
  Cut<Gang::Loaded, Gang::Pieces> gang_cut_ ABSL_GUARDED_BY(loading_mutex_);
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

// Returns the list of these commands, or parts of commands.
drivers::CommandList CommandsOf(const drivers::CommandList& all,
                                absl::Span<const fairness::CommandPart> parts);
// Returns the points of each call, as in fairness::CommandCost.
std::vector<int64_t> CallPoints(const compiler::CompiledProgram& program);

// Returns the part of a name for labels and lists: the first line, at most 80 bytes.
std::string ShortName(const std::string& name);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_H_
