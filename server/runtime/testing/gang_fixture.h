// Programs on several devices, without a client: devices with their queues, flows of several users
// on each, and runs that are queued as a session queues them.
#ifndef KILN_SERVER_RUNTIME_TESTING_GANG_FIXTURE_H_
#define KILN_SERVER_RUNTIME_TESTING_GANG_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "drivers/interface/driver.h"
#include "gtest/gtest.h"
#include "server/fairness/gang_order.h"
#include "server/runtime/gang.h"
#include "server/runtime/gang_run.h"
#include "server/runtime/program_compiler.h"

namespace kiln::testing {

// The mean over all rows, which lie in parts on the devices, and the rows minus it: an all-reduce.
// An update doubles the rows.
std::string MeanGraph(int devices, int64_t rows);
// The same of 8 rows, on one device.
std::string MeanGraphOnOne();

// The same, in stages: the rows lie on the first device, the second adds them up, and the sum goes
// from each to the next and back to the first; the last one has it, too.
std::string StagesGraph(int devices, int64_t rows);

class GangTest : public ::testing::Test {
 protected:
  static constexpr int kUsers = 6;

  ~GangTest() override;

  void UseDriver(drivers::Driver& driver);
  void UseDevice(std::unique_ptr<drivers::Device> device);
  // `cores`: that they believe to share.
  void UseCpus(int devices, int cores = 64);
  void UseNulls(int devices, std::function<absl::Status()> fault);

  // Devices that are opened from here on: every program is cut before each kernel.
  void CutAll() { limits_.slice_seconds = 1e-9; }

  // Null where it cannot be compiled: compiled_ says why. One place: for one device, if the graph
  // has no mesh.
  std::shared_ptr<const runtime::BoundProgram> Compile(const std::string& text,
                                                       const std::vector<int>& places);

  // The parts of a tensor whose element i is `first` + i; all of it for a program on one device.
  runtime::ValuePointer Input(const runtime::BoundProgram& bound, float first);
  static std::vector<float> Whole(const buffers::Value& value);

  // A run, or why there is none; its status is there once it has ended.
  struct Created {
    std::shared_ptr<const runtime::BoundProgram> bound;
    std::shared_ptr<runtime::QueuedRun> run;
    std::vector<std::shared_ptr<fairness::Work>> work;  // by place
    std::vector<runtime::ValuePointer> results;
    std::shared_ptr<absl::Notification> ended = std::make_shared<absl::Notification>();
    std::shared_ptr<absl::Status> status = std::make_shared<absl::Status>();
  };
  Created Create(const std::shared_ptr<const runtime::BoundProgram>& bound,
                 const runtime::ValuePointer& input);
  // `user`: in whose flows.
  void Enqueue(const Created& created, int user);
  Created Start(const std::shared_ptr<const runtime::BoundProgram>& bound,
                const runtime::ValuePointer& input, int user = 0) {
    Created created = Create(bound, input);
    Enqueue(created, user);
    return created;
  }
  // Its status, once it has ended.
  static absl::Status Await(const Created& created);

  // Of 8 rows from Input(…, 0) times `scale`: column c has c, 8 + c, …, 56 + c.
  static void ExpectSums(const Created& created, float scale);

  metrics::Metrics metrics_{"test"};
  fairness::QueueLimits limits_;
  fairness::GangOrder order_;
  std::vector<std::unique_ptr<runtime::ManagedDevice>> devices_;
  // Who pays on each device.
  std::vector<std::shared_ptr<buffers::Account>> accounts_;
  // By device and user. A flow's runs come from one thread, as a session's do.
  std::vector<std::vector<fairness::FairQueue::FlowId>> flows_;
  absl::Status compiled_;

 private:
  // Numbers of devices, by place.
  std::vector<int> DevicesOf(const runtime::BoundProgram& bound) const;

  // By stage and text, and architecture: what differs is where it runs.
  std::map<std::pair<std::string, std::string>, absl::StatusOr<compiler::CompiledProgram>> known_;
};

}  // namespace kiln::testing

#endif  // KILN_SERVER_RUNTIME_TESTING_GANG_FIXTURE_H_
