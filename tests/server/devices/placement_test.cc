// Tensors and programs on several devices, from a client's view.
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Axes = std::vector<std::pair<std::string, uint32_t>>;
using Dims = std::vector<std::vector<uint32_t>>;

// Uses the devices cpu:0, cpu:1, …, or `devices`.
v1::Placement Placed(const Axes& axes, const Dims& dims, std::vector<int> devices = {}) {
  v1::Placement placement;
  uint32_t places = 1;
  for (const auto& [name, size] : axes) {
    v1::Mesh::Axis* axis = placement.mutable_mesh()->add_axes();
    axis->set_name(name);
    axis->set_size(size);
    places *= size;
  }
  for (const auto& dim : dims) {
    auto* added = placement.mutable_spec()->add_dims();
    for (const uint32_t axis : dim) added->add_axes(axis);
  }
  if (devices.empty()) {
    devices.resize(places);
    std::iota(devices.begin(), devices.end(), 0);
  }
  for (const int device : devices) placement.add_devices(absl::StrCat("cpu:", device));
  return placement;
}

v1::Placement On(int device) {
  v1::Placement placement;
  placement.add_devices(absl::StrCat("cpu:", device));
  return placement;
}

v1::ConnectRequest WriteTo(uint64_t handle, const std::vector<float>& values,
                           const std::vector<int64_t>& shape, const v1::Placement& placement) {
  v1::ConnectRequest request = Write(handle, values);
  request.mutable_write()->mutable_shape()->Assign(shape.begin(), shape.end());
  *request.mutable_write()->mutable_placement() = placement;
  return request;
}

v1::ConnectRequest MoveTo(uint64_t source, uint64_t handle, const v1::Placement& placement) {
  v1::ConnectRequest request;
  request.mutable_move()->set_source(source);
  request.mutable_move()->set_handle(handle);
  *request.mutable_move()->mutable_placement() = placement;
  return request;
}

std::vector<float> Counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

const Axes kRow = {{"data", 2}};
const Axes kGrid = {{"data", 2}, {"model", 2}};

std::vector<v1::Placement> Many() {
  return {On(1),
          Placed(kRow, {{0}}),
          Placed(kRow, {{}, {0}}, {1, 0}),
          Placed(kRow, {}),
          Placed({{"one", 1}}, {{0}}, {2}),
          Placed({{"data", 3}}, {{0}}),
          Placed(kGrid, {{0}, {1}}),
          Placed(kGrid, {{0, 1}}),
          Placed(kGrid, {{}, {1, 0}}),
          Placed(kGrid, {{1}}, {3, 1, 2, 0})};
}

TEST(PlacementTest, WhatIsWrittenIsReadAgainHoweverItLies) {
  for (const bool hidden : {false, true}) {
    TestDaemon daemon({.devices = 4, .prepare = [hidden](FakeDevice& device) {
                         if (hidden) device.HideMemory();
                       }});
    Client client(daemon.address());
    auto stream = client.Connect();
    uint64_t handle = 0;
    // The meshes divide the first shape's sizes evenly.
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{12, 8}, {7, 5}, {1, 9}, {5, 1}}) {
      const std::vector<float> values = Counting(static_cast<size_t>(shape[0] * shape[1]));
      std::vector<uint64_t> written;
      for (const v1::Placement& placement : Many()) {
        written.push_back(++handle);
        const v1::Result result = stream->Call(WriteTo(handle, values, shape, placement));
        EXPECT_FALSE(result.has_error()) << result.ShortDebugString();
        EXPECT_EQ(Floats(stream->Call(Read(handle)).data()), values)
            << placement.ShortDebugString();
        std::string bytes;
        EXPECT_TRUE(client.Download(handle, 0, &bytes).ok());
        EXPECT_EQ(Floats(bytes), values);
      }
      // From each placement to each.
      for (const uint64_t source : written) {
        for (const v1::Placement& placement : Many()) {
          const v1::Result result = stream->Call(MoveTo(source, ++handle, placement));
          EXPECT_FALSE(result.has_error()) << result.ShortDebugString();
          EXPECT_EQ(Floats(stream->Call(Read(handle)).data()), values);
          stream->Call(Release({handle}));
        }
      }
    }
  }
}

