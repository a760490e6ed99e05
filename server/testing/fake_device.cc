#include "server/testing/fake_device.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "drivers/common/check.h"

namespace kiln::testing {
class FakeDevice::Memory : public drivers::Buffer {
 public:
  Memory(FakeDevice& device, int64_t bytes, bool hidden, int life)
      : device_(device), hidden_(hidden), life_(life), data_(bytes + 64) {}
  ~Memory() override {
    absl::MutexLock lock(&device_.mutex_);
    device_.allocated_ -= bytes();
  }
  int64_t bytes() const override { return static_cast<int64_t>(data_.size()) - 64; }
  char* data() const { return const_cast<char*>(data_.data()); }
  int life() const { return life_; }
  bool IsOf(const FakeDevice& device) const { return &device_ == &device; }
  void* host_pointer() const override { return hidden_ ? nullptr : data(); }

 private:
  FakeDevice& device_;
  const bool hidden_;
  const int life_;
  std::vector<char> data_;
};

namespace {

class FakeLoadedKernel : public drivers::LoadedKernel {
 public:
  FakeLoadedKernel(drivers::KernelImage image, FakeKernel function)
      : image_(std::move(image)), function_(std::move(function)) {}
  const drivers::KernelImage& image() const override { return image_; }
  const FakeKernel& function() const { return function_; }

 private:
  drivers::KernelImage image_;
  FakeKernel function_;
};

class FakePreparedList : public drivers::PreparedList {
 public:
  FakePreparedList(drivers::CommandList list, int life) : list_(std::move(list)), life_(life) {}
  int life() const { return life_; }
  const drivers::CommandList& list() const { return list_; }

 private:
  drivers::CommandList list_;
  const int life_;
};

char* Address(absl::Span<drivers::Buffer* const> slots, const drivers::SlotRange& range) {
  const auto* memory = dynamic_cast<const FakeDevice::Memory*>(slots[range.slot]);
  // Otherwise it is host memory.
  return (memory ? memory->data() : static_cast<char*>(slots[range.slot]->host_pointer())) +
         range.offset;
}

absl::Status RunCommand(const drivers::Command& command, absl::Span<drivers::Buffer* const> slots,
                        drivers::SignalGroup* group) {
  if (const auto* signal = std::get_if<drivers::SignalCommand>(&command)) {
    group->Raise(signal->signal);
    return absl::OkStatus();
  }
  if (const auto* wait = std::get_if<drivers::WaitCommand>(&command))
    return group->Wait(wait->signal);
  if (const auto* launch = std::get_if<drivers::LaunchCommand>(&command)) {
    FakeArguments arguments;
    arguments.points = drivers::PointsOf(*launch);
    for (const drivers::SlotRange& range : launch->arguments) {
      arguments.data.push_back(Address(slots, range));
      arguments.bytes.push_back(range.bytes);
    }
    return static_cast<const FakeLoadedKernel*>(launch->kernel)->function()(arguments);
  }
  if (const auto* copy = std::get_if<drivers::CopyCommand>(&command)) {
    std::memcpy(Address(slots, copy->destination), Address(slots, copy->source),
                copy->source.bytes);
    return absl::OkStatus();
  }
  return absl::UnimplementedError("the fake device fills nothing");
}

double OperationsOf(const drivers::Command& command) {
  const auto* launch = std::get_if<drivers::LaunchCommand>(&command);
  if (launch == nullptr) return 0;
  const drivers::KernelImage& image = launch->kernel->image();
  return static_cast<double>(image.flops) * static_cast<double>(drivers::PointsOf(*launch).size()) /
         static_cast<double>(image.grid_size);
}

absl::Status AddKernel(const FakeArguments& arguments) {
  const auto* a = reinterpret_cast<const float*>(arguments.data[0]);
  const auto* b = reinterpret_cast<const float*>(arguments.data[1]);
  auto* sum = reinterpret_cast<float*>(arguments.data[2]);
  for (int64_t i = 0; i < arguments.bytes[2] / 4; ++i) sum[i] = a[i] + b[i];
  return absl::OkStatus();
}

absl::Status CopyKernel(const FakeArguments& arguments) {
  std::memcpy(arguments.data[1], arguments.data[0], arguments.bytes[1]);
  return absl::OkStatus();
}

}  // namespace

struct FakeDevice::Task {
  const drivers::CommandList* list;
  std::vector<drivers::Buffer*> slots;
  drivers::SubmitOptions options;
  std::function<void(drivers::SubmitResult)> done;
};

FakeDevice::FakeDevice(std::string name, int64_t memory_bytes) {
  info_.name = std::move(name);
  info_.model = "fake";
  info_.target.architecture = "fake";
  info_.memory_bytes = memory_bytes;
  info_.target.rates.flops_per_second = info_.target.rates.bytes_per_second = 1e9;
  kernels_ = {
      {"add", AddKernel}, {"copy", CopyKernel}, {"fail", [](const FakeArguments&) {
                                                   return absl::InternalError("the kernel failed");
                                                 }}};
  thread_ = std::thread([this] { Loop(); });
}

FakeDevice::~FakeDevice() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void FakeDevice::LimitBlocks(int listed, int loaded) {
  absl::MutexLock lock(&mutex_);
  info_.target.limits.threads_per_block = listed;
  block_threads_max_ = loaded;
}

void FakeDevice::TakeFinished(const std::string& finished) {
  absl::MutexLock lock(&mutex_);
  info_.target.finisher = {"fake", info_.name, "1"};
  finished_ = finished;
}

void FakeDevice::TakeTime() {
  absl::MutexLock lock(&mutex_);
  info_.target.rates.flops_per_second = 1e6;
  info_.target.rates.bytes_per_second = 1e30;
  takes_time_ = true;
}

void FakeDevice::SetKernel(const std::string& code, FakeKernel kernel) {
  absl::MutexLock lock(&mutex_);
  kernels_[code] = std::move(kernel);
}
void FakeDevice::Hold() {
  absl::MutexLock lock(&mutex_);
  held_ = true;
}
void FakeDevice::LetGo() {
  absl::MutexLock lock(&mutex_);
  held_ = false;
  changed_.SignalAll();
}
void FakeDevice::HideMemory() {
  absl::MutexLock lock(&mutex_);
  hidden_ = true;
}
void FakeDevice::HoldCopies() {
  absl::MutexLock lock(&mutex_);
  copies_held_ = true;
}
void FakeDevice::LetCopiesGo() {
  std::vector<std::function<void()>> copies;
  {
    absl::MutexLock lock(&mutex_);
    copies_held_ = false;
    copies.swap(held_copies_);
  }
  for (const auto& copy : copies) copy();
}
void FakeDevice::Break(const std::string& why) {
  absl::MutexLock lock(&mutex_);
  broken_ = why;
}
void FakeDevice::Mend() {
  absl::MutexLock lock(&mutex_);
  mended_ = true;
}
int64_t FakeDevice::allocated_bytes() const {
  absl::MutexLock lock(&mutex_);
  return allocated_;
}
size_t FakeDevice::held_copies() const {
  absl::MutexLock lock(&mutex_);
  return held_copies_.size();
}
int64_t FakeDevice::lists_run() const {
  absl::MutexLock lock(&mutex_);
  return lists_run_;
}

absl::StatusOr<std::unique_ptr<drivers::Buffer>> FakeDevice::Allocate(int64_t bytes) {
  bool hidden = false;
  int life = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (!broken_.empty()) return absl::InternalError(broken_);
    if (bytes > info_.memory_bytes - allocated_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(bytes, " bytes asked for, ", info_.memory_bytes - allocated_, " left"));
    }
    allocated_ += bytes;
    hidden = hidden_;
    life = life_;
  }
  return std::make_unique<Memory>(*this, bytes, hidden, life);
}

