#include "server/runtime/testing/multi_device_fixture.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/graph/text.h"
#include "drivers/cpu/driver.h"
#include "drivers/null/driver.h"
#include "server/buffers/whole.h"

namespace kiln::testing {
namespace {

using runtime::BoundProgram;
using runtime::ManagedDevice;
using runtime::ShardedProgram;
using runtime::ValuePointer;

class TextSource : public runtime::GraphSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  const std::string& key() const override { return text_; }
  const std::vector<runtime::Variable>& variables() const override { return none_; }
  absl::StatusOr<graph::Graph> Build(const runtime::Bindings&, const runtime::Grow&,
                                     ops::FormSizes*) const override {
    return graph::Parse(text_);
  }

 private:
  const std::string text_;
  const std::vector<runtime::Variable> none_;
};

// Writes the elements of one device's part of a row-major tensor.
ValuePointer WritePart(ManagedDevice& device, const buffers::TensorType& whole,
                       const buffers::Part& part, const std::vector<float>& elements) {
  const auto type =
      std::make_shared<const buffers::TensorType>(buffers::TensorType{whole.dtype, part.memory});
  auto value = device.pool()->Allocate(type, nullptr);
  // The content of padding must not matter: these are NaNs.
  std::string bytes(type->bytes(), '\xff');
  const auto put = [&](int64_t from, int64_t to, int64_t size) {
    std::memcpy(bytes.data() + to, reinterpret_cast<const char*>(elements.data()) + from, size);
  };
  buffers::ForEachRunWithin(whole.shape, 4, part, 0, whole.bytes(), put);
  EXPECT_TRUE(device.device().CopyToDevice(*(*value)->buffer(), 0, bytes).ok());
  return *std::move(value);
}

std::string BytesOf(const buffers::Value& value) {
  std::string bytes(value.bytes(), 0);
  const absl::Status read =
      value.pool()->device().CopyToHost(*value.buffer(), 0, absl::MakeSpan(bytes));
  EXPECT_TRUE(read.ok()) << read;
  return bytes;
}

}  // namespace

std::string MeanGraph(int devices, int64_t rows) {
  return absl::StrCat("mesh data=", devices, "\ninput 0 float32[", rows, ",8] spec=[1,0,0]\n",
                      "%0 = input float32[", rows, ",8] index=0\n",
                      "%1 = reduce_sum float32[1,8] %0 axes=[0]\n", "%2 = expand float32[", rows,
                      ",8] %1\n", "%3 = add float32[", rows, ",8] %0 %2\n", "%4 = add float32[",
                      rows, ",8] %0 %0\n", "output %3 spec=[1,0,0]\noutput %1\nupdate 0 %4\n");
}

std::string MeanGraphOnOne() {
  return R"(input 0 float32[8,8]
%0 = input float32[8,8] index=0
%1 = reduce_sum float32[1,8] %0 axes=[0]
%2 = expand float32[8,8] %1
%3 = add float32[8,8] %0 %2
%4 = add float32[8,8] %0 %0
output %3
output %1
update 0 %4
)";
}

std::string StagesGraph(int devices, int64_t rows) {
  const std::string whole = absl::StrCat("float32[", rows, ",8]");
  std::string text =
      absl::StrCat("mesh stage=", devices, "\ninput 0 ", whole, " at 0\n%0 = input ", whole,
                   " index=0\n%1 = send ", whole,
                   " %0 source=0 target=1\n%2 = reduce_sum float32[1,8] %1 axes=[0]\n");
  int last = 2;
  for (int device = 1; device + 1 < devices; ++device, ++last) {
    absl::StrAppend(&text, "%", last + 1, " = send float32[1,8] %", last, " source=", device,
                    " target=", device + 1, "\n");
  }
  absl::StrAppend(&text, "%90 = send float32[1,8] %", last, " source=", devices - 1, " target=0\n",
                  "%91 = expand ", whole, " %90\n%92 = add ", whole, " %0 %91\n%93 = add ", whole,
                  " %0 %0\noutput %92 at 0\noutput %", last, " at ", devices - 1,
                  "\nupdate 0 %93\n");
  return text;
}

MultiDeviceTest::~MultiDeviceTest() {
  for (auto& device : devices_) {
    EXPECT_TRUE(device->WaitIdle(absl::InfiniteDuration())) << device->name();
  }
}

void MultiDeviceTest::UseDriver(drivers::Driver& driver) {
  std::string why_none;
  auto devices = driver.Enumerate(&why_none);
  ASSERT_TRUE(devices.ok()) << devices.status();
  for (auto& device : *devices) UseDevice(std::move(device));
}

void MultiDeviceTest::UseDevice(std::unique_ptr<drivers::Device> device) {
  const std::string name = device->info().name;
  devices_.push_back(std::make_unique<ManagedDevice>(std::move(device), 0, metrics_.ForDevice(name),
                                                     SystemClock(), limits_));
  accounts_.push_back(std::make_shared<buffers::Account>());
  flows_.emplace_back();
  for (int user = 0; user < kUsers; ++user)
    flows_.back().push_back(devices_.back()->dispatcher().AddFlow(absl::StrCat("user", user), 1));
}

void MultiDeviceTest::UseCpus(int devices, int cores) {
  drivers::cpu::CpuDriver driver(
      {.devices = devices, .threads_per_device = 1, .cores = [cores] { return cores; }});
  UseDriver(driver);
}

void MultiDeviceTest::UseNulls(int devices, std::function<absl::Status()> fault) {
  drivers::null::NullDriver driver({.devices = devices, .fault = std::move(fault)});
  UseDriver(driver);
}

