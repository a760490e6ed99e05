// Programs on several devices, without a client: devices with their queues, flows of several users
// on each, and runs that are queued as a session queues them.
#ifndef KILN_SERVER_RUNTIME_TESTING_MULTI_DEVICE_FIXTURE_H_
#define KILN_SERVER_RUNTIME_TESTING_MULTI_DEVICE_FIXTURE_H_

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
#include "server/fairness/submission_order.h"
#include "server/runtime/cache/program_compiler.h"
#include "server/runtime/run/run.h"

namespace kiln::testing {

// Returns a graph of the mean over all rows, which are split across the devices, and of the rows
// minus the mean: an all-reduce. An update doubles the rows.
std::string MeanGraph(int devices, int64_t rows);
// The same for 8 rows, on one device.
std::string MeanGraphOnOne();

// The same in stages: the rows are on the first device, the second adds them up, and the sum goes
// from each device to the next and back to the first; the last one has it, too.
std::string StagesGraph(int devices, int64_t rows);

class MultiDeviceTest : public ::testing::Test {
 protected:
  static constexpr int kUsers = 6;

  ~MultiDeviceTest() override;

  void UseDriver(drivers::Driver& driver);
  void UseDevice(std::unique_ptr<drivers::Device> device);
  // `cores`: the number of cores that the devices assume to share.
  void UseCpus(int devices, int cores = 64);
  void UseNulls(int devices, std::function<absl::Status()> fault);

  // Makes devices opened from here on cut every program before each kernel.
  void CutAll() { limits_.slice_seconds = 1e-9; }

  // Returns null if the graph cannot be compiled; compiled_ then has the error. With one place, a
  // graph without a mesh is compiled for one device.
  std::shared_ptr<const runtime::BoundProgram> Compile(const std::string& text,
                                                       const std::vector<int>& places);

  // Returns the parts of a tensor whose element i is `first` + i; the whole tensor for a program on
  // one device.
  runtime::ValuePointer Input(const runtime::BoundProgram& bound, float first);
  static std::vector<float> Whole(const buffers::Value& value);

  // A run, or the error why there is none; the status is set when the run has ended.
  struct Created {
    std::shared_ptr<const runtime::BoundProgram> bound;
    std::shared_ptr<runtime::Run> run;
    std::vector<std::shared_ptr<fairness::Work>> work;  // by place
    std::vector<runtime::ValuePointer> results;
    std::shared_ptr<absl::Notification> ended = std::make_shared<absl::Notification>();
    std::shared_ptr<absl::Status> status = std::make_shared<absl::Status>();
  };
  Created Create(const std::shared_ptr<const runtime::BoundProgram>& bound,
                 const runtime::ValuePointer& input);
  // `user`: the user whose flows are used.
  void Enqueue(const Created& created, int user);
  Created Start(const std::shared_ptr<const runtime::BoundProgram>& bound,
                const runtime::ValuePointer& input, int user = 0) {
    Created created = Create(bound, input);
    Enqueue(created, user);
    return created;
  }
  // Waits for the run's end and returns its status.
  static absl::Status Await(const Created& created);

  // Requires: the run's input was 8 rows of Input(…, 0) times `scale`. Column c has c, 8 + c, …, 56
  // + c.
  static void ExpectSums(const Created& created, float scale);

  metrics::Metrics metrics_{"test"};
  fairness::QueueLimits limits_;
  fairness::SubmissionOrder order_;
  std::vector<std::unique_ptr<runtime::ManagedDevice>> devices_;
  // The accounts that pay on each device.
  std::vector<std::shared_ptr<buffers::Account>> accounts_;
  // By device and user. A flow's runs come from one thread, as a session's do.
  std::vector<std::vector<fairness::FairQueue::FlowId>> flows_;
  absl::Status compiled_;

 private:
  // Device indices, by place.
  std::vector<int> DevicesOf(const runtime::BoundProgram& bound) const;

  // By stage and text, and architecture: equal programs differ only in the devices on which they
  // run.
  std::map<std::pair<std::string, std::string>, absl::StatusOr<compiler::CompiledProgram>> known_;
};

}  // namespace kiln::testing

#endif  // KILN_SERVER_RUNTIME_TESTING_MULTI_DEVICE_FIXTURE_H_
