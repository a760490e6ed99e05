// Run: its inputs, results and memory.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"
#include "server/runtime/run/run.h"

namespace kiln::runtime {
namespace {

constexpr char kDependency[] = "an input failed: ";

absl::Status CountError(size_t want, size_t got) {
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "the program has ", want, " inputs, but the run gives ", got)),
                            "WRONG_INPUT_COUNT");
}

// Checks the placement of an input. A failed value has none; the run fails with its error.
absl::Status CheckPlacement(const Signature& signature, size_t input, const buffers::Value& given) {
  const buffers::Placement* wanted =
      signature.input_placements.empty() ? nullptr : signature.input_placements[input].get();
  const buffers::Placement* has = given.placement().get();
  if (has == wanted || given.type() == nullptr) return absl::OkStatus();
  if (has != nullptr && wanted != nullptr && has->IsSameAs(*wanted, given.type()->shape.size()))
    return absl::OkStatus();
  const auto describe = [](const buffers::Placement* placement) {
    return placement ? placement->ToString() : std::string("on one device");
  };
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("input ", input, " is ", describe(has),
                                              ", but the program needs it ", describe(wanted),
                                              "; copy it there (kiln.shard, Tensor.to)")),
      "INPUT_PLACEMENT", {{"input", absl::StrCat(input)}});
}

}  // namespace

absl::Status DependencyError(const absl::Status& cause) {
  // The prefix is added once, no matter how long the chain of dependencies is.
  if (absl::StartsWith(cause.message(), kDependency)) return cause;
  absl::Status status(cause.code(), absl::StrCat(kDependency, cause.message()));
  cause.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { status.SetPayload(url, payload); });
  return status;
}

absl::Status CheckInputs(const Signature& signature, absl::Span<const ValuePointer> inputs) {
  if (inputs.size() != signature.inputs.size())
    return CountError(signature.inputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorTypePointer& given = inputs[i]->type();
    const TensorTypePointer& wanted = signature.inputs[i];
    if (absl::Status status = CheckPlacement(signature, i, *inputs[i]); !status.ok()) return status;
    // Results have their program's type objects, so a step that is fed its own results compares
    // only pointers. A failed value may have no type; the run fails with its error.
    if (given == wanted || given == nullptr || *given == *wanted) continue;
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat("input ", i, " must be ", wanted->ToString(),
                                                ", but the buffer given is ", given->ToString())),
        "INPUT_MISMATCH", {{"input", absl::StrCat(i)}});
  }
  return absl::OkStatus();
}

