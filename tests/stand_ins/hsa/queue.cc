// Queues, and the processing of their packets.
#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/status/status.h"
#include "tests/stand_ins/hsa/objects.h"

namespace kiln::drivers::hsa {
namespace {

constexpr int kThreadsMax = 1024;

int TypeOf(uint16_t header) { return header & 0xff; }
bool WaitsForAll(uint16_t header) { return (header >> HSA_PACKET_HEADER_BARRIER & 1) != 0; }
int AcquireOf(uint16_t header) { return header >> HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE & 3; }
int ReleaseOf(uint16_t header) { return header >> HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE & 3; }

Packet& PacketAt(Queue& queue, uint64_t index) { return queue.packets[index % queue.api.size]; }

// The header is in the word that is written last.
uint16_t HeaderOf(Queue& queue, uint64_t index) {
  return static_cast<uint16_t>(
      __atomic_load_n(reinterpret_cast<uint32_t*>(&PacketAt(queue, index)), __ATOMIC_ACQUIRE));
}

std::string CheckArguments(const hsa_kernel_dispatch_packet_t& packet, const Kernel& kernel,
                           uint64_t agent) {
  const uint64_t bytes = kernel.object.argument_bytes;
  if (bytes == 0) return "";
  const Block* block = FindBlock(packet.kernarg_address, bytes);
  if (block == nullptr || block->pool != PoolOf(kHostAgent, kArgumentPool))
    return "arguments are not in memory for arguments";
  if (!block->agents.contains(agent)) return "the device may not read the arguments";
  if (reinterpret_cast<uintptr_t>(packet.kernarg_address) % 16 != 0)
    return "arguments are not aligned to 16 bytes";
  for (size_t i = 0; i < kernel.object.pointers.size(); ++i) {
    if (!kernel.object.pointers[i]) continue;
    const void* pointer = nullptr;
    std::memcpy(&pointer, static_cast<const char*>(packet.kernarg_address) + 8 * i,
                sizeof(pointer));
    const Block* pointed = FindBlock(pointer, 0);
    if (pointed == nullptr || !pointed->agents.contains(agent))
      return "argument " + std::to_string(i) + " is no address of the device's";
  }
  return "";
}

// Describes a packet's error; empty: none.
std::string CheckDispatch(const Queue& queue, const hsa_kernel_dispatch_packet_t& packet) {
  const auto found = TheRuntime().kernels.find(packet.kernel_object);
  if (found == TheRuntime().kernels.end()) return "the kernel is none";
  const Kernel& kernel = *found->second;
  if (kernel.agent != queue.agent) return "the kernel is another device's";
  if (packet.setup != 1 || packet.workgroup_size_y != 1 || packet.workgroup_size_z != 1 ||
      packet.grid_size_y != 1 || packet.grid_size_z != 1)
    return "the grid has more than one dimension";
  if (packet.reserved0 != 0 || packet.reserved2 != 0) return "reserved fields are not 0";
  const int threads = packet.workgroup_size_x;
  if (threads < 1 || threads > kThreadsMax || threads > kernel.object.threads_max ||
      (kernel.object.threads != 0 && threads != kernel.object.threads))
    return "the kernel has no blocks of " + std::to_string(threads) + " threads";
  if (packet.grid_size_x == 0 || packet.grid_size_x % threads != 0)
    return "the grid is not made of whole blocks";
  if (packet.private_segment_size < kernel.object.private_bytes ||
      packet.group_segment_size < kernel.object.group_bytes)
    return "the kernel needs more memory of its own";
  if (AcquireOf(packet.header) < HSA_FENCE_SCOPE_AGENT ||
      ReleaseOf(packet.header) < HSA_FENCE_SCOPE_AGENT)
    return "a kernel acquires or releases nothing";
  if (queue.must_acquire && AcquireOf(packet.header) != HSA_FENCE_SCOPE_SYSTEM)
    return "nobody acquires what the host or a copy wrote";
  if (!IsSignalOrNone(packet.completion_signal, "a kernel's completion"))
    return "the completion signal is none";
  return CheckArguments(packet, kernel, queue.agent);
}

// Ends the queue: no more packets are processed.
void Fail(Queue& queue, std::unique_lock<std::mutex>& lock, const std::string& why,
          hsa_status_t code, bool mistake) {
  queue.failed = true;
  if (mistake) {
    Mistake(why, code);
  } else {
    TheRuntime().message = why;
  }
  lock.unlock();
  if (queue.callback != nullptr) queue.callback(code, &queue.api, queue.data);
  lock.lock();
}

// Requires the lock, which is released while the kernel runs.
absl::Status RunKernel(Queue& queue, const hsa_kernel_dispatch_packet_t& packet,
                       std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<const Kernel> kernel = TheRuntime().kernels.at(packet.kernel_object);
  const stand_ins::hsa::Dispatch dispatch = {.blocks = packet.grid_size_x / packet.workgroup_size_x,
                                             .threads = packet.workgroup_size_x,
                                             .wave = kernel->object.wave,
                                             .shared_bytes = packet.group_segment_size,
                                             .arguments = packet.kernarg_address};
  lock.unlock();
  TheControl().launch_gate.Pass();
  const uint64_t begin = Ticks();
  const absl::Status status = kernel->twin->Run(dispatch);
  TheControl().time.HasLaunched();
  const uint64_t end = std::max(Ticks(), begin + 1);
  lock.lock();
  ++TheControl().kernels_run;
  TheControl().HasRunOn(static_cast<int>(queue.agent - kFirstGpu));
  CountDown(packet.completion_signal.handle, begin, end, queue.timed, /*copied=*/false);
  return status;
}

// Runs kernels without a barrier between them, the last one first.
bool RunKernels(Queue& queue, uint64_t end, std::unique_lock<std::mutex>& lock) {
  const auto count = static_cast<int64_t>(end - queue.read_index);
  TheControl().side_by_side_max = std::max(TheControl().side_by_side_max.load(), count);
  for (uint64_t index = queue.read_index; index < end; ++index) {
    const hsa_kernel_dispatch_packet_t& packet = PacketAt(queue, index).dispatch;
    const std::string wrong = CheckDispatch(queue, packet);
    if (!wrong.empty()) {
      Fail(queue, lock, wrong, HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, /*mistake=*/true);
      return false;
    }
    queue.must_acquire = false;
  }
  for (uint64_t index = end; index-- > queue.read_index;) {
    const absl::Status status = RunKernel(queue, PacketAt(queue, index).dispatch, lock);
    if (status.ok()) continue;
    Fail(queue, lock, std::string(status.message()), HSA_STATUS_ERROR_EXCEPTION,
         /*mistake=*/false);
    return false;
  }
  return true;
}

bool RunBarrier(Queue& queue, std::unique_lock<std::mutex>& lock) {
  const hsa_barrier_and_packet_t packet = PacketAt(queue, queue.read_index).barrier;
  std::vector<uint64_t> dependencies;
  bool right = packet.reserved0 == 0 && packet.reserved1 == 0 && packet.reserved2 == 0 &&
               IsSignalOrNone(packet.completion_signal, "a barrier's completion");
  // A thread that waits for the signal reads the kernels' writes on the host.
  if (packet.completion_signal.handle != 0)
    right = right && ReleaseOf(packet.header) == HSA_FENCE_SCOPE_SYSTEM;
  for (const hsa_signal_t& signal : packet.dep_signal) {
    right = right && IsSignalOrNone(signal, "a barrier's dependency");
    dependencies.push_back(signal.handle);
  }
  if (!right) {
    Fail(queue, lock, "a barrier packet is malformed", HSA_STATUS_ERROR_INVALID_PACKET_FORMAT,
         /*mistake=*/true);
    return false;
  }
  while (!AreZero(dependencies) && !queue.ending) TheRuntime().changed.wait(lock);
  queue.must_acquire = true;
  ++TheControl().barriers_run;
  const uint64_t now = Ticks();
  CountDown(packet.completion_signal.handle, now, now, /*dispatched=*/false, /*copied=*/false);
  return true;
}

// The end of the packets, from the first on, that may run together.
uint64_t EndOfGroup(Queue& queue) {
  uint64_t end = queue.read_index + 1;
  while (end < queue.rung && TypeOf(HeaderOf(queue, end)) == HSA_PACKET_TYPE_KERNEL_DISPATCH &&
         !WaitsForAll(HeaderOf(queue, end)))
    ++end;
  return end;
}

// Returns false if the queue has failed.
bool RunPackets(Queue& queue, std::unique_lock<std::mutex>& lock) {
  auto& control = TheControl();
  const auto device = static_cast<int>(queue.agent - kFirstGpu);
  if (control.lost != 0 && control.lost_device == device) {
    Fail(queue, lock, "a test has lost the device", static_cast<hsa_status_t>(control.lost.load()),
         /*mistake=*/false);
    return false;
  }
  const int type = TypeOf(HeaderOf(queue, queue.read_index));
  uint64_t end = queue.read_index + 1;
  if (type == HSA_PACKET_TYPE_KERNEL_DISPATCH) {
    if (const int code = control.next_launch_fails.exchange(0)) {
      Fail(queue, lock, "a test has a kernel fail", static_cast<hsa_status_t>(code),
           /*mistake=*/false);
      return false;
    }
    end = EndOfGroup(queue);
    if (!RunKernels(queue, end, lock)) return false;
  } else if (type == HSA_PACKET_TYPE_BARRIER_AND) {
    if (!RunBarrier(queue, lock)) return false;
  } else {
    Fail(queue, lock, "a packet of type " + std::to_string(type) + " is told of",
         HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, /*mistake=*/true);
    return false;
  }
  for (uint64_t index = queue.read_index; index < end; ++index) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(&PacketAt(queue, index)),
                     uint32_t{HSA_PACKET_TYPE_INVALID}, __ATOMIC_RELEASE);
  }
  queue.read_index = end;
  TheRuntime().changed.notify_all();
  return true;
}

