#include "server/fairness/testing/simulator.h"

#include <algorithm>
#include <numeric>

namespace kiln::fairness {

Simulator::Run Simulator::MakeRun(const SimulatedProgram& program) const {
  std::vector<double> predicted = program.commands;
  for (double& seconds : predicted) seconds *= program.prediction;
  const double total = std::accumulate(predicted.begin(), predicted.end(), 0.0);
  const double most = total > limits_.slice_seconds ? limits_.piece_seconds() : total;
  Run run{{}, program.prediction, nullptr};
  for (Slice slice : Cut(predicted, most)) {
    slice.seconds = std::accumulate(program.commands.begin() + slice.begin,
                                    program.commands.begin() + slice.end, 0.0);
    run.slices.push_back(slice);
  }
  return run;
}

void Simulator::Submit(FairQueue::FlowId flow, const SimulatedProgram& program,
                       std::function<void()> done) {
  Run run = MakeRun(program);
  run.done = std::move(done);
  SubmitRun(flow, std::move(run));
}

void Simulator::SubmitRun(FairQueue::FlowId flow, Run run) {
  const double cost = run.slices.front().seconds * run.prediction;
  const FairQueue::Item item = next_item_++;
  runs_.emplace(item, std::move(run));
  queue_.flows().Push(flow, item, cost);
  StartLists();
}

void Simulator::StartLists() {
  while (const auto start = queue_.Next()) {
    Run& run = runs_.at(start->item);
    const double seconds = run.slices.front().seconds;
    run.slices.pop_front();
    const bool is_last = run.slices.empty();
    if (lists_.empty()) list_ends_ = now_ + seconds;
    lists_.push_back({*start, seconds, is_last});
    if (!is_last) queue_.Continue(*start, run.slices.front().seconds * run.prediction);
  }
}

void Simulator::EndList() {
  const List list = lists_.front();
  lists_.pop_front();
  if (!lists_.empty()) list_ends_ = now_ + lists_.front().seconds;
  Service& service = services_[list.start.flow];
  service.seconds += list.seconds;
  service.longest = std::max(service.longest, list.seconds);
  queue_.Finished(list.start.ticket, list.seconds);
  if (list.is_last) {
    const std::function<void()> done = std::move(runs_.at(list.start.item).done);
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