absl::StatusOr<std::unique_ptr<drivers::LoadedKernel>> FakeDevice::LoadKernel(
    const drivers::KernelImage& image) {
  absl::MutexLock lock(&mutex_);
  const auto found = kernels_.find(image.code);
  if (found == kernels_.end())
    return absl::InvalidArgumentError(absl::StrCat("no fake kernel ", image.code));
  if (image.block_size > block_threads_max_)
    return drivers::BlocksTooLarge("too many registers", block_threads_max_);
  if (!image.finished.empty() && image.finished != finished_)
    return drivers::FinishedRefused("another version");
  return std::make_unique<FakeLoadedKernel>(image, found->second);
}

bool FakeDevice::CanReach(const drivers::Buffer& buffer) const {
  const auto* memory = dynamic_cast<const Memory*>(&buffer);
  return memory != nullptr && (memory->host_pointer() != nullptr || memory->IsOf(*this));
}

absl::StatusOr<std::unique_ptr<drivers::PreparedList>> FakeDevice::Prepare(
    drivers::CommandList list) {
  absl::MutexLock lock(&mutex_);
  return std::make_unique<FakePreparedList>(std::move(list), life_);
}

absl::Status FakeDevice::Submit(drivers::PreparedList& list,
                                absl::Span<drivers::Buffer* const> slots,
                                drivers::SubmitOptions options,
                                std::function<void(drivers::SubmitResult)> done) {
  auto& prepared = static_cast<FakePreparedList&>(list);
  if (static_cast<int>(slots.size()) != prepared.list().num_slots) {
    return absl::InvalidArgumentError("wrong number of buffers");
  }
  absl::MutexLock lock(&mutex_);
  if (prepared.life() != life_) return absl::InternalError("the list is from before the loss");
  for (const drivers::Buffer* slot : slots) {
    const auto* memory = dynamic_cast<const Memory*>(slot);
    if (memory != nullptr && memory->IsOf(*this) && memory->life() != life_)
      return absl::InternalError("a buffer is from before the loss");
  }
  tasks_.push_back({&prepared.list(), {slots.begin(), slots.end()}, options, std::move(done)});
  changed_.SignalAll();
  return absl::OkStatus();
}

