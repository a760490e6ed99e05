// OpenCL's objects as the stand-in has them.
#ifndef KILN_TESTS_STAND_INS_OPENCL_OBJECTS_H_
#define KILN_TESTS_STAND_INS_OPENCL_OBJECTS_H_

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

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

// The names are those that CL/cl.h declares.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
struct _cl_platform_id {};
struct _cl_device_id {
  cl_device_type type;
};
struct _cl_context : CountedObject {};
struct _cl_program : CountedObject {
  std::string source;
};
struct _cl_kernel : CountedObject {
  cl_uint parameters = 0;
  std::atomic<cl_uint> set = 0;  // parameters that have a value
};

struct _cl_event : CountedObject {
  void End(cl_int with);
  cl_int Wait();

  std::mutex mutex;
  std::condition_variable ended;
  cl_int status = CL_QUEUED;
  cl_ulong start = 0;
  cl_ulong end = 0;
};

// In order, on a thread of its own.
struct _cl_command_queue : CountedObject {
  _cl_command_queue();
  ~_cl_command_queue() override;
  // `work` answers how it ended. *event gets an event if it is not null; blocking waits.
  cl_int Push(std::function<cl_int()> work, bool blocking, cl_event* event);
  cl_int Finish();

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
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

#endif  // KILN_TESTS_STAND_INS_OPENCL_OBJECTS_H_
