#include "server/runtime/program/program.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "server/runtime/program/run_memory.h"

namespace kiln::runtime {
namespace {

constexpr size_t kUsersMax = 64;  // who have asked for a program

constexpr double kNewWeight = 0.125;  // of a measurement in the moving average

constexpr int64_t kSampleEvery = 64;
constexpr int64_t kSampleGapNanoseconds = 100'000'000;
std::atomic<int64_t> next_sample_nanoseconds{0};

// Estimates the time of a kernel that has not run yet.
double GuessSeconds(const drivers::KernelImage& image, const drivers::Rates& rates) {
  // Arithmetic and memory traffic overlap, so the slower of the two counts.
  return std::max(static_cast<double>(image.flops) / rates.flops_per_second,
                  static_cast<double>(image.bytes) / rates.bytes_per_second) +
         rates.launch_seconds;
}

// Estimates the time of a program that has not run yet. Until the first run, the order in the queue
// depends on it, and whether the run is cut.
double GuessSeconds(const compiler::CompiledProgram& compiled, const drivers::Rates& rates) {
  double seconds = rates.launch_seconds;
  for (const compiler::KernelCall& call : compiled.calls)
    seconds += GuessSeconds(compiled.kernels[call.kernel].image, rates);
  return seconds;
}

// Estimates the time of a run that has not run yet: that of its slowest device.
double GuessSeconds(const ShardedProgram& sharded) {
  double seconds = 0;
  for (const ShardedProgram::Member& member : sharded.members())
    seconds = std::max(seconds, GuessSeconds(*member.compiled, member.device->info().target.rates));
  return seconds;
}

// Joins the kernels and calls of all distinct programs, one program after another, for descriptions
// and for their times. The rest is from the first program.
std::shared_ptr<const compiler::CompiledProgram> JoinCompiled(const ShardedProgram& sharded) {
  const std::vector<int> distinct = sharded.distinct();
  if (distinct.size() == 1) return sharded.members().front().compiled;
  auto all = std::make_shared<compiler::CompiledProgram>(sharded.compiled(0));
  for (const int member : distinct) {
    if (member == 0) continue;
    const compiler::CompiledProgram& more = sharded.compiled(member);
    const int first_kernel = static_cast<int>(all->kernels.size());
    all->kernels.insert(all->kernels.end(), more.kernels.begin(), more.kernels.end());
    for (const compiler::KernelCall& call : more.calls) {
      all->calls.push_back(call);
      all->calls.back().kernel += first_kernel;
    }
  }
  return all;
}

}  // namespace

// A kernel's loops are also kept as nodes, which take several times the
// size of their text. Its code is kept both as compiled and as loaded.
int64_t HostBytes(const compiler::CompiledProgram& compiled) {
  constexpr size_t kTimesText = 8;
  constexpr size_t kPerKernel = 20 << 10;  // including separate pages for its code
  constexpr size_t kPerArgument = 64;
  constexpr size_t kFirstCall = 8 << 10;  // its parts
  size_t bytes =
      kFirstCall + kPerKernel + compiled.graph_text.size() + compiled.partition_text.size();
  for (const compiler::CompiledKernel& kernel : compiled.kernels) {
    bytes += kPerKernel + kTimesText * kernel.ir.size() + kernel.schedule.size() +
             2 * (kernel.image.code.size() + kernel.image.finished.size()) + kernel.assembly.size();
  }
  for (const compiler::PassReport& pass : compiled.passes) bytes += pass.text.size();
  for (const compiler::KernelCall& call : compiled.calls)
    bytes += kPerArgument * (2 + call.arguments.size());
  return static_cast<int64_t>(bytes +
                              kPerArgument * (compiled.slots.size() + compiled.copies.size()));
}

Program::Program(ShardedProgram sharded, Description description, Signature signature,
                 std::vector<int> same_results)
    : sharded_(std::move(sharded)),
      description_(std::move(description)),
      signature_(std::move(signature)),
      compiled_(JoinCompiled(sharded_)),
      same_results_(std::move(same_results)),
      host_bytes_(HostBytes(*compiled_)),
      predicted_(GuessSeconds(sharded_)) {
  for (const ShardedProgram::Member& member : sharded_.members()) {
    kernel_samples_.emplace_back(*member.compiled);
    host_bytes_ += KernelSamples::HostBytes(*member.compiled);
  }
  const size_t results = signature_.outputs.size() + signature_.updates.size();
  KILN_CHECK(same_results_.empty() || same_results_.size() == results);
}

void Program::Validate() const {
  KILN_CHECK_LE(users_.size(), kUsersMax);
  KILN_CHECK(users_.empty() || has_users_);
  std::set<absl::string_view> names;
  for (const auto& [user, use] : users_) {
    const bool is_new = names.insert(user).second;
    KILN_CHECK(is_new) << user;
    KILN_CHECK_GE(use.runs, 0) << user;
    KILN_CHECK_LE(use.runs, runs()) << user;
  }
  KILN_CHECK_EQ(kernel_samples_.size(), sharded_.size());
  KILN_CHECK_GE(samples_, 0);
  KILN_CHECK_LE(samples_, runs());
}

absl::StatusOr<std::shared_ptr<Program>> Program::Load(ShardedProgram sharded,
                                                       Description description, Signature signature,
                                                       std::vector<int> same_results) {
  std::shared_ptr<Program> program(new Program(std::move(sharded), std::move(description),
                                               std::move(signature), std::move(same_results)));
  const auto loaded = program->OnDevices();
  if (!loaded.ok()) return loaded.status();
  program->host_bytes_ += (*loaded)->host_bytes();
  return program;
}

std::vector<std::string> Program::device_names() const {
  std::vector<std::string> names;
  for (const ShardedProgram::Member& member : sharded_.members()) {
    const std::string& name = member.device->name();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

ManagedDevice& Program::device_of_kernel(size_t kernel) const {
  for (const int member : sharded_.distinct()) {
    const size_t kernels = sharded_.compiled(member).kernels.size();
    if (kernel < kernels) return sharded_.device(member);
    kernel -= kernels;
  }
  return device();
}

absl::StatusOr<std::shared_ptr<const LoadedProgram>> Program::OnDevices() {
  absl::MutexLock lock(&loading_mutex_);
  if (loaded_ != nullptr && !loaded_->lost()) return loaded_;
  auto loaded = LoadProgram(sharded_, /*finishes_images=*/false);
  // After a loss only: a new program is compiled again instead.
  if (drivers::IsFinishedRefused(loaded.status()) && loaded_ != nullptr)
    loaded = LoadProgram(sharded_, /*finishes_images=*/true);
  if (loaded.ok()) loaded_ = *loaded;
  return loaded;
}

absl::StatusOr<std::shared_ptr<JointMemory>> Program::ReserveJointMemory(
    const std::shared_ptr<const LoadedProgram>& loaded) {
  absl::MutexLock lock(&loading_mutex_);
  if (auto memory = joint_memory_.lock(); memory && memory->loaded == loaded) return memory;
  // Memory made for lost parts must not replace the memory of parts loaded since.
  for (const LoadedProgram::Member& member : loaded->members)
    if (member.life != member.pool->life()) return member.pool->LostError();
  auto memory = JointMemory::Make(sharded_, loaded);
  if (memory.ok()) joint_memory_ = *memory;
  return memory;
}

std::vector<double> Program::CallSeconds(int64_t* samples) const {
  std::vector<double> seconds;
  absl::MutexLock lock(&mutex_);
  *samples = samples_;
  const std::vector<KernelTimes> all = KernelTimesNow();
  KILN_CHECK_EQ(all.size(), compiled_->kernels.size());
  for (const compiler::KernelCall& call : compiled_->calls) {
    const KernelTimes& times = all[call.kernel];
    const drivers::Rates& rates = device_of_kernel(call.kernel).info().target.rates;
    seconds.push_back(times.samples > 0
                          ? times.median_seconds
                          : GuessSeconds(compiled_->kernels[call.kernel].image, rates));
  }
  return seconds;
}

bool Program::TakeSample() {
  const int64_t run = started_.fetch_add(1, std::memory_order_relaxed);
  // The first run is cold, so the second one is timed as well.
  if (run < 2) return true;
  if (run % kSampleEvery != 0 && (run > kSampleEvery || (run & (run - 1)) != 0)) return false;
  // The limit in time is for programs of a few microseconds, whose runs come very often.
  const int64_t now = absl::ToUnixNanos(device().clock().steady());
  int64_t next = next_sample_nanoseconds.load(std::memory_order_relaxed);
  // If several programs try at once, one gets the sample.
  return now >= next && next_sample_nanoseconds.compare_exchange_strong(
                            next, now + kSampleGapNanoseconds, std::memory_order_relaxed);
}

void Program::RecordRun(const std::string& user, double seconds) {
  // A measurement replaces the guess; after that, an outlier moves the average by an eighth. Runs
  // end one after another on the device's thread, so load and store need not be one atomic step.
  const bool first = runs_.fetch_add(1, std::memory_order_relaxed) == 0;
  const double before = predicted_.load(std::memory_order_relaxed);
  predicted_.store(first ? seconds : before + kNewWeight * (seconds - before),
                   std::memory_order_relaxed);
  device_seconds_ += seconds;
  if (const auto known = FindUser(user); known != users_.end()) {
    ++known->second.runs;
    known->second.device_seconds += seconds;
  }
}

bool Program::Record(const std::string& user, absl::Span<const double> seconds,
                     absl::Span<const std::vector<double>> call_seconds) {
  KILN_CHECK_EQ(seconds.size(), sharded_.size());
  KILN_CHECK(call_seconds.empty() || call_seconds.size() == seconds.size());
  absl::MutexLock lock(&mutex_);
  // Each device accounts its own time for fair shares; a run takes as long as on the slowest
  // device.
  RecordRun(user, *std::max_element(seconds.begin(), seconds.end()));
  if (call_seconds.empty()) return false;
  ++samples_;
  bool is_warm = true;
  for (size_t i = 0; i < kernel_samples_.size(); ++i)
    is_warm = kernel_samples_[i].Add(seconds[i], call_seconds[i]) && is_warm;
  KILN_VALIDATE(*this, users_.size());
  return is_warm;
}

std::shared_ptr<const metrics::KernelShares> Program::kernel_shares(int member) const {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_LT(member, kernel_samples_.size());
  return kernel_samples_[member].shares();
}

void Program::NoteUser(const std::string& user, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  has_users_ = true;
  const auto known = FindUser(user);
  if (known != users_.end()) {
    known->second.name = name;
    std::rotate(known, known + 1, users_.end());
    KILN_VALIDATE(*this, users_.size());
    return;
  }
  if (users_.size() >= kUsersMax) users_.erase(users_.begin());
  users_.emplace_back(user, Use{.name = name, .since = device().clock().wall()});
  KILN_VALIDATE(*this, users_.size());
}

void Program::ForgetUser(const std::string& user) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(users_, [&](const auto& known) { return known.first == user; });
  KILN_VALIDATE(*this, users_.size());
}

std::vector<std::pair<std::string, Program::Use>>::iterator Program::FindUser(
    const std::string& user) {
  return std::find_if(users_.begin(), users_.end(),
                      [&](const auto& known) { return known.first == user; });
}

std::optional<Program::Use> Program::UseBy(const std::string& user) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [known, use] : users_)
    if (known == user) return use;
  return std::nullopt;
}

bool Program::has_users() const {
  absl::MutexLock lock(&mutex_);
  return has_users_;
}

double Program::device_seconds() const {
  absl::MutexLock lock(&mutex_);
  return device_seconds_;
}

std::vector<KernelTimes> Program::kernel_times() const {
  absl::MutexLock lock(&mutex_);
  return KernelTimesNow();
}

std::vector<KernelTimes> Program::KernelTimesNow() const {
  std::vector<KernelTimes> all;
  for (const int member : sharded_.distinct()) {
    const std::vector<KernelTimes> times = kernel_samples_[member].Times();
    all.insert(all.end(), times.begin(), times.end());
  }
  return all;
}

std::string ShortName(const std::string& name) {
  return std::string(Shortened(std::string_view(name).substr(0, name.find('\n')), 80));
}

}  // namespace kiln::runtime