// A copy's source is freed soon after the copy, but not at once: a thread may still hold it.
void ExpectMemory(TestDaemon& daemon, const std::vector<int64_t>& bytes) {
  for (int device = 0; device < static_cast<int>(bytes.size()); ++device) {
    EXPECT_TRUE(Eventually([&] {
      return daemon.device(device).allocated_bytes() == bytes[static_cast<size_t>(device)];
    })) << device
        << ": " << daemon.device(device).allocated_bytes();
  }
}

TEST(PlacementTest, EachDeviceHasItsPartsAndNoMore) {
  TestDaemon daemon({.devices = 4});
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(WriteTo(1, Counting(12 * 8), {12, 8}, Placed(kGrid, {{0}})));
  constexpr int64_t kHalf = 12 * 8 * 4 / 2;
  ExpectMemory(daemon, {kHalf, kHalf, kHalf, kHalf});
  EXPECT_EQ(Sessions(daemon.address()).sessions(0).memory_bytes(), 4 * kHalf);
  stream->Call(MoveTo(1, 2, On(3)));
  stream->Call(Release({1}));
  ExpectMemory(daemon, {0, 0, 0, 2 * kHalf});
  stream->Call(Release({2}));
  ExpectMemory(daemon, {0, 0, 0, 0});
  // One device has three of the five rows, the other one two rows and padding in as much memory.
  stream->Call(WriteTo(3, Counting(5 * 8), {5, 8}, Placed(kRow, {{0}})));
  ExpectMemory(daemon, {3 * 8 * 4, 3 * 8 * 4, 0, 0});
  EXPECT_EQ(Sessions(daemon.address()).sessions(0).memory_bytes(), 2 * 3 * 8 * 4);
  stream->Call(Release({3}));
  ExpectMemory(daemon, {0, 0, 0, 0});
}

TEST(PlacementTest, WhereItLiesAlreadyNothingIsCopied) {
  TestDaemon daemon({.devices = 2});
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(WriteTo(1, Counting(8), {8}, Placed(kRow, {{0}})));
  const int64_t before = daemon.device(1).allocated_bytes();
  EXPECT_FALSE(stream->Call(MoveTo(1, 2, Placed(kRow, {{0}}))).has_error());
  // Another mesh with the same parts.
  EXPECT_FALSE(stream->Call(MoveTo(1, 3, Placed({{"x", 1}, {"y", 2}}, {{1}}))).has_error());
  EXPECT_EQ(daemon.device(1).allocated_bytes(), before);
  stream->Call(Release({1}));
  EXPECT_EQ(Floats(stream->Call(Read(2)).data()), Counting(8));
  EXPECT_EQ(Floats(stream->Call(Read(3)).data()), Counting(8));
}

