#include "server/runtime/cache/program_request.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/quota/refusal.h"

namespace kiln::runtime {
namespace {

// Memory that compiling takes for each primitive, from the graph to machine code; measured with
// graphs of many small kernels, which take the most.
constexpr int64_t kCompilationBytes = 6 << 10;

absl::Status Resize(memory::Charge& charge, int64_t bytes, Admission admission) {
  if (admission == Admission::kAsked) return charge.Resize(bytes);
  charge.ForceResize(bytes);
  return absl::OkStatus();
}

}  // namespace

Payer::Payer(std::shared_ptr<memory::Account> account, Admission admission)
    : account_(std::move(account)),
      admission_(admission),
      charge_(std::make_shared<memory::Charge>()) {
  if (account_) *charge_ = account_->Open(memory::Use::kCompilation);
}

Grow Payer::ForNextGraph() const {
  return [charge = charge_, before = charge_->bytes(), admission = admission_](int64_t primitives) {
    return Resize(*charge, before + primitives * kCompilationBytes, admission);
  };
}

absl::StatusOr<memory::Charge> Payer::Reserve(memory::Use use, int64_t bytes) const {
  if (!account_) return memory::Charge();
  memory::Charge charge = account_->Open(use);
  if (absl::Status status = Resize(charge, bytes, admission_); !status.ok()) return status;
  return charge;
}

bool PayersInTurn::Add(const std::shared_ptr<memory::Account>& account, Admission admission) {
  const auto user_of = [](const auto& each) { return each ? each->user() : nullptr; };
  bool knows_account = false, knows_user = false;
  for (const Entry& entry : entries_) {
    const auto known = entry.account.lock();
    knows_account = knows_account || known == account;
    knows_user = knows_user || user_of(known) == user_of(account);
  }
  if (!knows_account) entries_.push_back({account, admission});
  KILN_VALIDATE(*this, entries_.size());
  return !knows_user;
}

Payer PayersInTurn::Next() {
  while (next_ < entries_.size()) {
    const Entry& entry = entries_[next_++];
    if (auto account = entry.account.lock()) return Payer(std::move(account), entry.admission);
  }
  KILN_VALIDATE(*this, entries_.size());
  return Payer(nullptr);
}

void PayersInTurn::Validate() const {
  KILN_CHECK_GT(next_, 0);
  KILN_CHECK_LE(next_, std::max<size_t>(entries_.size(), 1));
  std::set<const memory::Account*> accounts;
  for (const Entry& entry : entries_) {
    const auto account = entry.account.lock();
    if (account == nullptr) continue;  // its session has ended
    const bool is_new = accounts.insert(account.get()).second;
    KILN_CHECK(is_new) << "an account pays twice";
  }
}

bool LacksHostMemory(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return false;
  const auto scope = quota::Unexplained(status);
  return errors::Reason(status) == "HOST_MEMORY" ||
         (scope && scope->resource == quota::Resource::kHostMemory);
}

std::string ProgramRequest::DeviceNames() const {
  if (members.empty()) return device->name();
  std::vector<std::string> names;
  for (const ManagedDevice* member : members) names.push_back(member->name());
  return absl::StrJoin(names, ", ");
}

std::string UserOf(const ProgramRequest& request) {
  const memory::Account* payer = request.payer.account().get();
  return payer == nullptr ? std::string() : payer->user_name();
}

}  // namespace kiln::runtime