std::shared_ptr<const BoundProgram> MultiDeviceTest::Compile(const std::string& text,
                                                             const std::vector<int>& places) {
  runtime::ProgramCompiler::Options options;
  options.compile = [&](const graph::Graph& graph, const drivers::Target& target,
                        const compiler::Options& how) {
    const auto [known, fresh] =
        known_.try_emplace({absl::StrCat(how.stage, "\n", text), target.architecture});
    if (fresh) known->second = compiler::Compile(graph, target, how);
    return known->second;
  };
  options.metrics = &metrics_;
  options.clock = SystemClock();
  runtime::ProgramCompiler compiler(options);
  runtime::ProgramRequest request{std::make_shared<TextSource>(text),
                                  {},
                                  devices_[places[0]].get(),
                                  "name",
                                  runtime::Payer(nullptr)};
  request.first_call = std::make_shared<runtime::FirstCall>(SteadyNow, "wait_for_thread");
  auto graph = request.Build();
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (graph->sharding != nullptr) {
    for (const int place : places) request.members.push_back(devices_[place].get());
  }
  auto program = compiler.Compile(request, *graph, "digest");
  compiled_ = program.status();
  return program.ok() ? runtime::Bound(*program) : nullptr;
}

ValuePointer MultiDeviceTest::Input(const BoundProgram& bound, float first) {
  const auto& type = bound.signature.inputs[0];
  std::vector<float> whole(type->bytes() / 4);
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = first + static_cast<float>(i);
  ValuePointer value;
  if (!bound.signature.input_placements.empty()) {
    const auto& placement = bound.signature.input_placements[0];
    std::vector<ValuePointer> parts;
    for (const ShardedProgram::Member& member : bound.program->sharded().members()) {
      const buffers::Part part =
          buffers::PartOf(*placement, type->shape, static_cast<int64_t>(parts.size()));
      parts.push_back(WritePart(*member.device, *type, part, whole));
    }
    value = buffers::Value::Sharded(type, placement, std::move(parts));
  } else {
    // In stages, the first member has it.
    ManagedDevice& device = bound.program->device();
    auto made = device.pool()->Allocate(type, nullptr);
    const std::string bytes(reinterpret_cast<const char*>(whole.data()), 4 * whole.size());
    EXPECT_TRUE(device.device().CopyToDevice(*(*made)->buffer(), 0, bytes).ok());
    value = *std::move(made);
  }
  value->Resolve(absl::OkStatus());
  return value;
}

std::vector<float> MultiDeviceTest::Whole(const buffers::Value& value) {
  std::vector<float> whole(value.bytes() / 4);
  auto* const bytes = reinterpret_cast<char*>(whole.data());
  if (value.placement() == nullptr) {
    std::memcpy(bytes, BytesOf(value).data(), 4 * whole.size());
    return whole;
  }
  for (size_t i = 0; i < value.parts().size(); ++i) {
    const buffers::Part part =
        buffers::PartOf(*value.placement(), value.type()->shape, static_cast<int64_t>(i));
    const std::string own = BytesOf(*value.parts()[i]);
    const auto put = [&](int64_t to, int64_t from, int64_t size) {
      std::memcpy(bytes + to, own.data() + from, size);
    };
    buffers::ForEachRunWithin(value.type()->shape, 4, part, 0, value.bytes(), put);
  }
  return whole;
}

std::vector<int> MultiDeviceTest::DevicesOf(const BoundProgram& bound) const {
  std::vector<int> numbers;
  for (const ShardedProgram::Member& member : bound.program->sharded().members()) {
    int number = 0;
    while (devices_[number].get() != member.device) ++number;
    numbers.push_back(number);
  }
  return numbers;
}

MultiDeviceTest::Created MultiDeviceTest::Create(const std::shared_ptr<const BoundProgram>& bound,
                                                 const ValuePointer& input) {
  Created created;
  created.bound = bound;
  std::vector<std::shared_ptr<buffers::Account>> accounts;
  for (const int device : DevicesOf(*bound)) accounts.push_back(accounts_[device]);
  const auto run = runtime::Run::Create(
      "run", bound, {input}, accounts, &order_,
      [status = created.status, ended = created.ended](const absl::Status& result,
                                                       absl::Span<const runtime::Run::DeviceTime>) {
        *status = result;
        ended->Notify();
      });
  if (run.ok()) {
    created.run = *run;
    created.results = (*run)->results();
    const auto work = (*run)->MakeWork();
    created.work.assign(work.begin(), work.end());
  } else {
    *created.status = run.status();
    created.ended->Notify();
  }
  return created;
}

void MultiDeviceTest::Enqueue(const Created& created, int user) {
  if (created.run == nullptr) return;
  const std::vector<int> on = DevicesOf(*created.bound);
  for (size_t i = 0; i < on.size(); ++i)
    devices_[on[i]]->dispatcher().Enqueue(flows_[on[i]][user], created.work[i]);
}

absl::Status MultiDeviceTest::Await(const Created& created) {
  created.ended->WaitForNotification();
  return *created.status;
}

void MultiDeviceTest::ExpectSums(const Created& created, float scale) {
  const std::vector<float> sums = Whole(*created.results[1]);
  const std::vector<float> results = Whole(*created.results[0]);
  for (int c = 0; c < 8; ++c) {
    EXPECT_EQ(sums[c], scale * static_cast<float>(224 + 8 * c));
    for (int r = 0; r < 8; ++r)
      EXPECT_EQ(results[8 * r + c], scale * static_cast<float>(8 * r + c) + sums[c]);
  }
}

}  // namespace kiln::testing