TEST(PlacementTest, WhatCannotBeIsSaid) {
  TestDaemon daemon({.devices = 4});
  Client client(daemon.address());
  auto stream = client.Connect();
  Axes five;
  for (int i = 0; i < 5; ++i) five.emplace_back(absl::StrCat("a", i), 1);
  v1::Placement gone = Placed(kRow, {{0}});
  gone.set_devices(1, "cpu:9");
  v1::Placement two = On(0);
  two.add_devices("cpu:1");
  const struct {
    v1::Placement placement;
    int code;
    const char* says;
  } cases[] = {
      {gone, 5, "there is no device \"cpu:9\"; available: cpu:0, cpu:1, cpu:2, cpu:3"},
      {On(7), 5, "there is no device \"cpu:7\""},
      {Placed(kRow, {{0}}, {1, 1}), 3, "device \"cpu:1\" is named twice"},
      {Placed(kRow, {{0}}, {0, 1, 2}), 3, "the mesh has 2 places, but 3 devices are named"},
      {two, 3, "a placement without a mesh must name one device, not 2"},
      {{}, 3, "must name one device, not 0"},
      {Placed(five, {}), 3, "the mesh has 5 axes; it must have 1 to 4"},
      {Placed({{"a b", 2}}, {}), 3, "an axis named \"a b\""},
      {Placed({{"a", 1}, {"a", 2}}, {}), 3, "two axes named \"a\""},
      {Placed({{"a", 65}}, {}, {0}), 3, "at most 64 devices"},
      {Placed(kRow, {{1}}), 3, "axis 1 of a mesh that has 1 axes"},
      {Placed(kRow, {{0}, {0}}), 3, "split twice by the mesh's axis \"data\""},
      {Placed(kRow, {{}, {}, {0}}), 3, "has 2 dimensions, but its spec has 3"},
  };
  stream->Call(WriteTo(500, Counting(12), {6, 2}, On(0)));
  uint64_t handle = 0;
  for (const auto& each : cases) {
    for (const bool moves : {false, true}) {
      ++handle;
      const v1::Result result =
          moves ? stream->Call(MoveTo(500, handle, each.placement))
                : stream->Call(WriteTo(handle, Counting(12), {6, 2}, each.placement));
      EXPECT_EQ(result.error().code(), each.code) << each.says;
      EXPECT_THAT(result.error().message(), HasSubstr(each.says));
      // The handle keeps the error, and the session continues.
      EXPECT_EQ(stream->Call(Read(handle)).error().code(), each.code);
    }
  }
  for (int device = 1; device < 4; ++device)
    EXPECT_EQ(daemon.device(device).allocated_bytes(), 0) << device;
  EXPECT_EQ(Reason(stream->Call(MoveTo(400, 401, On(1))).error()), "UNKNOWN_HANDLE");
  EXPECT_EQ(Reason(stream->Call(MoveTo(500, 500, On(1))).error()), "HANDLE_REUSED");
  EXPECT_EQ(Floats(stream->Call(Read(500)).data()), Counting(12));
  v1::ConnectRequest define = Define(1, AddGraph(4));
  define.mutable_define_program()->add_devices("cpu:9");
  EXPECT_EQ(Reason(stream->Call(define).error()), "UNKNOWN_DEVICE");
  define = Define(2, AddGraph(4));
  for (const char* device : {"cpu:0", "cpu:1"})
    define.mutable_define_program()->add_devices(device);
  EXPECT_THAT(stream->Call(define).error().message(), HasSubstr("the graph has no mesh"));
  define = Define(3, AddGraph(4));
  for (const char* device : {"cpu:1", "cpu:1"})
    define.mutable_define_program()->add_devices(device);
  EXPECT_THAT(stream->Call(define).error().message(), HasSubstr("named twice"));
}

TEST(PlacementTest, AProgramRunsOnAnotherDevice) {
  TestDaemon daemon({.devices = 2});
  Client client(daemon.address(), 0, "cpu:0");
  auto stream = client.Connect();
  v1::ConnectRequest define = Define(1, AddGraph(2));
  define.mutable_define_program()->add_devices("cpu:1");
  ASSERT_FALSE(stream->Call(define).has_error());
  stream->Call(Write(1, {1, 2}));
  const v1::Result elsewhere = stream->Call(RunProgram(1, {1, 1}, {2}));
  EXPECT_EQ(Reason(elsewhere.error()), "INPUT_PLACEMENT");
  EXPECT_THAT(elsewhere.error().message(),
              HasSubstr("input 0 is on cpu:0, but the program needs it on cpu:1; copy"));
  stream->Send(MoveTo(1, 3, On(1)));
  // Sent without waiting: the run waits for the copy.
  EXPECT_FALSE(stream->Call(RunProgram(1, {3, 3}, {4})).has_error());
  EXPECT_THAT(Floats(stream->Call(Read(4)).data()), ElementsAre(2, 4));
  EXPECT_EQ(daemon.device(0).lists_run(), 0);
  EXPECT_EQ(daemon.device(1).lists_run(), 1);
}

