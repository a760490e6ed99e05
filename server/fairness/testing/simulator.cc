#include "server/fairness/testing/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/algorithm/container.h"

namespace kiln::fairness {

Simulator::Run Simulator::MakeRun(const SimulatedProgram& program) const {
  std::vector<CommandCost> predicted;
  double total = 0;
  for (const double seconds : program.commands) {
    predicted.push_back({seconds * program.prediction, program.points});
    total += seconds * program.prediction;
  }
  Run run{{}, 0, false, program.prediction, nullptr};
  if (yields_) {
    run.slices = {total / program.prediction};
    const double longest = *absl::c_max_element(program.commands);
    run.task_seconds = longest / static_cast<double>(program.points);
    run.may_end_early = MayTakeASlice(total, limits_);
    return run;
  }
  const bool is_cut = total > limits_.slice_seconds;
  const std::vector<CommandPart> parts =
      Split(predicted, is_cut ? limits_.piece_seconds() : std::numeric_limits<double>::max());
  for (const Slice& slice : Cut(SecondsOf(parts), is_cut ? limits_.piece_seconds() : 2 * total))
    run.slices.push_back(slice.seconds / program.prediction);
  return run;
}

double Simulator::Predicted(const Run& run) const {
  return run.may_end_early ? limits_.slice_seconds : run.slices.front() * run.prediction;
}

void Simulator::BeginSlice(List& list, const Run& run) const {
  double slice = list.left;
  if (run.may_end_early) {
    // The device asks after the task in which the slice ends.
    const double tasks = std::max(1.0, std::ceil(limits_.slice_seconds / run.task_seconds));
    slice = std::min(list.left, tasks * run.task_seconds);
  }
  list.seconds = slice;
  list.left -= slice;
}

void Simulator::Submit(FairQueue::FlowId flow, const SimulatedProgram& program,
                       std::function<void()> done) {
  Run run = MakeRun(program);
  run.done = std::move(done);
  SubmitRun(flow, std::move(run));
}

void Simulator::SubmitRun(FairQueue::FlowId flow, Run run) {
  const double cost = Predicted(run);
  const FairQueue::Item item = next_item_++;
  runs_.emplace(item, std::move(run));
  queue_.flows().Push(flow, item, cost);
  StartLists();
}

void Simulator::StartLists() {
  while (const auto start = queue_.Next()) {
    Run& run = runs_.at(start->item);
    List list{*start, 0, run.slices.front(), 0, run.slices.size() == 1};
    run.slices.pop_front();
    BeginSlice(list, run);
    if (lists_.empty()) list_ends_ = now_ + list.seconds;
    lists_.push_back(list);
    if (!list.is_last) queue_.Continue(*start, Predicted(run));
    if (run.may_end_early) queue_.KeepAlone(start->ticket);
  }
}

void Simulator::EndList() {
  List list = lists_.front();
  list.ran += list.seconds;
  Run& run = runs_.at(list.start.item);
  if (list.left > 0 && queue_.GoesOn(list.start.ticket, list.ran)) {
    BeginSlice(list, run);
    list_ends_ = now_ + list.seconds;
    lists_.front() = list;
    return;
  }
  lists_.pop_front();
  if (!lists_.empty()) list_ends_ = now_ + lists_.front().seconds;
  Service& service = services_[list.start.flow];
  service.seconds += list.ran;
  service.longest = std::max(service.longest, list.ran);
  if (list.left > 0) {
    run.slices = {list.left};
    queue_.Continue(list.start.ticket, list.start.item, Predicted(run));
    list.is_last = false;
  }
  queue_.Finished(list.start.ticket, list.ran);
  if (list.is_last) {
    const std::function<void()> done = std::move(run.done);
    runs_.erase(list.start.item);
    if (done) done();
  }
  StartLists();
}

void Simulator::KeepBusy(FairQueue::FlowId flow, const SimulatedProgram& program, double deep) {
  const auto run = std::make_shared<const Run>(MakeRun(program));
  const double seconds = std::accumulate(program.commands.begin(), program.commands.end(), 0.0);
  for (double ahead = 0; ahead < std::max(deep, 1.5 * seconds); ahead += seconds)
    SubmitForever(flow, run);
}

void Simulator::SubmitForever(FairQueue::FlowId flow, const std::shared_ptr<const Run>& run) {
  Run next = *run;
  next.done = [this, flow, run] { SubmitForever(flow, run); };
  SubmitRun(flow, std::move(next));
}

void Simulator::RunUntil(double time) {
  while (true) {
    const double event = events_.empty() ? time : std::min(time, events_.begin()->first);
    if (!lists_.empty() && list_ends_ <= event) {
      now_ = list_ends_;
      EndList();
      continue;
    }
    if (lists_.empty()) idle_seconds_ += event - now_;
    now_ = event;
    if (events_.empty() || events_.begin()->first > time) return;
    const std::function<void()> happens = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    happens();
  }
}

double Simulator::Got(FairQueue::FlowId flow) const {
  const auto found = services_.find(flow);
  return found == services_.end() ? 0 : found->second.seconds;
}

double Simulator::LongestList(FairQueue::FlowId flow) const {
  const auto found = services_.find(flow);
  return found == services_.end() ? 0 : found->second.longest;
}

}  // namespace kiln::fairness
