// A simulated device: runs DeviceQueue's policy on workloads without threads or clocks.
#ifndef KILN_SERVER_FAIRNESS_TESTING_SIMULATOR_H_
#define KILN_SERVER_FAIRNESS_TESTING_SIMULATOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/fairness/device_queue.h"
#include "server/fairness/slices.h"

namespace kiln::fairness {

// A program as the true times of its commands. Predicted times are `prediction` times as long.
struct SimulatedProgram {
  std::vector<double> commands;
  double prediction = 1;
  // Grid points of each command, by which it can be split.
  int64_t points = 1;
};

// Lists run one after another, in the order in which the policy starts them. On a device that
// yields, lists are whole programs, and end between two tasks where the policy decides so. On other
// devices, programs that are predicted to take longer than a slice are cut as runtime::Program cuts
// them.
class Simulator {
 public:
  explicit Simulator(QueueLimits limits = {}, bool yields = false)
      : limits_(limits), yields_(yields), queue_(limits) {}

  FairQueue& flows() { return queue_.flows(); }
  double now() const { return now_; }
  // Calls `done` when the run has ended.
  void Submit(FairQueue::FlowId flow, const SimulatedProgram& program,
              std::function<void()> done = nullptr);
  void At(double time, std::function<void()> event) { events_.emplace(time, std::move(event)); }
  // Keeps runs of the program waiting in the flow at all times: at least two, and `deep` seconds of
  // them.
  void KeepBusy(FairQueue::FlowId flow, const SimulatedProgram& program, double deep = 0.05);
  void RunUntil(double time);

  // Device seconds of the flow's ended lists.
  double Got(FairQueue::FlowId flow) const;
  // Seconds of the flow's longest list so far.
  double LongestList(FairQueue::FlowId flow) const;
  // Seconds in which nothing ran.
  double idle_seconds() const { return idle_seconds_; }

 private:
  struct Run {
    std::deque<double> slices;  // their true times
    double task_seconds = 0;    // lists may end early at a multiple of this
    bool may_end_early = false;
    double prediction = 1;
    std::function<void()> done;
  };
  struct List {
    DeviceQueue::Start start;
    double seconds = 0;  // until it ends, or the device asks GoesOn
    double left = 0;     // after that
    double ran = 0;      // before that
    bool is_last = false;
  };
  struct Service {
    double seconds = 0;
    double longest = 0;
  };

  void SubmitForever(FairQueue::FlowId flow, const std::shared_ptr<const Run>& run);
  void SubmitRun(FairQueue::FlowId flow, Run run);
  Run MakeRun(const SimulatedProgram& program) const;
  double Predicted(const Run& run) const;
  // Determines how long the list runs until its slice is over.
  void BeginSlice(List& list, const Run& run) const;
  void StartLists();
  void EndList();

  const QueueLimits limits_;
  const bool yields_;
  DeviceQueue queue_;
  double now_ = 0;
  double idle_seconds_ = 0;
  double list_ends_ = 0;  // if lists_ is not empty: the end of the first
  std::deque<List> lists_;
  std::multimap<double, std::function<void()>> events_;
  std::map<FairQueue::Item, Run> runs_;
  std::map<FairQueue::FlowId, Service> services_;
  FairQueue::Item next_item_ = 1;
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_TESTING_SIMULATOR_H_
