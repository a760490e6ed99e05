#include "server/runtime/health/health_probe.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/node.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/runtime/run/run.h"

namespace kiln::runtime {
namespace {

constexpr int64_t kElements = 64;
constexpr char kUser[] = "kilnd";

// The graph x + y.
class ProbeSource : public GraphSource {
 public:
  const std::string& key() const override { return key_; }
  const std::vector<Variable>& variables() const override { return none_; }
  absl::StatusOr<graph::Graph> Build(const Bindings&, const Grow&, ops::FormSizes*) const override {
    graph::Graph graph;
    graph.context = std::make_shared<ir::Context>();
    std::vector<const ir::Node*> operands;
    for (int64_t i = 0; i < 2; ++i) {
      graph.inputs.push_back({ir::DType::kFloat32, {kElements}});
      operands.push_back(graph.context->Get(ir::Op::kInput, ir::DType::kFloat32, {kElements}, {},
                                            ir::InputAttr{i}));
    }
    graph.outputs.push_back(
        graph.context->Get(ir::Op::kAdd, ir::DType::kFloat32, {kElements}, operands));
    return graph;
  }

 private:
  const std::string key_ = "health probe";
  const std::vector<Variable> none_;
};

// Returns different numbers for each seed, so that an earlier probe's result does not pass. Their
// sums are exact in float32.
std::vector<float> Numbers(uint32_t seed) {
  std::vector<float> numbers(kElements);
  for (float& number : numbers) {
    seed = seed * 1664525 + 1013904223;  // Numerical Recipes' linear congruential generator
    number = static_cast<float>(seed >> 16);
  }
  return numbers;
}

}  // namespace

HealthProbe::HealthProbe(Options options)
    : options_(options), flow_(options.device->dispatcher().AddFlow(kUser, 1)) {}

HealthProbe::~HealthProbe() { options_.device->dispatcher().RemoveFlow(flow_); }

void HealthProbe::Validate() const {
  KILN_CHECK(under_way_ || !overdue_) << options_.device->name();
  KILN_CHECK(under_way_ || queued_ == absl::InfiniteFuture()) << options_.device->name();
}

void HealthProbe::Tick(absl::Time now) {
  const fairness::Dispatcher& dispatcher = options_.device->dispatcher();
  const double device_seconds = dispatcher.device_seconds();
  // On devices that do not stop lists, a kernel may take as long as predicted, or somewhat longer.
  const bool stops = options_.device->device().stops_lists();
  const absl::Duration patience =
      options_.patience +
      (stops ? options_.longest_run : 2 * absl::Seconds(dispatcher.predicted_seconds_in_flight()));
  bool begins = false, is_late = false, are_too_long = false;
  {
    absl::MutexLock lock(&mutex_);
    if (device_seconds != device_seconds_then_) last_end_ = now;
    device_seconds_then_ = device_seconds;
    if (!under_way_ && now >= next_) {
      under_way_ = begins = true;
      next_ = now + options_.interval;
      ++number_;
    }
    // Queue marks the probe as queued; the time is set here, since the clock is the caller's.
    if (under_way_ && queued_ == absl::InfinitePast()) queued_ = now;
    const absl::Duration silence = now - std::max(queued_, last_end_);
    is_late = under_way_ && !overdue_ && silence > patience;
    are_too_long = under_way_ && stops && silence > options_.longest_run;
    overdue_ = overdue_ || is_late;
    KILN_VALIDATE(*this, 1);
  }
  if (begins) return Begin();
  if (are_too_long) StopRuns();
  if (!is_late) return;
  options_.device->SetUnresponsive(
      absl::StrCat("a tiny program has waited for ", absl::FormatDuration(patience)));
  // If the probe ended meanwhile, End cleared the state before it was set here.
  bool has_ended;
  {
    absl::MutexLock lock(&mutex_);
    has_ended = !overdue_;
  }
  if (has_ended) options_.device->SetUnresponsive("");
}

// Repeated by Tick until the probe ends: another long run may have followed the one that was
// stopped.
void HealthProbe::StopRuns() {
  const std::string limit = absl::StrCat(absl::ToDoubleSeconds(options_.longest_run));
  options_.device->dispatcher().StopInFlight(errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "the run was stopped because one of its kernels used the device for more than ", limit,
          " seconds; use smaller shapes, split the work into several runs, or start kilnd with a "
          "higher --run_seconds_limit")),
      "RUN_TOO_LONG", {{"limit", limit}}));
  options_.device->device().StopUnwanted();
}

