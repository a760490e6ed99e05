// A device that is lost in the middle of a training step of a session on two devices, as its client
// and other clients see it.
#include <atomic>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/faulty_device.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Adds the sum of input 1, which has eight numbers, to all eight numbers of input 0.
v1::Graph TrainingGraph() {
  v1::Graph graph = AddGraph(8);
  v1::Node* sum = graph.mutable_nodes(2);
  sum->set_op("sum");
  sum->clear_operands();
  sum->add_operands(1);
  v1::Node* add = graph.add_nodes();
  add->set_op("add");
  add->add_operands(0);
  add->add_operands(2);
  graph.set_outputs(0, 3);
  v1::Update* update = graph.add_updates();
  update->set_input(0);
  update->set_value(3);
  return graph;
}

// A client with weights that are whole on each device, and data in parts.
class Trainer {
 public:
  Trainer(const TestDaemon& daemon, const std::vector<int>& devices)
      : client_(daemon.address(), 0, absl::StrCat("cpu:", devices[0])), stream_(client_.Connect()) {
    for (const int device : devices) data_.add_devices(absl::StrCat("cpu:", device));
    v1::Graph graph = TrainingGraph();
    graph.set_op_set_version(4);
    if (devices.size() > 1) {
      v1::Mesh::Axis* axis = data_.mutable_mesh()->add_axes();
      axis->set_name("data");
      axis->set_size(devices.size());
      data_.mutable_spec()->add_dims()->add_axes(0);
      *graph.mutable_sharding()->mutable_mesh() = data_.mesh();
      graph.mutable_sharding()->add_inputs();
      *graph.mutable_sharding()->add_inputs() = data_.spec();
    }
    weights_ = data_;
    weights_.clear_spec();
    v1::ConnectRequest define = Define(1, graph);
    *define.mutable_define_program()->mutable_devices() = data_.devices();
    const v1::Result defined = Call(define);
    EXPECT_FALSE(defined.has_error()) << defined.ShortDebugString();
    WriteState();
  }

  void WriteState() {
    count_ = 0;
    weights_handle_ = next_++;
    data_handle_ = next_++;
    Put(weights_handle_, {0, 0, 0, 0, 0, 0, 0, 0}, weights_);
    Put(data_handle_, {1, 2, 3, 4, 5, 6, 7, 8}, data_);
  }
  // Returns the answer to the run. Checks every number of the result, unless the run failed.
  v1::Result Step() {
    output_ = next_++;
    const v1::Result result = Call(RunProgram(1, {weights_handle_, data_handle_}, {output_}));
    if (result.has_error()) return result;
    ++count_;
    for (const uint64_t handle : {output_, weights_handle_})
      EXPECT_THAT(Floats(Call(Read(handle)).data()), Each(36.0f * count_));
    Call(Release({output_}));
    return result;
  }
  v1::Result ReadOutput() { return Call(Read(output_)); }
  v1::Result ReadWeights() { return Call(Read(weights_handle_)); }
  void ReleaseAll() {
    Call(Release({weights_handle_, data_handle_}));
    Call(Barrier());
  }
  int count() const { return count_; }

 private:
  // Values that were read are kept until they are acknowledged.
  v1::Result Call(v1::ConnectRequest request) {
    request.set_acknowledged(stream_->next_sequence() - 1);
    return stream_->Call(std::move(request));
  }
  void Put(uint64_t handle, const std::vector<float>& values, const v1::Placement& placement) {
    v1::ConnectRequest request = Write(handle, values);
    *request.mutable_write()->mutable_placement() = placement;
    const v1::Result written = Call(request);
    EXPECT_FALSE(written.has_error()) << written.ShortDebugString();
  }

  Client client_;
  std::unique_ptr<Stream> stream_;
  v1::Placement data_;
  v1::Placement weights_;
  uint64_t next_ = 1;
  uint64_t weights_handle_ = 0;
  uint64_t data_handle_ = 0;
  uint64_t output_ = 0;
  std::atomic<int> count_ = 0;
};

// The first of four CPU devices is lost once a kernel of its list has run and the second device
// waits for it.
class MultiDeviceLossTest : public ::testing::Test {
 protected:
  MultiDeviceLossTest() {
    std::string why_none;
    auto devices =
        *drivers::cpu::CpuDriver({.devices = 4, .threads_per_device = 1}).Enumerate(&why_none);
    auto first = std::make_unique<FaultyDevice>(
        std::move(devices[0]), [this](const drivers::Command& command) { return Fault(command); });
    first_ = first.get();
    devices[0] = std::move(first);
    devices[1] = std::make_unique<FaultyDevice>(
        std::move(devices[1]), [this](const drivers::Command& command) {
          if (std::holds_alternative<drivers::WaitCommand>(command)) second_waits_ = true;
          return absl::OkStatus();
        });
    TestDaemonOptions options;
    options.compile = compiler::Compile;
    options.driver = std::make_unique<FakeDriver>(std::move(devices));
    daemon_ = std::make_unique<TestDaemon>(std::move(options));
    watcher_ = std::make_unique<Client>(daemon_->address());
  }

