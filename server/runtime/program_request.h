// A program that a client asks for, and who pays for it.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_REQUEST_H_
#define KILN_SERVER_RUNTIME_PROGRAM_REQUEST_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "server/memory/host_memory.h"
#include "server/runtime/first_call.h"
#include "server/runtime/graph_source.h"
#include "server/runtime/managed_device.h"

namespace kiln::runtime {

// Whether limits hold for what is asked for.
enum class Admission {
  kAsked,
  kAgain,  // none: an earlier daemon had it already
};

// Pays for the graphs that are built on the way to a program. Copies share what they have charged;
// the last one gives it back.
class Payer {
 public:
  // Without an account nothing is charged.
  explicit Payer(std::shared_ptr<memory::Account> account, Admission admission = Admission::kAsked);

  const std::shared_ptr<memory::Account>& account() const { return account_; }
  // Charges one more graph, beside those that were charged before. One graph at a time.
  Grow ForNextGraph() const;
  // Charges for something else that lives by itself. The error of the account.
  absl::StatusOr<memory::Charge> Reserve(memory::Use use, int64_t bytes) const;

 private:
  std::shared_ptr<memory::Account> account_;
  Admission admission_;
  std::shared_ptr<memory::Charge> charge_;
};

// Those who asked for one program while it is being made, each once. The first pays for it; where
// one lacks the host memory, the next does.
class PayersInTurn {
 public:
  // False: another account of the same user is there already, perhaps this one.
  bool Add(const std::shared_ptr<memory::Account>& account,
           Admission admission = Admission::kAsked);
  // The next after the first whose session has not ended; without an account if there is none.
  Payer Next();

 private:
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
  std::string name;       // for people
  Payer payer;
  // All devices, by place of the graph's mesh; `device` is the first. Empty: it alone.
  std::vector<ManagedDevice*> members{};
  // Whose program it is alone; empty: everybody's who asks for the same.
  std::string owner{};
  // Not null in what ProgramCache makes: tells what becomes of it.
  std::shared_ptr<FirstCall> first_call{};

  // Names all its devices, in their order: "cpu:0", "cpu:0, cpu:1".
  std::string DeviceNames() const;
  // At the payer's expense.
  absl::StatusOr<graph::Graph> Build() const {
    return source->Build(bindings, payer.ForNextGraph());
  }
};

// Who asked first; empty for what the daemon runs for itself.
std::string UserOf(const ProgramRequest& request);

// What one account was refused for want of host memory, another may have.
bool LacksHostMemory(const absl::Status& status);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_REQUEST_H_
