#include "drivers/level_zero/prepared_list.h"

#include <utility>

#include "absl/status/status.h"
#include "proto/check/check.h"

namespace kiln::drivers::level_zero {

absl::StatusOr<std::shared_ptr<Program>> Program::Make(std::shared_ptr<Context> context,
                                                       CommandList list, ListNeeds needs) {
  std::shared_ptr<Program> program(new Program(std::move(context), std::move(needs)));
  program->recorded_.num_slots = program->num_slots();
  if (absl::Status status = program->Build(std::move(list)); !status.ok()) return status;
  // As much work as building it.
  KILN_VALIDATE(*program, 1);
  // Made here, so that Prepare fails if there is no memory for it.
  auto recording =
      Recording::Make(program->context_, program->recorded_, Recording::Order::kBySlots);
  if (!recording.ok()) return recording.status();
  program->recordings_.push_back(*std::move(recording));
  return program;
}

void Program::Validate() const {
  KILN_CHECK_EQ(parts().back().end, recorded_.sections.size());
  size_t end = 0;
  for (const Section& section : recorded_.sections) {
    KILN_CHECK_EQ(section.begin, end);
    KILN_CHECK_LT(section.begin, section.end);
    end = section.end;
    KILN_CHECK_LE(end, recorded_.calls.size());
    for (size_t i = section.begin; i < end; ++i)
      KILN_CHECK_EQ(recorded_.calls[i].HasAddresses(), section.has_addresses) << "call " << i;
  }
  KILN_CHECK_EQ(end, recorded_.calls.size());
}

absl::Status Program::Add(ListCall call) {
  if (!call.HasAddresses()) recorded_.wants_table = true;
  std::vector<Section>& sections = recorded_.sections;
  const bool begins =
      sections.size() == first_section_ || sections.back().has_addresses != call.HasAddresses();
  if (begins) BeginSection(call.HasAddresses());
  const std::vector<int> dependencies = dependencies_.Add(call.operands);
  // One barrier serves all calls before it.
  const bool needs_barrier = !dependencies.empty() && dependencies.back() >= calls_before_barrier_;
  if (needs_barrier)
    calls_before_barrier_ = static_cast<int>(sections.back().end - sections.back().begin);
  recorded_.calls.push_back({std::move(call), needs_barrier});
  sections.back().end = recorded_.calls.size();
  return absl::OkStatus();
}

// Each section begins with a barrier.
void Program::BeginSection(bool has_addresses) {
  const size_t at = recorded_.calls.size();
  recorded_.sections.push_back({at, at, has_addresses});
  dependencies_ = Dependencies(static_cast<int>(num_slots()));
  calls_before_barrier_ = 0;
}

size_t Program::EndPart() {
  first_section_ = recorded_.sections.size();
  return first_section_;
}

// Returns an unused recording with these addresses; else any unused one; else a new one. A timed
// recording is used only once.
absl::StatusOr<std::shared_ptr<Recording>> Program::Take(absl::Span<char* const> addresses,
                                                         Recording::Order order) {
  std::shared_ptr<Recording> taken;
  for (const auto& recording : recordings_) {
    if (recording->order() != order || recording->in_use) continue;
    if (taken == nullptr || recording->Has(addresses)) taken = recording;
  }
  if (taken == nullptr) {
    auto made = Recording::Make(context_, recorded_, order);
    if (!made.ok()) return made.status();
    taken = *std::move(made);
    if (order != Recording::Order::kTimed) recordings_.push_back(taken);
  }
  KILN_CHECK(!taken->in_use) << "a recording is taken twice";
  taken->in_use = true;
  return taken;
}

class Program::Run : public ListRun {
 public:
  explicit Run(Program& program) : program_(program), context_(*program.context_) {}

  absl::Status Begin() override {
    const Recording::Order order =
        options.time_commands
            ? Recording::Order::kTimed
            : (program_.SlotsOverlap(slots) ? Recording::Order::kAll : Recording::Order::kBySlots);
    auto recording = program_.Take(slots, order);
    KILN_CHECK(recording_ == nullptr);
    if (recording.ok()) recording_ = *std::move(recording);
    return recording.status();
  }

  absl::Status Enqueue(size_t number) override {
    const Part& part = program_.parts()[number];
    if (part.begin == part.end) return absl::OkStatus();
    std::vector<ze_command_list_handle_t> lists;
    absl::Status status = recording_->Prepare(part.begin, part.end, slots, &lists);
    if (!status.ok()) return status;
    auto fence = context_.TakeFence();
    if (!fence.ok()) return fence.status();
    const ze_result_t code = context_.ze().CommandQueueExecuteCommandLists(
        context_.queue(), static_cast<uint32_t>(lists.size()), lists.data(), fence->get());
    if (code != ZE_RESULT_SUCCESS) return context_.Failure("cannot execute a command list", code);
    fences_.push_back(std::make_shared<Fence>(*std::move(fence)));
    if (program_.mirror().bytes() > 0) program_.last_ = fences_.back();
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<Completion>> Mark() override {
    return fences_.empty() ? nullptr : fences_.back();
  }

  absl::Status End() override { return absl::OkStatus(); }

  absl::Status AwaitEnqueued() override {
    const auto last = std::exchange(program_.last_, nullptr);
    return last == nullptr ? absl::OkStatus() : last->Await();
  }

  absl::Status AwaitEnd() override {
    absl::Status status;
    for (const std::shared_ptr<Fence>& fence : fences_) {
      const absl::Status ended = fence->Await();
      if (status.ok()) status = ended;
    }
    return status;
  }

  void Drain() override { AwaitEnd().IgnoreError(); }

  double Measure() override {
    if (!options.time_commands) return 0;
    const std::vector<double> seconds = recording_->CallSeconds();
    for (size_t i = 0; i < seconds.size(); ++i)
      result.command_seconds[program_.recorded_.calls[i].command] += seconds[i];
    return 0;
  }

  void Release() override {
    fences_.clear();
    if (recording_ == nullptr) return;
    // Lists that were prepared may not have been executed.
    if (!result.status.ok()) recording_->Forget();
    const bool was_in_use = recording_->in_use.exchange(false);
    KILN_CHECK(was_in_use) << "a recording is released twice";
    recording_ = nullptr;
  }

 private:
  Program& program_;
  Context& context_;
  // One for each execution, in order; shared with signals that wait for one.
  std::vector<std::shared_ptr<Fence>> fences_;
  std::shared_ptr<Recording> recording_;  // in use until the end
};

std::shared_ptr<ListRun> Program::NewRun() { return std::make_shared<Run>(*this); }

}  // namespace kiln::drivers::level_zero