  void LoseFirstInMidStep() {
    second_waits_ = false;
    is_armed_ = true;
  }
  absl::Status Fault(const drivers::Command& command) {
    // After the kernels whose results it would signal.
    if (!is_armed_ || !std::holds_alternative<drivers::SignalCommand>(command))
      return absl::OkStatus();
    EXPECT_TRUE(Eventually([this] { return second_waits_.load(); }));
    return absl::InternalError("it fell off the bus");
  }
  v1::Device::Health Health(int device) {
    grpc::ClientContext context;
    v1::ListDevicesResponse devices;
    EXPECT_TRUE(watcher_->devices->ListDevices(&context, {}, &devices).ok());
    return devices.devices(device).health();
  }

  FaultyDevice* first_ = nullptr;
  std::atomic<bool> is_armed_ = false;
  std::atomic<bool> second_waits_ = false;
  std::unique_ptr<TestDaemon> daemon_;
  std::unique_ptr<Client> watcher_;
};

TEST_F(MultiDeviceLossTest, OthersTrainOn) {
  Trainer doomed(*daemon_, {0, 1});
  // One on other devices, one that shares the device that survives, and two on one device each.
  Trainer beside(*daemon_, {2, 3});
  Trainer across(*daemon_, {3, 1});
  Trainer alone(*daemon_, {2});
  Trainer partner(*daemon_, {1});
  const std::vector<Trainer*> others = {&beside, &across, &alone, &partner};
  std::vector<std::jthread> threads;
  for (Trainer* trainer : others) {
    threads.emplace_back([trainer](const std::stop_token& over) {
      while (!over.stop_requested()) {
        const v1::Result result = trainer->Step();
        ASSERT_FALSE(result.has_error()) << result.ShortDebugString();
      }
    });
  }
  const auto everybody_goes_on = [&] {
    for (const Trainer* trainer : others) {
      const int count = trainer->count();
      EXPECT_TRUE(Eventually([&] { return trainer->count() >= count + 3; }));
    }
  };
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(doomed.Step().has_error());
  everybody_goes_on();

  LoseFirstInMidStep();
  const v1::Result failed = doomed.Step();
  EXPECT_EQ(failed.error().code(), 14) << failed.ShortDebugString();
  EXPECT_EQ(Reason(failed.error()), "DEVICE_FAILED");
  EXPECT_THAT(failed.error().message(),
              HasSubstr("device cpu:0 failed: the device is lost: it fell off the bus"));
  for (const v1::Result& read : {doomed.ReadOutput(), doomed.ReadWeights()}) {
    EXPECT_EQ(read.error().code(), 14) << read.ShortDebugString();
    EXPECT_THAT(read.error().message(), HasSubstr("cpu:0"));
  }
  EXPECT_EQ(doomed.Step().error().code(), 14);
  EXPECT_EQ(Health(0), v1::Device::FAILED);
  for (const int device : {1, 2, 3}) EXPECT_EQ(Health(device), v1::Device::HEALTHY);
  everybody_goes_on();
  doomed.ReleaseAll();

  is_armed_ = false;
  first_->Mend();
  EXPECT_TRUE(Eventually([&] { return Health(0) == v1::Device::HEALTHY; }));
  doomed.WriteState();
  for (int i = 0; i < 5; ++i) {
    const v1::Result result = doomed.Step();
    EXPECT_FALSE(result.has_error()) << result.ShortDebugString();
  }
  everybody_goes_on();
  for (std::jthread& thread : threads) thread.request_stop();
  for (std::jthread& thread : threads) thread.join();
  // Nothing of the failed run's memory is left.
  doomed.ReleaseAll();
  for (Trainer* trainer : others) trainer->ReleaseAll();
  const auto bytes_held = [&] {
    int64_t bytes = 0;
    const v1::ListSessionsResponse sessions = Sessions(daemon_->address());
    for (const v1::Session& session : sessions.sessions()) bytes += session.memory_bytes();
    return bytes;
  };
  EXPECT_TRUE(Eventually([&] { return bytes_held() == 0; })) << bytes_held();
}

}  // namespace
}  // namespace kiln::testing