TEST(PlacementTest, QuotasHoldOnEachDevice) {
  TestDaemon daemon({.devices = 2, .configure = [](config::Config& config) {
                       config.quota[quota::Resource::kDeviceMemory] = 1000;
                     }});
  Client client(daemon.address(), 0, "cpu:0");
  auto stream = client.Connect();
  ASSERT_FALSE(stream->Call(WriteTo(1, Counting(300), {300}, Placed(kRow, {{0}}))).has_error());
  // 600 bytes on each device; 500 more exceed the quota, 200 do not.
  const v1::Result refused = stream->Call(WriteTo(2, Counting(250), {250}, Placed(kRow, {{0}})));
  EXPECT_EQ(Reason(refused.error()), "QUOTA_EXCEEDED");
  EXPECT_FALSE(stream->Call(WriteTo(3, Counting(100), {100}, Placed(kRow, {{0}}))).has_error());
  EXPECT_EQ(Reason(stream->Call(WriteTo(4, Counting(100), {100}, On(1))).error()),
            "QUOTA_EXCEEDED");
  stream->Call(Release({1}));
  // Freed soon, not at once, as above.
  uint64_t handle = 5;
  EXPECT_TRUE(Eventually(
      [&] { return !stream->Call(WriteTo(handle++, Counting(100), {100}, On(1))).has_error(); }));
}

TEST(PlacementTest, ValuesAndProgramsSurviveARestart) {
  TestDaemon daemon({.devices = 3});
  Client client(daemon.address(), 0, "cpu:0");
  auto stream = client.Connect();
  v1::ConnectRequest define = Define(1, AddGraph(2));
  define.mutable_define_program()->add_devices("cpu:2");
  stream->Call(define);
  stream->Call(WriteTo(1, Counting(24), {4, 6}, Placed(kRow, {{}, {0}}, {2, 1})));
  stream->Call(WriteTo(2, {1, 2}, {2}, On(2)));
  stream->Call(WriteTo(7, Counting(35), {7, 5}, Placed(kRow, {{}, {0}}, {2, 0})));
  // The copy waits for the held run, and the next daemon executes both.
  daemon.device(2).Hold();
  stream->Send(RunProgram(1, {2, 2}, {3}));
  const uint64_t moving = stream->Send(MoveTo(3, 4, Placed(kRow, {{0}})));
  EXPECT_TRUE(Eventually([&] {
    // Includes the padding where sizes do not divide evenly.
    return Sessions(daemon.address()).sessions(0).memory_bytes() >= (24 + 2 * 21) * 4 + 3 * 8;
  }));
  daemon.Restart(
      Daemon::Sessions::kKeep, [&] { daemon.device(2).LetGo(); }, absl::ZeroDuration());
  auto second = Reattach(daemon.address(), client, 3);
  ASSERT_NE(second, nullptr);
  EXPECT_FALSE(second->Answer(moving).has_error());
  EXPECT_EQ(Floats(second->Call(Read(1)).data()), Counting(24));
  EXPECT_EQ(Floats(second->Call(Read(7)).data()), Counting(35));
  EXPECT_EQ(daemon.device(1).allocated_bytes(), 4 * 3 * 4 + 4);
  EXPECT_THAT(Floats(second->Call(Read(4)).data()), ElementsAre(2, 4));
  EXPECT_FALSE(second->Call(RunProgram(1, {2, 3}, {5})).has_error());
  EXPECT_THAT(Floats(second->Call(Read(5)).data()), ElementsAre(3, 6));
}

TEST(PlacementTest, ALostDeviceFailsWhatHasPartsOnIt) {
  TestDaemon daemon({.devices = 3});
  Client client(daemon.address(), 0, "cpu:0");
  auto stream = client.Connect();
  stream->Call(WriteTo(1, Counting(4), {4}, Placed(kRow, {{0}}, {0, 2})));
  stream->Call(WriteTo(2, Counting(4), {4}, Placed(kRow, {{0}})));
  daemon.device(2).Break("it fell off the bus");
  daemon.device(2).Mend();
  EXPECT_TRUE(Eventually([&] { return stream->Call(Read(1)).has_error(); }));
  const v1::Result lost = stream->Call(Read(1));
  EXPECT_EQ(Reason(lost.error()), "DEVICE_LOST") << lost.ShortDebugString();
  EXPECT_THAT(lost.error().message(), HasSubstr("cpu:2"));
  EXPECT_EQ(Floats(stream->Call(Read(2)).data()), Counting(4));
}

