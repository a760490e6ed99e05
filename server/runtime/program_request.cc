#include "server/runtime/program_request.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "server/errors/errors.h"
#include "server/quota/refusal.h"

namespace kiln::runtime {
namespace {

// What compiling takes for each primitive, from the graph to machine code; measured with graphs of
// many small kernels, the dearest there are.
constexpr int64_t kCompilationBytes = 6 << 10;

}  // namespace

Payer::Payer(std::shared_ptr<memory::Account> account)
    : account_(std::move(account)), charge_(std::make_shared<memory::Charge>()) {
  if (account_) *charge_ = account_->Open(memory::Use::kCompilation);
}

Grow Payer::ForNextGraph() const {
  return [charge = charge_, before = charge_->bytes()](int64_t primitives) {
    return charge->Resize(before + primitives * kCompilationBytes);
  };
}

bool PayersInTurn::Add(const std::shared_ptr<memory::Account>& account) {
  const auto user_of = [](const auto& each) { return each ? each->user() : nullptr; };
  bool knows_account = false, knows_user = false;
  for (const auto& payer : accounts_) {
    const auto known = payer.lock();
    knows_account = knows_account || known == account;
    knows_user = knows_user || user_of(known) == user_of(account);
  }
  if (!knows_account) accounts_.push_back(account);
  return !knows_user;
}

std::shared_ptr<memory::Account> PayersInTurn::Next() {
  while (next_ < accounts_.size()) {
    if (auto account = accounts_[next_++].lock()) return account;
  }
  return nullptr;
}

bool LacksHostMemory(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return false;
  const auto scope = quota::Unexplained(status);
  return errors::Reason(status) == "HOST_MEMORY" ||
         (scope && scope->resource == quota::Resource::kHostMemory);
}

}  // namespace kiln::runtime
