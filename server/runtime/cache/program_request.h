// A program that a client asks for, and the account that pays for it.
#ifndef KILN_SERVER_RUNTIME_CACHE_PROGRAM_REQUEST_H_
#define KILN_SERVER_RUNTIME_CACHE_PROGRAM_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "server/memory/host_memory.h"
#include "server/runtime/cache/graph_source.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/first_call.h"

namespace kiln::runtime {

// Whether limits apply to a request.
enum class Admission {
  kAsked,
  kAgain,  // no limits: an earlier daemon had accepted it
};

// Numbers a state of the settings of schedules: a program's kernels are compiled with the settings
// that were there after the change with this number (tuner::SettingStore::last_change), whenever it
// is compiled.
using SettingsChange = uint64_t;
// Whichever is the last when the program is asked for.
inline constexpr SettingsChange kNewestSettings = 0;

// Pays for the graphs that are built on the way to a program. Copies share the charge; the last one
// releases it.
class Payer {
 public:
  // Without an account nothing is charged.
  explicit Payer(std::shared_ptr<memory::Account> account, Admission admission = Admission::kAsked);

  const std::shared_ptr<memory::Account>& account() const { return account_; }
  // Returns a callback that charges one more graph, in addition to those charged before. One graph
  // at a time.
  Grow ForNextGraph() const;
  // Charges for an object with a lifetime of its own. The error of the account.
  absl::StatusOr<memory::Charge> Reserve(memory::Use use, int64_t bytes) const;

 private:
  std::shared_ptr<memory::Account> account_;
  Admission admission_;
  std::shared_ptr<memory::Charge> charge_;
};

// The accounts that asked for one program while it is being made, each once. The first pays for it;
// if one lacks the host memory, the next does.
class PayersInTurn {
 public:
  // Returns false if an account of the same user, perhaps this one, is already there.
  bool Add(const std::shared_ptr<memory::Account>& account,
           Admission admission = Admission::kAsked);
  // Returns the next account after the first whose session has not ended; a payer without an
  // account if there is none.
  Payer Next();

 private:
  void Validate() const;

  struct Entry {
    std::weak_ptr<memory::Account> account;  // sessions may end while they wait
    Admission admission = Admission::kAsked;
  };
  std::vector<Entry> entries_;
  size_t next_ = 1;
};

struct ProgramRequest {
  std::shared_ptr<const GraphSource> source;
  Bindings bindings;
  ManagedDevice* device;  // not null; outlives the request
  std::string name;       // for logs and lists
  Payer payer;
  // All devices, by place of the graph's mesh; `device` is the first. Empty: `device` only.
  std::vector<ManagedDevice*> members{};
  // The only user of the program; empty: shared by all who ask for the same.
  std::string owner{};
  // Of the kernels; not kNewestSettings in requests made by ProgramCache.
  SettingsChange settings = kNewestSettings;
  // Settings have changed since. The program is only for those who ask for the same settings.
  bool is_old = false;
  // Records the progress. Not null in requests made by ProgramCache.
  std::shared_ptr<FirstCall> first_call{};

  // Names all its devices, in their order: "cpu:0", "cpu:0, cpu:1".
  std::string DeviceNames() const;
  // Builds the graph at the payer's expense; see GraphSource::Build.
  absl::StatusOr<graph::Graph> Build(ops::FormSizes* sizes = nullptr) const {
    return source->Build(bindings, payer.ForNextGraph(), sizes);
  }
};

// Returns the first user to ask; empty for the daemon's own programs.
std::string UserOf(const ProgramRequest& request);

// Returns whether one account was refused for lack of host memory that another account may have.
bool LacksHostMemory(const absl::Status& status);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_PROGRAM_REQUEST_H_