TEST(PlacementTest, ATakenOverTensorSaysWhereItLies) {
  TestDaemon daemon({.devices = 2});
  Client client(daemon.address(), 0, "cpu:0");
  auto stream = client.Connect();
  const v1::Placement placement = Placed(kRow, {{0}}, {1, 0});
  stream->Call(WriteTo(1, Counting(4), {4}, placement));
  stream->Call(WriteTo(2, Counting(4), {4}, On(1)));
  ASSERT_FALSE(stream->Call(Detach("mine", 60, {{"whole", 2}, {"split", 1}})).has_error());
  const Taken taken = TakeOver(*client.sessions, "mine");
  ASSERT_TRUE(taken.status.ok()) << taken.status.error_message();
  std::map<std::string, std::string> placements;
  for (const v1::NamedTensor& tensor : taken.session.tensors())
    placements[tensor.name()] = tensor.placement().SerializeAsString();
  EXPECT_EQ(placements["split"], placement.SerializeAsString());
  EXPECT_EQ(placements["whole"], On(1).SerializeAsString());
}

// Runs on CPU devices, with the real compiler.
void RunsSharded(uint32_t devices, size_t elements) {
  SCOPED_TRACE(absl::StrCat(elements, " elements on ", devices, " devices"));
  TestDaemonOptions options;
  options.compile = compiler::Compile;
  options.driver = std::unique_ptr<drivers::Driver>(
      new drivers::cpu::CpuDriver({.devices = static_cast<int>(devices), .threads_per_device = 1}));
  TestDaemon daemon(std::move(options));
  Client client(daemon.address(), 0, "cpu:0");
  auto stream = client.Connect();
  const auto size = static_cast<int64_t>(elements);
  v1::Graph graph = AccumulateGraph(size);
  const v1::Placement placement = Placed({{"data", devices}}, {{0}});
  graph.set_op_set_version(4);
  *graph.mutable_sharding()->mutable_mesh() = placement.mesh();
  for (int i = 0; i < 2; ++i) *graph.mutable_sharding()->add_inputs() = placement.spec();
  *graph.mutable_sharding()->add_outputs() = placement.spec();
  v1::ConnectRequest define = Define(1, graph);
  for (const std::string& device : placement.devices())
    define.mutable_define_program()->add_devices(device);
  const v1::Result defined = stream->Call(define);
  ASSERT_FALSE(defined.has_error()) << defined.ShortDebugString();
  stream->Call(WriteTo(1, Counting(elements), {size}, placement));
  stream->Call(Write(2, Counting(elements)));
  const v1::Result wrong = stream->Call(RunProgram(1, {1, 2}, {3}));
  EXPECT_EQ(Reason(wrong.error()), "INPUT_PLACEMENT");
  EXPECT_THAT(wrong.error().message(), HasSubstr("[data] on cpu:0, cpu:1"));
  stream->Send(MoveTo(2, 4, placement));
  for (uint64_t run = 0; run < 20; ++run) {
    v1::ConnectRequest request = RunProgram(1, {1, 4}, {10 + run});
    request.mutable_run()->set_report_time(run == 19);
    const v1::Result result = stream->Call(request);
    EXPECT_FALSE(result.has_error()) << result.ShortDebugString();
    EXPECT_EQ(result.device_seconds() > 0, run == 19);
  }
  std::vector<float> sums = Counting(elements);
  for (float& sum : sums) sum *= 21;
  EXPECT_EQ(Floats(stream->Call(Read(1)).data()), sums);
  EXPECT_EQ(Floats(stream->Call(Read(29)).data()), sums);
}

TEST(PlacementTest, AShardedProgramRuns) {
  RunsSharded(2, 8);
  RunsSharded(2, 7);
  RunsSharded(4, 5);  // the last device has nothing
}

}  // namespace
}  // namespace kiln::testing
