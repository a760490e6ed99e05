// A device for tests: host memory, and one thread that runs lists in order. A kernel is a C++
// function, named by its image's `code`. The null driver computes nothing and the CPU driver needs
// a compiler, so neither can test the server alone.
#ifndef KILN_SERVER_TESTING_FAKE_DEVICE_H_
#define KILN_SERVER_TESTING_FAKE_DEVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/interface/driver.h"

namespace kiln::testing {

// Arguments as for a CPU kernel, with their sizes.
struct FakeArguments {
  std::vector<char*> data;
  std::vector<int64_t> bytes;
  drivers::GridRange points;
};
using FakeKernel = std::function<absl::Status(const FakeArguments&)>;

class FakeDevice : public drivers::Device {
 public:
  FakeDevice(std::string name, int64_t memory_bytes);
  ~FakeDevice() override;

  // Call before loading the kernel. Predefined kernels: "add" (float32: out = a + b), "copy" (out =
  // a), "fail" (fails).
  void SetKernel(const std::string& code, FakeKernel kernel) ABSL_LOCKS_EXCLUDED(mutex_);
  // Reports `listed` as the limit of threads in a block; kernels with larger blocks than `loaded`
  // are refused when they are loaded. Call before use.
  void LimitBlocks(int listed, int loaded) ABSL_LOCKS_EXCLUDED(mutex_);
  // Requires images to be finished, and refuses those with another `finished`. Call before use.
  void TakeFinished(const std::string& finished) ABSL_LOCKS_EXCLUDED(mutex_);
  // A kernel's reported time is one microsecond for each operation in its image, as the rates
  // predict; no thread waits. Call before use.
  void TakeTime() ABSL_LOCKS_EXCLUDED(mutex_);
  // Lists that may end early do so between two commands. Call before use.
  void Yield() { yields_ = true; }
  // From now on cancelled lists are stopped, also held ones.
  void StopLists() ABSL_LOCKS_EXCLUDED(mutex_);
  // While held, nothing submitted starts.
  void Hold() ABSL_LOCKS_EXCLUDED(mutex_);
  void LetGo() ABSL_LOCKS_EXCLUDED(mutex_);
  // Buffers allocated from now on have no host pointer, as on GPUs.
  void HideMemory() ABSL_LOCKS_EXCLUDED(mutex_);
  // While held, copies between such buffers and the host do not start.
  void HoldCopies() ABSL_LOCKS_EXCLUDED(mutex_);
  void LetCopiesGo() ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on every list and allocation fails, and Health() says why.
  void Break(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on it can be revived.
  void Mend() ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t allocated_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t held_copies() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t lists_run() const ABSL_LOCKS_EXCLUDED(mutex_);

  class Memory;

  const drivers::DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> Allocate(int64_t bytes) override;
  int64_t cached_bytes() const override { return 0; }
  absl::StatusOr<std::unique_ptr<drivers::LoadedKernel>> LoadKernel(
      const drivers::KernelImage& image) override;
  // While memory is hidden, only its own buffers.
  bool CanReach(const drivers::Buffer& buffer) const override;
  absl::StatusOr<std::unique_ptr<drivers::PreparedList>> Prepare(
      drivers::CommandList list) override;
  absl::Status Submit(drivers::PreparedList& list, absl::Span<drivers::Buffer* const> slots,
                      drivers::SubmitOptions options,
                      std::function<void(drivers::SubmitResult)> done) override;
  void StopUnwanted() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool stops_lists() const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool yields() const override { return yields_; }
  bool commits() const override { return true; }
  absl::Status StartCopyToDevice(drivers::Buffer& destination, int64_t offset,
                                 absl::Span<const char> source, CopyDone done) override;
  absl::Status StartCopyToHost(const drivers::Buffer& source, int64_t offset,
                               absl::Span<char> destination, CopyDone done) override;
  absl::Status Synchronize() override;
  absl::Status Health() override;
  absl::Status Revive() override;

 private:
  struct Task;

  void Loop();
  void RunCommands(const Task& task, bool takes_time, drivers::SubmitResult* result);
  bool IsNextUnwanted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status StartCopy(std::function<void()> copy, CopyDone done) ABSL_LOCKS_EXCLUDED(mutex_);

  drivers::DeviceInfo info_;
  bool yields_ = false;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<std::string, FakeKernel> kernels_ ABSL_GUARDED_BY(mutex_);
  int block_threads_max_ ABSL_GUARDED_BY(mutex_) = 1;
  std::string finished_ ABSL_GUARDED_BY(mutex_);
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool takes_time_ ABSL_GUARDED_BY(mutex_) = false;
  bool stops_lists_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool hidden_ ABSL_GUARDED_BY(mutex_) = false;
  bool copies_held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> held_copies_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string broken_ ABSL_GUARDED_BY(mutex_);
  bool mended_ ABSL_GUARDED_BY(mutex_) = false;
  int life_ ABSL_GUARDED_BY(mutex_) = 0;  // objects from an earlier life are refused
  int64_t allocated_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t lists_run_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

// A driver with existing devices, which the first Enumerate returns.
class FakeDriver : public drivers::Driver {
 public:
  explicit FakeDriver(std::vector<std::unique_ptr<drivers::Device>> devices)
      : devices_(std::move(devices)) {}
  std::string name() const override { return "cpu"; }
  absl::StatusOr<std::vector<std::unique_ptr<drivers::Device>>> Enumerate(
      std::string* why_none) override {
    return std::move(devices_);
  }

 private:
  std::vector<std::unique_ptr<drivers::Device>> devices_;
};

}  // namespace kiln::testing

#endif  // KILN_SERVER_TESTING_FAKE_DEVICE_H_
