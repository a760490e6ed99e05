// The objects behind the stand-in's handles, and functions shared by its parts.
#ifndef KILN_TESTS_STAND_INS_LEVEL_ZERO_OBJECTS_H_
#define KILN_TESTS_STAND_INS_LEVEL_ZERO_OBJECTS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "drivers/level_zero/api.h"
#include "tests/stand_ins/handle_table.h"
#include "tests/stand_ins/level_zero/control.h"
#include "tests/stand_ins/level_zero/opencl.h"
#include "tests/stand_ins/level_zero/spirv.h"

namespace kiln::drivers::level_zero {

using stand_ins::level_zero::Control;
using stand_ins::level_zero::EntryPoint;
using stand_ins::level_zero::OpenClProgram;
using stand_ins::level_zero::SpirvModule;

inline constexpr int kDevicesMax = 4;
inline constexpr uint32_t kThreadsPerBlockMax = 1024;
inline constexpr uint32_t kSharedBytesMax = 64 << 10;
inline constexpr uint32_t kArgumentBytesMax = 2048;
inline constexpr uint32_t kGroupsMax = (1u << 31) - 1;
inline constexpr uint64_t kCycleNanoseconds = 40;
inline constexpr uint32_t kTimestampBits = 32;
// The groups of queues: compute and copy; copy only.
inline constexpr uint32_t kComputeOrdinal = 0, kCopyOrdinal = 1;

struct Context {
  ze_result_t lost[kDevicesMax] = {};  // ZE_RESULT_SUCCESS: no loss seen
};

struct Allocation {
  Context* context;
  char* memory;
  size_t bytes;   // as requested
  size_t mapped;  // as mapped
  int device;     // -1: host memory
};

struct EventPool {
  std::shared_ptr<Context> context;
  int device;
  uint32_t flags;
  uint32_t count;
  std::vector<bool> used;  // by index
};

struct Event {
  std::shared_ptr<EventPool> pool;
  uint32_t index;
  bool signalled = false;
  ze_result_t result = ZE_RESULT_SUCCESS;
  uint64_t begin = 0;  // nanoseconds
  uint64_t end = 0;
};

struct Module {
  std::shared_ptr<Context> context;
  int device;
  std::string spirv;
  SpirvModule facts;
  std::unique_ptr<OpenClProgram> program;  // null: Control::host_kernels
};

struct Kernel {
  std::shared_ptr<Module> module;
  const EntryPoint* entry;
  uint32_t group_size[3] = {0, 0, 0};
  bool indirect = false;
  std::vector<std::optional<std::vector<uint8_t>>> arguments;
  bool destroyed = false;
};

struct Command {
  enum class Kind { kLaunch, kCopy, kFill, kBarrier };
  Kind kind = Kind::kBarrier;
  // kLaunch
  std::shared_ptr<Kernel> kernel = nullptr;
  std::vector<stand_ins::level_zero::OpenClArgument> arguments = {};
  uint32_t groups = 0;
  uint32_t group_size = 0;
  // kCopy, kFill
  char* to = nullptr;
  const char* from = nullptr;
  size_t bytes = 0;
  std::vector<uint8_t> pattern = {};
  std::shared_ptr<Event> signal = nullptr;
};

struct Queue;
struct List {
  std::shared_ptr<Context> context;
  int device;
  uint32_t ordinal;
  bool closed = false;
  int in_flight = 0;
  std::vector<Command> commands = {};
  // For an immediate list: the queue that runs its commands.
  std::shared_ptr<Queue> queue = nullptr;
  bool synchronous = false;
};

struct Fence {
  std::shared_ptr<Queue> queue;
  bool pending = false;
  bool signalled = false;
  ze_result_t result = ZE_RESULT_SUCCESS;
};

// Runs executed lists in order, on its own thread.
struct Queue {
  struct Task {
    std::vector<std::shared_ptr<List>> lists;  // or
    std::optional<Command> command;            // of an immediate list
    std::shared_ptr<Fence> fence;
  };
  std::shared_ptr<Context> context;
  int device;
  uint32_t ordinal;
  std::deque<Task> tasks = {};  // the first one may be running
  bool stopping = false;
  std::thread thread = {};
};

struct BuildLog {
  std::string text;
};

struct Runtime;
Runtime& TheRuntime();
Control& TheControl();

template <typename Handle, typename T>
using Table = stand_ins::HandleTable<Handle, T, &TheControl, &TheRuntime>;

struct Runtime {
  std::mutex mutex;
  std::condition_variable changed;
  bool initialized = false;
  stand_ins::level_zero::OpenClRuntime* opencl = nullptr;
  uintptr_t next_handle = uintptr_t{0x5800} << 32;
  Table<ze_context_handle_t, Context> contexts;
  Table<ze_command_queue_handle_t, Queue> queues;
  Table<ze_command_list_handle_t, List> lists;
  Table<ze_fence_handle_t, Fence> fences;
  Table<ze_event_pool_handle_t, EventPool> pools;
  Table<ze_event_handle_t, Event> events;
  Table<ze_module_handle_t, Module> modules;
  Table<ze_module_build_log_handle_t, BuildLog> logs;
  Table<ze_kernel_handle_t, Kernel> kernels;
  std::map<const char*, Allocation> allocations;  // by address
  std::string message;
};

using Lock = std::unique_lock<std::mutex>;

// Counts and describes a wrong call; returns `code`. Requires the lock.
ze_result_t Mistake(const std::string& what, ze_result_t code);
// Stores why a kernel did not run, as a mistake. Acquires the lock.
void Report(const std::string& message);

// Calls `body`(Lock&) under the lock, if zeInit has succeeded.
template <typename Body>
ze_result_t Guarded(const char* call, Body body) {
  Lock lock(TheRuntime().mutex);
  if (!TheRuntime().initialized)
    return Mistake(std::string(call) + " without zeInit, which crashes",
                   ZE_RESULT_ERROR_UNINITIALIZED);
  return body(lock);
}

// A context's current result for this device: how it was lost, or success. -1 is the host, whose
// memory is lost with any device whose loss the context has seen. Requires the lock.
ze_result_t AnswerOf(Context& context, int device);
// The result of querying a device itself.
ze_result_t AnswerOfDevice(int device);

// Devices and the one driver: handles that are not addresses.
ze_driver_handle_t TheDriver();
// -1: there is no such device.
int DeviceOf(ze_device_handle_t device);
ze_device_handle_t HandleOf(int device);

// Requires the lock. The context's allocation that contains all the bytes; null: there is none.
const Allocation* FindAllocation(const Context& context, const char* memory, size_t bytes);

// The result of a command, and when it ran, in nanoseconds.
struct Ran {
  ze_result_t result = ZE_RESULT_SUCCESS;
  uint64_t begin = 0;
  uint64_t end = 0;
};
// RunCommand executes a command, without the lock. Signal signals its event, under the lock.
Ran RunCommand(Context& context, int device, const Command& command);
void Signal(const Command& command, const Ran& ran);
// Runs a list in any order that its barriers allow. Fails if a kernel has been destroyed.
ze_result_t RunList(Context& context, const List& list, uint64_t seed);

std::shared_ptr<Queue> StartQueue(std::shared_ptr<Context> context, int device, uint32_t ordinal);
void StopQueue(const std::shared_ptr<Queue>& queue, Lock& lock);

// Waits until `done`() under the lock, which happens soon on a lost device. Only supports the
// timeouts "never" and "at once".
template <typename Done>
ze_result_t Await(Context& context, int device, uint64_t timeout, Lock& lock, Done done) {
  while (!done()) {
    if (timeout == 0) return ZE_RESULT_NOT_READY;
    TheRuntime().changed.wait(lock);
  }
  return AnswerOf(context, device);
}

}  // namespace kiln::drivers::level_zero

#endif  // KILN_TESTS_STAND_INS_LEVEL_ZERO_OBJECTS_H_