void FakeDevice::StopLists() {
  absl::MutexLock lock(&mutex_);
  stops_lists_ = true;
}

bool FakeDevice::stops_lists() const {
  absl::MutexLock lock(&mutex_);
  return stops_lists_;
}

void FakeDevice::StopUnwanted() {
  absl::MutexLock lock(&mutex_);
  changed_.SignalAll();
}

bool FakeDevice::IsNextUnwanted() const {
  if (!stops_lists_ || tasks_.empty()) return false;
  const auto& unwanted = tasks_.front().options.unwanted;
  return unwanted != nullptr && *unwanted;
}

void FakeDevice::RunCommands(const Task& task, bool takes_time, drivers::SubmitResult* result) {
  const auto& commands = task.list->commands;
  const drivers::SubmitOptions& options = task.options;
  double slice_begin = 0;
  for (size_t i = options.begin.command; i < commands.size(); ++i) {
    if (yields_ && options.goes_on && result->seconds - slice_begin >= options.slice_seconds) {
      if (result->status.ok() && !options.goes_on(result->seconds)) {
        result->rest = drivers::ListPosition{static_cast<int>(i), 0};
        return;
      }
      slice_begin = result->seconds;
    }
    const bool begins_commit =
        options.begin_commit != nullptr && i == static_cast<size_t>(options.commit);
    if (result->status.ok() && begins_commit) result->status = options.begin_commit();
    if (result->status.ok())
      result->status = RunCommand(commands[i], task.slots, options.group.get());
    const double seconds = 1e-6 * (takes_time ? OperationsOf(commands[i]) : 1);
    if (options.time_commands) result->command_seconds.push_back(seconds);
    result->seconds += seconds;
  }
}

void FakeDevice::Loop() {
  while (true) {
    Task task;
    std::string broken;
    bool takes_time = false, is_unwanted = false;
    {
      absl::MutexLock lock(&mutex_);
      while ((tasks_.empty() || (held_ && !IsNextUnwanted())) && !stopping_) changed_.Wait(&mutex_);
      if (tasks_.empty()) return;
      is_unwanted = IsNextUnwanted();
      task = std::move(tasks_.front());
      tasks_.pop_front();
      running_ = true;
      broken = broken_;
      takes_time = takes_time_;
    }
    drivers::SubmitResult result;
    if (is_unwanted) result.status = absl::CancelledError("nobody wants it");
    if (!broken.empty()) result.status = absl::InternalError(broken);
    RunCommands(task, takes_time, &result);
    if (!result.status.ok() && task.options.group != nullptr)
      task.options.group->Abort(result.status);
    {
      absl::MutexLock lock(&mutex_);
      ++lists_run_;
      running_ = false;
      changed_.SignalAll();
    }
    // Without the lock, as in a real driver: the callback may submit more.
    task.done(std::move(result));
  }
}

absl::Status FakeDevice::StartCopy(std::function<void()> copy, CopyDone done) {
  {
    absl::MutexLock lock(&mutex_);
    if (!broken_.empty()) return absl::InternalError(broken_);
    if (copies_held_) {
      held_copies_.push_back([this, copy = std::move(copy), done = std::move(done)] {
        copy();
        done(Health());
      });
      return absl::OkStatus();
    }
  }
  copy();
  done(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status FakeDevice::StartCopyToDevice(drivers::Buffer& destination, int64_t offset,
                                           absl::Span<const char> source, CopyDone done) {
  char* to = static_cast<Memory&>(destination).data() + offset;
  return StartCopy([to, source] { std::memcpy(to, source.data(), source.size()); },
                   std::move(done));
}

absl::Status FakeDevice::StartCopyToHost(const drivers::Buffer& source, int64_t offset,
                                         absl::Span<char> destination, CopyDone done) {
  const char* from = static_cast<const Memory&>(source).data() + offset;
  return StartCopy(
      [from, destination] { std::memcpy(destination.data(), from, destination.size()); },
      std::move(done));
}

absl::Status FakeDevice::Synchronize() {
  absl::MutexLock lock(&mutex_);
  while (running_ || !tasks_.empty()) changed_.Wait(&mutex_);
  return absl::OkStatus();
}

absl::Status FakeDevice::Health() {
  absl::MutexLock lock(&mutex_);
  return broken_.empty() ? absl::OkStatus() : absl::InternalError(broken_);
}

absl::Status FakeDevice::Revive() {
  absl::MutexLock lock(&mutex_);
  if (!mended_) return absl::InternalError(broken_);
  broken_.clear();
  mended_ = false;
  ++life_;
  return absl::OkStatus();
}

}  // namespace kiln::testing
