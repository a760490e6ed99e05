// GangRun: its inputs, results and memory.
#include <memory>
#include <utility>
#include <vector>

#include "server/runtime/gang_run.h"

namespace kiln::runtime {

absl::Status GangRun::Allocate(const std::vector<std::shared_ptr<buffers::Account>>& accounts) {
  const Signature& signature = bound_->signature;
  std::vector<TensorTypePointer> types = signature.outputs;
  types.insert(types.end(), signature.updates.begin(), signature.updates.end());
  for (size_t i = 0; i < types.size(); ++i) {
    if (const int member = MemberOfResult(i); member >= 0) {
      auto whole = device(member).pool()->Allocate(types[i], accounts[member]);
      if (!whole.ok()) return device(member).AfterFailure(whole.status());
      results_.push_back(*std::move(whole));
      continue;
    }
    const auto& placement = signature.result_placements[i];
    // The type of all members' parts, which have the same memory shape even if they hold different
    // amounts.
    const auto type = std::make_shared<const buffers::TensorType>(buffers::TensorType{
        types[i]->dtype, buffers::PartOf(*placement, types[i]->shape, 0).memory});
    std::vector<ValuePointer> parts;
    for (int member = 0; member < gang().size(); ++member) {
      auto part = device(member).pool()->Allocate(type, accounts[member]);
      if (!part.ok()) return device(member).AfterFailure(part.status());
      parts.push_back(*std::move(part));
    }
    results_.push_back(buffers::Value::Sharded(types[i], placement, std::move(parts)));
  }
  for (int member = 0; member < gang().size(); ++member) {
    auto charge = accounts[member]->AddArena(gang().scratch_bytes(member) +
                                             loaded_->members[member].mirror_bytes);
    if (!charge.ok()) return charge.status();
    arena_charges_.push_back(*std::move(charge));
  }
  auto memory = gang().Reserve(loaded_);
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  return absl::OkStatus();
}

absl::Status GangRun::InputFailure() const {
  for (const ValuePointer& input : inputs_) {
    if (absl::Status status = input->failure(); !status.ok()) return DependencyError(status);
  }
  return absl::OkStatus();
}

bool GangRun::HasLost(int member) const {
  const auto lost = [](const buffers::Value* value) { return value != nullptr && value->lost(); };
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (lost(OnMember(*inputs_[i], MemberOfInput(i), member))) return true;
  for (size_t i = 0; i < results_.size(); ++i)
    if (lost(OnMember(*results_[i], MemberOfResult(i), member))) return true;
  return false;
}

int GangRun::MemberOfInput(size_t input) const {
  const std::vector<int>& members = bound_->signature.input_members;
  return members.empty() ? -1 : members[input];
}

int GangRun::MemberOfResult(size_t result) const {
  const std::vector<int>& members = bound_->signature.result_members;
  return members.empty() ? -1 : members[result];
}

const buffers::Value* GangRun::OnMember(const buffers::Value& value, int home, int member) {
  if (home < 0) return value.parts()[member].get();
  return home == member ? &value : nullptr;
}

}  // namespace kiln::runtime
