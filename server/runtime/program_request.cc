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

void PayersInTurn::Add(const std::shared_ptr<memory::Account>& account) {
  const bool is_there = std::any_of(accounts_.begin(), accounts_.end(),
                                    [&](const auto& payer) { return payer.lock() == account; });
  if (!is_there) accounts_.push_back(account);
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
