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

// As logs and people have it.
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

  // Loads the kernels and records the list. `device` outlives the program. `shares_results`: those
  // that are equal are one value (share_results.h).
  static absl::StatusOr<std::shared_ptr<Program>> Load(ManagedDevice& device,
                                                       Description description, Signature signature,
                                                       compiler::CompiledProgram compiled,
                                                       bool shares_results = false);

  // The same on several devices; the first one is device().
  static absl::StatusOr<std::shared_ptr<Program>> LoadGang(std::unique_ptr<Gang> gang,
                                                           Description description,
                                                           Signature signature);

  // Null: it runs on device() alone, and what is said of its loaded parts and pieces is its.
  Gang* gang() const { return gang_.get(); }
  const Description& description() const { return description_; }
  std::string short_digest() const { return ShortDigest(description_.digest); }
  const Signature& signature() const { return signature_; }
  // Of a gang whose members run several programs, the kernels and calls of one behind the other's;
  // the rest is the first one's.
  const compiler::CompiledProgram& compiled() const { return compiled_; }
  // The result (outputs, then updates) whose value this one is, the first of all that are equal.
  size_t same_result(size_t result) const {
    return same_results_.empty() ? result : static_cast<size_t>(same_results_[result]);
  }
  // The names of all devices that it runs on, without repetition.
  std::vector<std::string> device_names() const;
  // The device that runs this kernel of compiled(), or the first of those.
  ManagedDevice& device_of_kernel(size_t kernel) const;
  ManagedDevice& device() const { return device_; }
  // What the device has of it.
  struct Loaded {
    int64_t life = 0;  // the pool's
    std::vector<std::unique_ptr<drivers::LoadedKernel>> kernels;
    std::unique_ptr<drivers::PreparedList> list;  // after the kernels: it goes first
  };
  // The same as several lists, so that others' come in between (fairness/slices.h).
  struct Pieces {
    struct Piece {
      double seconds = 0;     // expected
      int first_command = 0;  // of the whole list; the piece before may have a part of it
      std::unique_ptr<drivers::PreparedList> list;
    };
    std::shared_ptr<const Loaded> loaded;  // whose kernels they use
    std::vector<Piece> list;               // two or more
  };
  // Loads it again if the device was lost and revived since. The device's errors.
  absl::StatusOr<std::shared_ptr<const Loaded>> OnDevice() ABSL_LOCKS_EXCLUDED(loading_mutex_);
  // Whether a run that begins now may take longer than a slice, on a device that yields: it is then
  // submitted as a list that may end early. Before its first run nothing is known, and by how much
  // runs differ depends on whether dimensions are variables (`varies`).
  bool MayEndEarly(bool varies) const;
  // The pieces in which a run that begins now is submitted; null: it is submitted whole, as
  // `loaded.list`, on devices that yield always. It is cut where it is expected to take longer than
  // a slice: by what its kernels have been measured to take, again when they have been timed eight
  // times as often; before the first run by their sizes, and into pieces a fraction as long, since
  // sizes promise too much. The device's errors.
  absl::StatusOr<std::shared_ptr<const Pieces>> CutIntoPieces(
      const std::shared_ptr<const Loaded>& loaded) ABSL_LOCKS_EXCLUDED(loading_mutex_, mutex_);
  // The same for a gang, whose `loaded` this is.
  absl::StatusOr<std::shared_ptr<const Gang::Pieces>> CutGangIntoPieces(
      const std::shared_ptr<const Gang::Loaded>& loaded)
      ABSL_LOCKS_EXCLUDED(loading_mutex_, mutex_);
  // Expected device time of the first piece; of a run that may end early, a slice.
  double first_seconds(bool varies = false) const;
  // Host memory that it takes; about.
  int64_t host_bytes() const { return host_bytes_; }
  // The charge for that memory lives as long as the program. Before others see it.
  void Keep(memory::Charge charge) { charge_ = std::move(charge); }
  int64_t arena_bytes() const { return arena_bytes_; }

  // What it took until the answer to its first run. Before others see it.
  void SetFirstCall(std::shared_ptr<FirstCall> call) { first_call_ = std::move(call); }
  const std::shared_ptr<FirstCall>& first_call() const { return first_call_; }
  // For the first run that asks, which is to go on with it; null for all others.
  std::shared_ptr<FirstCall> TakeFirstCall() {
    if (has_begun_.load(std::memory_order_relaxed) || has_begun_.exchange(true)) return nullptr;
    return first_call_;
  }

  // Expected device time of a run: a moving average of what was measured; before that, a guess from
  // the kernels' sizes.
  double predicted_seconds() const { return predicted_.load(std::memory_order_relaxed); }
  // True for the first two runs, then for the 4th, 8th, 16th and 32nd and for every 64th, these at
  // most ten times a second over all programs: these runs are timed kernel by kernel. The limit in
  // time keeps the cost far below 1%; see metrics/README.md.
  bool TakeSample();
  // A run of `user`'s on one device ended well. `command_seconds` is empty unless it was a sampled
  // one. Returns true if it was and was not the first of those, which is cold.
  bool Record(const std::string& user, double seconds, const std::vector<double>& command_seconds)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a run on several devices: by member, what its list and each of its calls took.
  bool RecordGang(const std::string& user, const std::vector<double>& seconds,
                  const std::vector<std::vector<double>>& call_seconds) ABSL_LOCKS_EXCLUDED(mutex_);
  // How a run's time on its device, or on this member's, divides among kernels; null before one has
  // been timed.
  std::shared_ptr<const metrics::KernelShares> kernel_shares(int member = 0) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  double device_seconds() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Somebody has asked for it, under a name of his own. Who asked last stays known longest; of more
  // than 64, those who asked first are forgotten.
  void NoteUser(const std::string& user, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // As if he had never asked: who has his name later is somebody else.
  void ForgetUser(const std::string& user) ABSL_LOCKS_EXCLUDED(mutex_);
  // What one of them has of it.
  struct Use {
    std::string name;  // what he calls it
    absl::Time since;  // when he first asked for it and it was there; others may have before
    int64_t runs = 0;  // since he has been known
    double device_seconds = 0;
  };
  // Nothing if `user` never asked for it.
  std::optional<Use> UseBy(const std::string& user) const ABSL_LOCKS_EXCLUDED(mutex_);
  // False for what the daemon runs for itself. Who was forgotten counts.
  bool has_users() const ABSL_LOCKS_EXCLUDED(mutex_);
  // One for each kernel of compiled().
  std::vector<KernelTimes> kernel_times() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // `as_they_are`: images are finished by the device itself.
  absl::StatusOr<std::shared_ptr<const Loaded>> LoadNow(bool as_they_are) const;
  Program(ManagedDevice& device, Description description, Signature signature,
          compiler::CompiledProgram compiled);
  drivers::CommandList Commands(const Loaded& loaded) const;
  // Whether it is to be cut into pieces.
  bool IsSliced() const;
  void RecordRun(const std::string& user, double seconds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<KernelTimes> KernelTimesNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Expected device time of each call of compiled(). `samples`: how often they were timed.
  std::vector<double> CallSeconds(int64_t* samples) const ABSL_LOCKS_EXCLUDED(mutex_);
  // By this, so that all together take what whole runs have been measured to take, which is done
  // more often; `total`: what they take so far.
  double ScaleOf(double total) const;
  // Of each command.
  std::vector<fairness::CommandCost> CommandCosts(int64_t* samples) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Of a gang, by member: of each of its calls.
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
  std::vector<int> same_results_;  // empty: each is its own
  int64_t arena_bytes_ = 0;
  int64_t host_bytes_ = 0;
  memory::Charge charge_;
  std::shared_ptr<FirstCall> first_call_;
  std::atomic<bool> has_begun_{false};  // a first run has
  absl::Mutex loading_mutex_;
  std::shared_ptr<const Loaded> loaded_ ABSL_GUARDED_BY(loading_mutex_);  // shared with runs
  template <typename LoadedParts, typename Parts>
  struct Cut {
    std::shared_ptr<const LoadedParts> loaded;  // what was cut
    std::shared_ptr<const Parts> pieces;        // shared with runs
    int64_t samples = 0;                        // by which it was cut
  };
  // What `cut` has; if it is of something else, or old, what `make_pieces` makes.
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
  // By user, the latest last.
  std::vector<std::pair<std::string, Use>> users_ ABSL_GUARDED_BY(mutex_);
  bool has_users_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<KernelSamples> kernel_samples_ ABSL_GUARDED_BY(mutex_);  // by member
  int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;  // runs that were timed kernel by kernel
};

// Those commands of a list, or parts of them.
drivers::CommandList CommandsOf(const drivers::CommandList& all,
                                absl::Span<const fairness::CommandPart> parts);
// Of each call, as fairness::CommandCost has it.
std::vector<int64_t> CallPoints(const compiler::CompiledProgram& program);

// A name's readable part for labels and lists: the first line, at most 80 bytes.
std::string ShortName(const std::string& name);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_H_
