// The objects of the stand-in for libhsa-runtime64.so.1.
#ifndef KILN_TESTS_STAND_INS_HSA_OBJECTS_H_
#define KILN_TESTS_STAND_INS_HSA_OBJECTS_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "drivers/hsa/api.h"
#include "drivers/hsa/packet.h"
#include "tests/stand_ins/hsa/control.h"
#include "tests/stand_ins/hsa/object/code_object.h"
#include "tests/stand_ins/hsa/object/twin.h"

namespace kiln::drivers::hsa {

inline constexpr uint64_t kHostAgent = 1;
inline constexpr uint64_t kFirstGpu = 16;
// A pool's number combines its agent and its kind.
inline constexpr uint64_t kPoolKinds = 4;
enum PoolKind : uint64_t { kArgumentPool = 0, kCoarsePool = 1, kGroupPool = 2 };
constexpr uint64_t PoolOf(uint64_t agent, PoolKind kind) { return agent * kPoolKinds + kind; }
// Ticks of the system's clock per second.
inline constexpr uint64_t kTicksPerSecond = 100'000'000;
uint64_t Ticks();

struct Queue;

struct SignalState {
  hsa_signal_value_t value = 0;
  Queue* doorbell_of = nullptr;
  uint64_t begin = 0;  // of the kernel or copy that decremented it
  uint64_t end = 0;
  bool dispatched = false;  // by a kernel, on a queue that records times
  bool copied = false;      // likewise, by a copy
};

struct Block {
  uint64_t bytes = 0;  // asked for
  uint64_t mapped = 0;
  uint64_t pool = 0;
  std::set<uint64_t> agents;  // with access
};

struct Kernel {
  stand_ins::hsa::CodeObject object;
  std::unique_ptr<stand_ins::hsa::Twin> twin;
  uint64_t agent = 0;
};

struct Executable {
  bool frozen = false;
  uint64_t symbol = 0;  // of its only kernel; 0: nothing was loaded
};

struct CopyTask {
  void* to;
  const void* from;
  size_t bytes;
  std::vector<uint64_t> dependencies;
  uint64_t completion;
};

struct Queue {
  hsa_queue_t api = {};
  std::vector<Packet> ring;  // one more than needed, so that packets can be aligned to 64
  Packet* packets = nullptr;
  uint64_t agent = 0;
  void (*callback)(hsa_status_t, hsa_queue_t*, void*) = nullptr;
  void* data = nullptr;
  uint64_t write_index = 0;
  uint64_t read_index = 0;
  uint64_t rung = 0;  // packets announced by doorbells
  bool timed = false;
  bool failed = false;
  bool ending = false;
  bool must_acquire = true;  // since the writes of the host and of copies
  std::thread thread;
};

// One object for the process, guarded by one lock, which is released while kernels and copies run.
struct Runtime {
  std::mutex mutex;
  std::condition_variable changed;  // something changed
  int opened = 0;
  uint64_t next_handle = 1000;  // handles are not reused
  std::map<uint64_t, SignalState> signals;
  std::map<uintptr_t, Block> blocks;
  std::map<uint64_t, std::string> readers;
  std::map<uint64_t, Executable> executables;
  std::map<uint64_t, std::shared_ptr<const Kernel>> kernels;  // by symbol
  std::map<hsa_queue_t*, std::unique_ptr<Queue>> queues;
  std::map<uint64_t, int64_t> allocated;  // bytes by pool
  bool copies_timed = false;
  std::deque<CopyTask> copies;
  std::thread copier;
  bool stopping = false;
  std::string message;
};

Runtime& TheRuntime();
stand_ins::hsa::Control& TheControl();

// Counts it and stores the message. Requires the lock.
hsa_status_t Mistake(const std::string& what, hsa_status_t code);
// Whether the runtime is initialised; if not, counts a mistake.
bool IsOpen();
bool IsAgent(uint64_t agent);
// The block that contains all of these bytes; null if there is none.
const Block* FindBlock(const void* memory, uint64_t bytes);
// Whether it is a live signal, or none; otherwise counts a mistake.
bool IsSignalOrNone(hsa_signal_t signal, const char* what);
void CountDown(uint64_t signal, uint64_t begin, uint64_t end, bool dispatched, bool copied);
bool AreZero(const std::vector<uint64_t>& signals);
void RunQueue(Queue& queue);
void RunCopies();

}  // namespace kiln::drivers::hsa

#endif  // KILN_TESTS_STAND_INS_HSA_OBJECTS_H_