void HealthProbe::Begin() {
  // Cached from the second time on, unless there was no memory to keep it.
  const auto program =
      options_.programs->Get(std::make_shared<ProbeSource>(), {}, *options_.device, "health probe");
  const auto go_on = [self = shared_from_this(), program] {
    program->result().ok() ? self->Queue(*program->result())
                           : self->End(program->result().status());
  };
  if (!program->AddWaiter(go_on)) go_on();
}

absl::StatusOr<std::shared_ptr<buffers::Value>> HealthProbe::MakeInput(
    const std::vector<float>& values) {
  const auto type = std::make_shared<const buffers::TensorType>(
      buffers::TensorType{ir::DType::kFloat32, {kElements}});
  auto input = options_.device->pool()->Allocate(type, account_);
  if (!input.ok()) return input.status();
  struct Copy {
    std::vector<float> values;
    absl::string_view bytes;
  };
  const auto copy = std::make_shared<Copy>();
  copy->values = values;
  copy->bytes = {reinterpret_cast<const char*>(copy->values.data()), kElements * sizeof(float)};
  // A list that uses it and is submitted from now on starts after the copy.
  options_.device->pool()->Fill(
      **input, {&copy->bytes, 1},
      [copy, input = *input](const absl::Status& filled) { input->Resolve(filled); });
  return input;
}

void HealthProbe::Queue(const BoundPointer& program) {
  uint32_t number;
  {
    absl::MutexLock lock(&mutex_);
    number = number_;
  }
  const std::vector<float> first = Numbers(number), second = Numbers(~number);
  auto expected = first;
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += second[i];
  std::vector<ValuePointer> inputs;
  for (const auto& values : {first, second}) {
    auto input = MakeInput(values);
    if (!input.ok()) return End(input.status());
    inputs.push_back(*std::move(input));
  }
  // Set before the run is queued, since `done` may be called as soon as it is.
  const auto result = std::make_shared<ValuePointer>();
  auto run =
      Run::Create(absl::StrCat("health/", number), program, std::move(inputs), {account_}, nullptr,
                  [self = shared_from_this(), result, expected = std::move(expected)](
                      const absl::Status& status, absl::Span<const Run::DeviceTime>) {
                    status.ok() ? self->Compare(*result, expected) : self->End(status);
                  });
  if (!run.ok()) return End(run.status());
  *result = (*run)->results()[0];
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK(under_way_) << options_.device->name();
    queued_ = absl::InfinitePast();
  }
  options_.device->dispatcher().Enqueue(flow_, *std::move(run));
}

void HealthProbe::Compare(const std::shared_ptr<buffers::Value>& result,
                          const std::vector<float>& expected) {
  const auto found = std::make_shared<std::vector<float>>(expected.size());
  options_.device->pool()->Read(
      *result, 0,
      absl::MakeSpan(reinterpret_cast<char*>(found->data()), found->size() * sizeof(float)),
      [self = shared_from_this(), result, found, expected](const absl::Status& read) {
        if (!read.ok()) return self->End(read);
        for (size_t i = 0; i < expected.size(); ++i) {
          if ((*found)[i] == expected[i]) continue;
          return self->End(absl::DataLossError(
              absl::StrCat("a sum that must be ", expected[i], " was computed as ", (*found)[i])));
        }
        self->End(absl::OkStatus());
      });
}

void HealthProbe::End(const absl::Status& status) {
  bool was_overdue;
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK(under_way_) << options_.device->name() << ": the probe ended twice";
    under_way_ = false;
    queued_ = absl::InfiniteFuture();
    was_overdue = std::exchange(overdue_, false);
    KILN_VALIDATE(*this, 1);
  }
  if (was_overdue) options_.device->SetUnresponsive("");
  if (absl::IsDataLoss(status)) return options_.device->Condemn(std::string(status.message()));
  if (!status.ok()) {
    log::Debug("no_health_probe",
               {{"device", options_.device->name()}, {"why", std::string(status.message())}});
  }
}

}  // namespace kiln::runtime