Queue* FindQueue(const hsa_queue_t* api) {
  const auto found = TheRuntime().queues.find(const_cast<hsa_queue_t*>(api));
  if (found != TheRuntime().queues.end()) return found->second.get();
  Mistake("a call with a queue that is none", HSA_STATUS_ERROR_INVALID_QUEUE);
  return nullptr;
}

}  // namespace

void RunQueue(Queue& queue) {
  std::unique_lock lock(TheRuntime().mutex);
  while (!queue.ending) {
    if (queue.failed || queue.read_index == queue.rung) {
      TheRuntime().changed.wait(lock);
      continue;
    }
    RunPackets(queue, lock);
  }
}

extern "C" {

hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                              void (*callback)(hsa_status_t status, hsa_queue_t* queue, void* data),
                              void* data, uint32_t private_bytes, uint32_t group_bytes,
                              hsa_queue_t** made) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (!IsAgent(agent.handle) || agent.handle == kHostAgent || !std::has_single_bit(size) ||
      size > static_cast<uint32_t>(TheControl().queue_packets_max) || type != HSA_QUEUE_TYPE_MULTI)
    return Mistake("a queue of " + std::to_string(size) + " packets that nobody has",
                   HSA_STATUS_ERROR_INVALID_QUEUE_CREATION);
  auto queue = std::make_unique<Queue>();
  queue->ring.resize(size + 1);
  const auto begin = reinterpret_cast<uintptr_t>(queue->ring.data());
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  queue->packets = reinterpret_cast<Packet*>((begin + 63) / 64 * 64);
  for (uint32_t i = 0; i < size; ++i) queue->packets[i].dispatch.header = HSA_PACKET_TYPE_INVALID;
  queue->agent = agent.handle;
  queue->callback = callback;
  queue->data = data;
  const uint64_t doorbell = TheRuntime().next_handle++;
  queue->api = {.type = type,
                .features = 1,
                .base_address = queue->packets,
                .doorbell_signal = {doorbell},
                .size = size,
                .reserved1 = 0,
                .id = TheRuntime().next_handle++};
  TheRuntime().signals[doorbell].doorbell_of = queue.get();
  Queue& running = *queue;
  *made = &running.api;
  TheRuntime().queues[&running.api] = std::move(queue);
  ++TheControl().objects;
  running.thread = std::thread([&running] { RunQueue(running); });
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_queue_destroy(hsa_queue_t* api) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  Queue* queue = FindQueue(api);
  if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_QUEUE;
  if (!queue->failed && queue->read_index != queue->write_index)
    Mistake("a queue is destroyed with packets in it", HSA_STATUS_ERROR);
  queue->ending = true;
  TheRuntime().changed.notify_all();
  lock.unlock();
  queue->thread.join();
  lock.lock();
  TheRuntime().signals.erase(api->doorbell_signal.handle);
  TheRuntime().queues.erase(api);
  --TheControl().objects;
  return HSA_STATUS_SUCCESS;
}

uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t* api) {
  std::unique_lock lock(TheRuntime().mutex);
  const Queue* queue = FindQueue(api);
  return queue == nullptr ? 0 : queue->read_index;
}

uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t* api, uint64_t count) {
  std::unique_lock lock(TheRuntime().mutex);
  Queue* queue = FindQueue(api);
  if (queue == nullptr) return 0;
  if (count == 0 || count > queue->api.size)
    Mistake(std::to_string(count) + " packets are reserved at once", HSA_STATUS_ERROR);
  const uint64_t index = queue->write_index;
  queue->write_index += count;
  return index;
}

hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t* api, int enable) {
  std::unique_lock lock(TheRuntime().mutex);
  Queue* queue = FindQueue(api);
  if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_QUEUE;
  queue->timed = enable != 0;
  return HSA_STATUS_SUCCESS;
}

}  // extern "C"

}  // namespace kiln::drivers::hsa
