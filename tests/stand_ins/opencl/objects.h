// The stand-in's OpenCL objects.
#ifndef KILN_TESTS_STAND_INS_OPENCL_OBJECTS_H_
#define KILN_TESTS_STAND_INS_OPENCL_OBJECTS_H_

#define CL_TARGET_OPENCL_VERSION 300
#define CL_ENABLE_BETA_EXTENSIONS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/stand_ins/opencl/control.h"

kiln::stand_ins::opencl::Control& TheControl();

struct CountedObject {
  CountedObject() { ++TheControl().objects; }
  virtual ~CountedObject() { --TheControl().objects; }
  CountedObject(const CountedObject&) = delete;
  CountedObject& operator=(const CountedObject&) = delete;

  std::atomic<int> references = 1;
};

template <typename T>
cl_int ReleaseObject(T* object) {
  if (--object->references == 0) delete object;
  return CL_SUCCESS;
}

// The names are declared by CL/cl.h.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
struct _cl_platform_id {};
struct _cl_device_id {
  cl_device_type type;
};
struct _cl_context : CountedObject {};
struct _cl_program : CountedObject {
  std::string source;
  bool is_binary = false;  // made from one
};
struct _cl_kernel : CountedObject {
  // Checks a launch and copies the kernel's current state; *run is the device's work.
  cl_int Launch(cl_uint dimensions, const size_t* global, const size_t* local,
                std::function<cl_int()>* run) const;

  cl_uint parameters = 0;
  std::atomic<cl_uint> set = 0;  // parameters that have a value
  std::vector<uint64_t> values;
  std::vector<const void*> named;  // the memory that was named to it
};

struct _cl_event : CountedObject {
  void End(cl_int with);
  cl_int Wait();

  std::mutex mutex;
  std::condition_variable ended;
  cl_int status = CL_QUEUED;
  int waiting = 0;  // threads that wait for its end
  cl_ulong start = 0;
  cl_ulong end = 0;
};

// Only launches, for a queue that must outlive it. Initially recording.
struct _cl_command_buffer_khr : CountedObject {
  ~_cl_command_buffer_khr() override;

  std::mutex mutex;
  cl_command_queue queue = nullptr;
  bool simultaneous = false;
  bool finalized = false;
  int pending = 0;
  std::vector<std::function<cl_int()>> launches;
};

// In order, on its own thread.
struct _cl_command_queue : CountedObject {
  _cl_command_queue();
  ~_cl_command_queue() override;
  // `work` returns its result. *event receives an event if `event` is not null; `blocking` waits
  // for the end.
  cl_int Push(std::function<cl_int()> work, bool blocking, cl_event* event);
  cl_int Finish();
  static bool IsAlive(cl_command_queue queue);

  cl_command_queue_properties properties = 0;

 private:
  struct Task {
    std::function<cl_int()> work;
    cl_event event;
  };
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};
// The result of clGetExtensionFunctionAddressForPlatform for cl_khr_command_buffer, by full name.
void* FindCommandBufferFunction(const std::string& name);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

#endif  // KILN_TESTS_STAND_INS_OPENCL_OBJECTS_H_
