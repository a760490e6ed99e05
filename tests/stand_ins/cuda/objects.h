// The stand-in's objects of the Driver API. Handles are numbers that are never reused, so that use
// of a handle after its object's end is always detected.
#ifndef KILN_TESTS_STAND_INS_CUDA_OBJECTS_H_
#define KILN_TESTS_STAND_INS_CUDA_OBJECTS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/cuda/api.h"
#include "tests/stand_ins/cuda/control.h"
#include "tests/stand_ins/cuda/ptx/interpret.h"
#include "tests/stand_ins/cuda/ptx/load.h"
#include "tests/stand_ins/handle_table.h"

namespace kiln::drivers::cuda {

using stand_ins::cuda::Control;
namespace ptx = stand_ins::ptx;

inline constexpr int kDevicesMax = 8;
inline constexpr int kSharedBytesMax = 163 << 10;  // of a block that requests more than the default
inline constexpr int kSharedBytesDefault = 48 << 10;
inline constexpr int kParameterBytesMax = 4 << 10;          // of a kernel
inline constexpr size_t kPitchMax = (size_t{1} << 31) - 1;  // of a copy's rows

// The end of a task, as events record it.
struct Completion {
  bool done = false;
  int64_t nanoseconds = 0;                        // time of the end, by the devices' clock
  std::vector<std::shared_ptr<Completion>> with;  // end with it at the latest
};

struct Context;

struct Stream {
  struct Task {
    std::function<CUresult()> work;    // called without the lock; null: only waits
    std::shared_ptr<Completion> wait;  // awaited first, or null
    std::shared_ptr<Completion> completion;
  };
  Context* context;
  unsigned flags = 0;
  std::deque<Task> tasks = {};  // the first one may be running
  std::shared_ptr<Completion> last = nullptr;
  bool stopping = false;
  std::thread thread = {};
};

struct Event {
  Context* context;
  unsigned flags;
  std::shared_ptr<Completion> recorded;  // null: never recorded
};

struct Module;
struct KernelFunction {
  std::weak_ptr<Module> module;
  const ptx::DecodedFunction* decoded;
  const ptx::Program* program;
  int dynamic_shared_max;
};
struct Module {
  Context* context;
  std::unique_ptr<ptx::LoadedModule> loaded;
  std::map<std::string, CUfunction> functions;
};

struct KernelLaunch {
  std::shared_ptr<KernelFunction> function;
  std::shared_ptr<Module> module;
  ptx::LaunchShape shape;
  std::vector<uint8_t> parameters;
};
struct Copy {
  CUdeviceptr to_device = 0;  // or
  void* to_host = nullptr;
  CUdeviceptr from_device = 0;  // or
  const void* from_host = nullptr;
  size_t bytes = 0;
};
struct Fill {
  CUdeviceptr to = 0;
  unsigned value = 0;
  unsigned element_bytes = 1;
  size_t count = 0;
};

struct GraphNode {
  enum class Kind { kKernel, kCopy, kFill, kEmpty, kEvent };
  CUgraphNode handle = nullptr;
  Kind kind = Kind::kEmpty;
  std::vector<CUgraphNode> dependencies = {};
  KernelLaunch kernel = {};
  Copy copy = {};
  Fill fill = {};
  CUevent event = nullptr;
};
struct Graph {
  std::vector<GraphNode> nodes;
};
struct GraphExec {
  Context* context;
  std::vector<GraphNode> nodes;
  std::shared_ptr<Completion> last;  // launches of one graph run one after another
};

struct Pool {
  int device;
  bool is_default = false;
  uint64_t release_threshold = 0;
  uint64_t used = 0;
  uint64_t used_high = 0;
  std::set<int> access = {};  // devices
};

struct Allocation {
  CUdeviceptr address;
  size_t bytes;
  std::shared_ptr<uint8_t[]> storage;  // null: the host's own memory
  uint8_t* host;
  int device;          // -1: pinned host memory
  bool live = true;    // its stream has reached the allocation
  bool freed = false;  // freed by a call; its stream will follow
  Context* context = nullptr;
  std::shared_ptr<Pool> pool = nullptr;
};

struct Context {
  int device = 0;
  int retained = 0;
  bool active = false;
  unsigned flags = 0;
  CUresult error = CUDA_SUCCESS;  // sticky until the context is reset
  std::set<Context*> peers;       // kernels of this context may access theirs
  std::shared_ptr<Stream> default_stream;
  std::set<std::shared_ptr<Stream>> streams;
};

struct Runtime;
Runtime& TheRuntime();
Control& TheControl();

template <typename Handle, typename T>
using Table = stand_ins::HandleTable<Handle, T, &TheControl, &TheRuntime>;

// The memory that launches of one device may access at one moment; keeps it alive.
struct MemorySnapshot {
  ptx::GlobalMemory memory;
  std::vector<std::shared_ptr<uint8_t[]>> storage;
};

struct Runtime {
  std::mutex mutex;
  std::condition_variable changed;
  bool initialized = false;
  uintptr_t next_handle = uintptr_t{0x5700} << 32;
  Context contexts[kDevicesMax];
  std::shared_ptr<Pool> default_pools[kDevicesMax];
  CUdeviceptr next_address[kDevicesMax];
  Table<CUstream, Stream> streams;
  Table<CUevent, Event> events;
  Table<CUmodule, Module> modules;
  Table<CUfunction, KernelFunction> functions;
  Table<CUgraph, Graph> graphs;
  Table<CUgraphExec, GraphExec> graph_execs;
  Table<CUmemoryPool, Pool> pools;
  std::map<CUdeviceptr, Allocation> allocations;  // by address
  std::string message;
};

using Lock = std::unique_lock<std::mutex>;

// Counts and describes a wrong call; returns `code`. Requires the lock.
CUresult Mistake(const std::string& what, CUresult code);
// Whether this thread is in a callback, where no calls are allowed.
bool& InCallback();
// The calling thread's stack of contexts, the current one last.
std::vector<Context*>& ContextStack();
// A context's current result: its sticky error, or that it is lost or destroyed.
CUresult AnswerOf(Context& context);

// Calls `body`(Context&, Lock&) for the current context, under the lock, if that context works.
template <typename Body>
CUresult InContext(const char* call, Body body) {
  Runtime& runtime = TheRuntime();
  Lock lock(runtime.mutex);
  if (InCallback()) return Mistake(std::string(call) + " in a callback", CUDA_ERROR_NOT_PERMITTED);
  if (!runtime.initialized)
    return Mistake(std::string(call) + " before cuInit", CUDA_ERROR_NOT_INITIALIZED);
  if (ContextStack().empty() || ContextStack().back() == nullptr)
    return Mistake(std::string(call) + " without a context", CUDA_ERROR_INVALID_CONTEXT);
  Context& context = *ContextStack().back();
  if (const CUresult answer = AnswerOf(context); answer != CUDA_SUCCESS) return answer;
  return body(context, lock);
}

// Streams. All functions require the lock. FindStream: the stream of a handle in a context, 0 being
// the default one; null if there is none.
std::shared_ptr<Stream> FindStream(Context& context, CUstream handle);
std::shared_ptr<Completion> Push(Stream& stream, std::function<CUresult()> work,
                                 std::shared_ptr<Completion> wait = nullptr);
void Complete(Completion& completion);
CUresult WaitFor(Context& context, const std::shared_ptr<Completion>& completion, Lock& lock);
void WaitForAll(Context& context, Lock& lock);
void StartStream(const std::shared_ptr<Stream>& stream);
void StopStream(const std::shared_ptr<Stream>& stream, Lock& lock);

// Memory. All functions require the lock.
Allocation* FindAllocation(CUdeviceptr address);
// The allocation that begins there, if a call may free it; else null.
Allocation* FindWhole(CUdeviceptr address);
CUresult Allocate(int device, Context* context, size_t bytes, bool live, std::shared_ptr<Pool> pool,
                  Allocation** made);
void Free(CUdeviceptr address);
std::shared_ptr<const MemorySnapshot> TakeSnapshot(const Context& context);
// Whether the bytes are within one allocation that no call has freed.
bool IsDeviceMemory(CUdeviceptr address, size_t bytes);

// The work of tasks, without the lock. A fault is stored as the message.
struct Accesses {
  std::vector<ptx::Range> reads;
  std::vector<ptx::Range> writes;
};
CUresult RunKernel(Context& context, const KernelLaunch& launch, Accesses* accesses);
CUresult RunCopy(Context& context, const Copy& copy, Accesses* accesses);
CUresult RunFill(Context& context, const Fill& fill, Accesses* accesses);
CUresult RunGraph(Context& context, const std::vector<GraphNode>& nodes, uint64_t seed,
                  const std::map<CUgraphNode, std::shared_ptr<Completion>>& events);
// Checks and copies a call's parameters. Requires the lock.
CUresult MakeLaunch(const char* call, Context& context, const CUDA_KERNEL_NODE_PARAMS& parameters,
                    KernelLaunch* launch);
void Report(const std::string& message);  // acquires the lock

// Frees everything in a context. Its streams run to their ends.
void ResetContext(Context& context, Lock& lock);

}  // namespace kiln::drivers::cuda

#endif  // KILN_TESTS_STAND_INS_CUDA_OBJECTS_H_