bool Run::IsOnlyInput(const ValuePointer& input, int references) const {
  // One is in inputs_. New references are copies of these, or of those that a run has which makes
  // the value: in the list of its results, and in its caller's.
  constexpr int kOwn = 1;
  constexpr int kMakers = 2;
  const long users = input.use_count();
  std::atomic_thread_fence(std::memory_order_acquire);
  // As long as it is pending, its maker has all of its references.
  if (!input->resolved()) return input->is_result() && users == references + kOwn + kMakers;
  if (!input->status().ok() || input.use_count() != references + kOwn) return false;
  // Earlier users read the value before they dropped their references, so before the run writes.
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

const buffers::Value* Run::FindReplaced(size_t result, const buffers::Account& account,
                                        int references) const {
  const Signature& signature = bound_->signature;
  if (references == 0 || result < signature.outputs.size()) return nullptr;
  if (sharded().is_joint() || !program().device().device().commits()) return nullptr;
  const size_t update = result - signature.outputs.size();
  const std::vector<int>& in_place = program().compiled().updates_in_place;
  if (!std::binary_search(in_place.begin(), in_place.end(), static_cast<int>(update)))
    return nullptr;
  if (!program().is_only_result(result)) return nullptr;
  const auto input = static_cast<size_t>(signature.updated_inputs[update]);
  const ValuePointer& value = inputs_[input];
  // Also if it must be widened: it has less memory than the result needs.
  const bool fits = value->buffer() != nullptr && value->account() == &account &&
                    value->buffer()->bytes() >= bound_->result_bytes(result) &&
                    (bound_->widen.empty() || bound_->widen[input] == nullptr ||
                     value->buffer()->bytes() >= bound_->input_bytes(input));
  return fits && IsOnlyInput(value, references) ? value.get() : nullptr;
}

absl::Status Run::Allocate(absl::Span<const std::shared_ptr<buffers::Account>> accounts,
                           int references) {
  const Signature& signature = bound_->signature;
  results_.reserve(signature.outputs.size() + signature.updates.size());
  for (const auto* types : {&signature.outputs, &signature.updates}) {
    for (const TensorTypePointer& type : *types) {
      const size_t result = results_.size();
      if (const size_t same = program().same_result(result); same != result) {
        KILN_CHECK_LT(same, result) << label_;
        results_.push_back(results_[same]);
        continue;
      }
      if (const buffers::Value* old = FindReplaced(result, *accounts[0], references)) {
        results_.push_back(buffers::Value::Over(type, *old));
        results_.back()->SetIsResult();
        ++written_in_place_;
        continue;
      }
      auto value = AllocateResult(result, type, accounts);
      if (!value.ok()) return value.status();
      (*value)->SetIsResult();
      results_.push_back(*std::move(value));
    }
  }
  if (absl::Status status = memory_.Reserve(program(), loaded_, accounts); !status.ok())
    return status;
  return AllocateWider(accounts[0]);
}

absl::StatusOr<ValuePointer> Run::AllocateResult(
    size_t result, const TensorTypePointer& type,
    absl::Span<const std::shared_ptr<buffers::Account>> accounts) const {
  const Signature& signature = bound_->signature;
  const auto allocate = [&](int member, TensorTypePointer own,
                            int64_t bytes_min) -> absl::StatusOr<ValuePointer> {
    auto value = device(member).pool()->Allocate(std::move(own), accounts[member], bytes_min);
    // The device may be lost without the daemon having noticed.
    if (!value.ok()) return device(member).AfterFailure(value.status());
    return value;
  };
  if (signature.result_placements.empty()) {
    const int member = signature.result_members.empty() ? 0 : signature.result_members[result];
    return allocate(member, type, bound_->result_bytes(result));
  }
  return buffers::AllocateParts(type, signature.result_placements[result],
                                [&](size_t member, TensorTypePointer part) {
                                  return allocate(static_cast<int>(member), std::move(part), 0);
                                });
}

absl::Status Run::AllocateWider(const std::shared_ptr<buffers::Account>& account) {
  KILN_CHECK(bound_->widen.empty() || bound_->widen.size() == inputs_.size()) << label_;
  for (size_t i = 0; i < bound_->widen.size(); ++i) {
    const drivers::Buffer* given = inputs_[i]->buffer();
    // Without a buffer the input has failed, and so will the run.
    if (given == nullptr) continue;
    // Results of other runs often have the capacity already.
    if (given->bytes() >= bound_->input_bytes(i)) continue;
    ManagedDevice& on = program().device();
    auto value = on.pool()->Allocate(inputs_[i]->type(), account, bound_->input_bytes(i));
    if (!value.ok()) return on.AfterFailure(value.status());
    wider_.resize(inputs_.size());
    wider_[i] = std::move(*value);
  }
  return absl::OkStatus();
}

absl::Status Run::Widen() {
  for (size_t i = 0; i < wider_.size(); ++i) {
    // An empty value needs the larger buffer, but no copy.
    if (wider_[i] == nullptr || bound_->widen[i] == nullptr) continue;
    // Submitted before the program, which sees the copied bytes because lists run in order. The
    // callback keeps both buffers until the copy has ended, even if this run has failed by then.
    drivers::Buffer* const pair[] = {inputs_[i]->buffer(), wider_[i]->buffer()};
    absl::Status status = program().device().device().Submit(
        *bound_->widen[i], pair, {},
        [bound = bound_, from = inputs_[i], to = wider_[i]](const drivers::SubmitResult&) {});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

Slots Run::MakeSlots(int member) const {
  Slots slots;
  KILN_CHECK_LT(member, loaded_->members.size()) << label_;
  const LoadedProgram::Member& loaded = loaded_->members[member];
  const auto add = [&](const buffers::Value& value) {
    if (value.pool() == loaded.pool.get()) {
      slots.push_back(value.buffer());
    } else if (!value.parts().empty()) {
      slots.push_back(value.parts()[member]->buffer());
    } else {
      // The list names no value that only another device has, but every slot needs a buffer.
      slots.push_back(loaded.place.get());
    }
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool is_wider = i < wider_.size() && wider_[i] != nullptr;
    add(*(is_wider ? wider_ : inputs_)[i]);
  }
  if (bound_->variables) slots.push_back(bound_->variables->buffer());
  for (const ValuePointer& value : results_) add(*value);
  memory_.AddSlots(sharded(), *loaded_, member, &slots);
  return slots;
}

absl::Status Run::InputFailure() const {
  for (const ValuePointer& input : inputs_) {
    if (absl::Status status = input->failure(); !status.ok()) return DependencyError(status);
  }
  const buffers::Value* variables = bound_->variables.get();
  if (variables != nullptr && variables->resolved()) return variables->status();
  return absl::OkStatus();
}

absl::Status Run::Loss() const {
  for (const LoadedProgram::Member& member : loaded_->members)
    if (member.life != member.pool->life()) return member.pool->LostError();
  if (memory_.lost()) return program().device().pool()->LostError();
  for (const auto* values : {&inputs_, &results_, &wider_}) {
    for (const ValuePointer& value : *values) {
      if (value == nullptr || !value->lost()) continue;
      if (value->pool() != nullptr) return value->pool()->LostError();
      for (const ValuePointer& part : value->parts())
        if (part->lost()) return part->pool()->LostError();
    }
  }
  const buffers::Value* variables = bound_->variables.get();
  if (variables != nullptr && variables->lost()) return variables->pool()->LostError();
  return absl::OkStatus();
}

}  // namespace kiln::runtime
