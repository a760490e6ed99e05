#include "drivers/hsa/context.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "drivers/hsa/error.h"
#include "proto/check/check.h"

namespace kiln::drivers::hsa {
namespace {

// Kept for reuse; more than the lists in flight need.
constexpr size_t kIdleSignalsMax = 1024;
// How often a wait checks whether the device was lost.
constexpr double kLookSeconds = 0.05;
constexpr auto kRoomPause = std::chrono::microseconds(20);
constexpr double kTrialSeconds = 1;

}  // namespace

absl::StatusOr<std::shared_ptr<Context>> Context::Make(std::shared_ptr<const Library> hsa,
                                                       const DeviceFacts& facts,
                                                       std::vector<hsa_agent_t> peers) {
  std::shared_ptr<Context> context(new Context(std::move(hsa), facts));
  const Library& library = context->hsa();
  context->open_to_ = {facts.agent};
  for (hsa_agent_t peer : peers) {
    hsa_amd_memory_pool_access_t access = HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
    const hsa_status_t code = library.amd_agent_memory_pool_get_info(
        peer, facts.memory, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access);
    if (peer.handle != facts.agent.handle && code == HSA_STATUS_SUCCESS &&
        access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED)
      context->open_to_.push_back(peer);
  }
  const uint32_t packets = std::min(kQueuePacketsMax, std::bit_floor(facts.queue_packets_max));
  const hsa_status_t code = library.queue_create(
      facts.agent, packets, HSA_QUEUE_TYPE_MULTI,
      [](hsa_status_t status, hsa_queue_t*, void* data) {
        auto* lost = static_cast<Context*>(data);
        lost->Lose(absl::StrCat("its queue failed: ", ErrorName(lost->hsa(), status)))
            .IgnoreError();
      },
      context.get(), UINT32_MAX, UINT32_MAX, &context->queue_);
  if (code != HSA_STATUS_SUCCESS) {
    context->queue_ = nullptr;
    return ToStatus(library, "cannot make a queue", code);
  }
  return context;
}

Context::~Context() {
  // Afterwards the runtime calls no callback and writes no signal.
  if (queue_ != nullptr) hsa().queue_destroy(queue_);
  absl::MutexLock lock(&mutex_);
  for (hsa_signal_t signal : signals_) hsa().signal_destroy(signal);
}

void Context::Validate() const {
  std::set<uint64_t> handles;
  for (hsa_signal_t signal : signals_) {
    KILN_CHECK_NE(signal.handle, 0U);
    const bool is_new = handles.insert(signal.handle).second;
    KILN_CHECK(is_new) << "an idle signal is kept twice";
  }
}

void* Context::AllocateMemory(int64_t bytes) {
  if (!Health().ok()) return nullptr;
  void* memory = nullptr;
  hsa_status_t code = hsa().amd_memory_pool_allocate(facts_.memory, static_cast<size_t>(bytes),
                                                     /*flags=*/0, &memory);
  if (code != HSA_STATUS_SUCCESS) return nullptr;
  if (open_to_.size() > 1) {
    code = hsa().amd_agents_allow_access(static_cast<uint32_t>(open_to_.size()), open_to_.data(),
                                         nullptr, memory);
  }
  if (code == HSA_STATUS_SUCCESS) return memory;
  ReleaseMemory(memory);
  return nullptr;
}

absl::StatusOr<char*> Context::AllocateHostMemory(size_t bytes) {
  void* memory = nullptr;
  hsa_status_t code = hsa().amd_memory_pool_allocate(facts_.arguments, bytes, /*flags=*/0, &memory);
  if (code == HSA_STATUS_SUCCESS) {
    code = hsa().amd_agents_allow_access(1, &facts_.agent, nullptr, memory);
    if (code == HSA_STATUS_SUCCESS) return static_cast<char*>(memory);
    ReleaseMemory(memory);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the host does not have ", bytes, " bytes left that the device can access"));
}

void Context::ReleaseMemory(void* memory) { hsa().amd_memory_pool_free(memory); }

bool Context::IsOpenTo(hsa_agent_t agent) const {
  return std::any_of(open_to_.begin(), open_to_.end(),
                     [&](hsa_agent_t open) { return open.handle == agent.handle; });
}

absl::StatusOr<Signal> Context::TakeSignal(hsa_signal_value_t value) {
  hsa_signal_t signal = {};
  {
    absl::MutexLock lock(&mutex_);
    if (!signals_.empty()) {
      signal = signals_.back();
      signals_.pop_back();
    }
  }
  if (signal.handle != 0) {
    hsa().signal_store_relaxed(signal, value);
    return Signal(this, signal);
  }
  const hsa_status_t code = hsa().signal_create(value, 0, nullptr, &signal);
  if (code != HSA_STATUS_SUCCESS) return ToStatus(hsa(), "cannot make a signal", code);
  return Signal(this, signal);
}

void Context::GiveBack(hsa_signal_t signal) {
  KILN_CHECK_NE(signal.handle, 0U);
  absl::MutexLock lock(&mutex_);
  // The queue of a lost device may still write the signal until the queue is destroyed.
  if (signals_.size() < kIdleSignalsMax || !Health().ok()) {
    signals_.push_back(signal);
    KILN_VALIDATE(*this, signals_.size());
    return;
  }
  hsa().signal_destroy(signal);
}

absl::Status Context::Await(hsa_signal_t signal, hsa_signal_value_t value) {
  while (true) {
    // Work that had ended before the loss counts as ended.
    if (hsa().signal_load_scacquire(signal) < value) return absl::OkStatus();
    if (absl::Status lost = Health(); !lost.ok()) return lost;
    if (AwaitFor(signal, value, kLookSeconds).ok()) return absl::OkStatus();
  }
}

absl::Status Context::AwaitFor(hsa_signal_t signal, hsa_signal_value_t below, double seconds_max) {
  const auto ticks = static_cast<uint64_t>(seconds_max * hsa().ticks_per_second);
  const hsa_signal_value_t value = hsa().signal_wait_scacquire(
      signal, HSA_SIGNAL_CONDITION_LT, below, ticks, HSA_WAIT_STATE_BLOCKED);
  return value < below ? absl::OkStatus()
                       : absl::DeadlineExceededError("the signal was not raised");
}

absl::Status Context::AwaitRoom(uint64_t end) {
  while (end - hsa().queue_load_read_index_scacquire(queue_) > queue_->size) {
    if (absl::Status lost = Health(); !lost.ok()) return lost;
    std::this_thread::sleep_for(kRoomPause);
  }
  return absl::OkStatus();
}

// The ring's processed packets are invalid, and the device stops at the first invalid one. So the
// other packets may be written in any order, and the header of the first one last.
void Context::Write(uint64_t index, absl::Span<const Packet> packets) {
  KILN_CHECK(!packets.empty() && packets.size() <= queue_->size) << packets.size();
  auto* const ring = static_cast<Packet*>(queue_->base_address);
  const uint64_t first = index % queue_->size;
  const size_t before_end = std::min<size_t>(packets.size(), queue_->size - first);
  std::memcpy(ring, packets.data() + before_end, (packets.size() - before_end) * sizeof(Packet));
  std::memcpy(ring + first + 1, packets.data() + 1, (before_end - 1) * sizeof(Packet));
  auto* const to = reinterpret_cast<char*>(ring + first);
  const auto* const from = reinterpret_cast<const char*>(packets.data());
  std::memcpy(to + sizeof(uint32_t), from + sizeof(uint32_t), sizeof(Packet) - sizeof(uint32_t));
  // The header and the field after it are one 32-bit word, stored together.
  uint32_t header = 0;
  std::memcpy(&header, from, sizeof(header));
  __atomic_store_n(reinterpret_cast<uint32_t*>(to), header, __ATOMIC_RELEASE);
}

absl::Status Context::Push(absl::Span<const Packet> packets) {
  absl::MutexLock lock(&push_mutex_);
  // Lists longer than the queue are pushed in parts; each part fits while the previous one is
  // processed.
  const size_t part_max = std::max<size_t>(queue_->size / 2, 1);
  while (!packets.empty()) {
    if (absl::Status lost = Health(); !lost.ok()) return lost;
    const auto part = packets.subspan(0, part_max);
    packets.remove_prefix(part.size());
    const uint64_t index = hsa().queue_add_write_index_relaxed(queue_, part.size());
    if (absl::Status status = AwaitRoom(index + part.size()); !status.ok()) return status;
    Write(index, part);
    hsa().signal_store_screlease(queue_->doorbell_signal,
                                 static_cast<hsa_signal_value_t>(index + part.size() - 1));
  }
  return absl::OkStatus();
}

void Context::StartTiming() {
  absl::MutexLock lock(&mutex_);
  if (timing_) return;
  timing_ = true;
  // Without these calls, times stay 0.
  hsa().amd_profiling_set_profiler_enabled(queue_, 1);
  hsa().amd_profiling_async_copy_enable(true);
}

double Context::Seconds(uint64_t begin, uint64_t end) const {
  return end > begin ? static_cast<double>(end - begin) / hsa().ticks_per_second : 0;
}

double Context::DispatchSeconds(hsa_signal_t signal) const {
  hsa_amd_profiling_dispatch_time_t time = {};
  const hsa_status_t code = hsa().amd_profiling_get_dispatch_time(agent(), signal, &time);
  return code == HSA_STATUS_SUCCESS ? Seconds(time.start, time.end) : 0;
}

double Context::CopySeconds(hsa_signal_t signal) const {
  hsa_amd_profiling_async_copy_time_t time = {};
  const hsa_status_t code = hsa().amd_profiling_get_async_copy_time(signal, &time);
  return code == HSA_STATUS_SUCCESS ? Seconds(time.start, time.end) : 0;
}

absl::Status Context::Failure(absl::string_view what, hsa_status_t code) const {
  absl::Status lost = Health();
  return lost.ok() ? ToStatus(hsa(), what, code) : lost;
}

absl::Status Context::Try() {
  const auto signal = TakeSignal(1);
  if (!signal.ok()) return signal.status();
  const Packet packet = BarrierPacket({}, signal->get());
  if (absl::Status status = Push({&packet, 1}); !status.ok()) return status;
  if (AwaitFor(signal->get(), 1, kTrialSeconds).ok()) return absl::OkStatus();
  absl::Status lost = Health();
  return lost.ok() ? Lose("its queue does not finish a packet") : lost;
}

Signal::~Signal() {
  if (context_ != nullptr) context_->GiveBack(signal_);
}

absl::Status Signal::Await() { return context_->Await(signal_); }

}  // namespace kiln::drivers::hsa
