// Streams, each with its own thread, and events.
#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

bool HasWork(const Stream& stream) { return stream.last != nullptr && !stream.last->done; }

// Skips the work if the context has failed.
CUresult RunTask(Context& context, const Stream::Task& task, Lock& lock) {
  if (const CUresult answer = AnswerOf(context); answer != CUDA_SUCCESS) return answer;
  if (task.work == nullptr) return CUDA_SUCCESS;
  lock.unlock();
  const CUresult result = task.work();
  lock.lock();
  return result;
}

void RunStream(const std::shared_ptr<Stream>& stream) {
  Runtime& runtime = TheRuntime();
  Lock lock(runtime.mutex);
  while (true) {
    runtime.changed.wait(lock, [&] { return stream->stopping || !stream->tasks.empty(); });
    if (stream->tasks.empty()) return;
    const Stream::Task task = stream->tasks.front();
    if (task.wait != nullptr) runtime.changed.wait(lock, [&] { return task.wait->done; });
    const CUresult result = RunTask(*stream->context, task, lock);
    if (result != CUDA_SUCCESS && stream->context->error == CUDA_SUCCESS)
      stream->context->error = result;
    stream->tasks.pop_front();
    Complete(*task.completion);
  }
}

}  // namespace

void Complete(Completion& completion) {
  if (completion.done) return;
  completion.done = true;
  completion.nanoseconds = TheControl().time.Nanoseconds();
  for (const std::shared_ptr<Completion>& other : completion.with) Complete(*other);
  TheRuntime().changed.notify_all();
}

std::shared_ptr<Stream> FindStream(Context& context, CUstream handle) {
  const bool is_default = handle == nullptr || reinterpret_cast<uintptr_t>(handle) == 1;
  if (!is_default) {
    const std::shared_ptr<Stream> stream = TheRuntime().streams.Find(handle);
    return stream != nullptr && stream->context == &context ? stream : nullptr;
  }
  if (context.default_stream == nullptr) {
    context.default_stream = std::make_shared<Stream>(Stream{.context = &context});
    StartStream(context.default_stream);
  }
  return context.default_stream;
}

// The default stream and streams without CU_STREAM_NON_BLOCKING wait for each other.
std::shared_ptr<Completion> Push(Stream& stream, std::function<CUresult()> work,
                                 std::shared_ptr<Completion> wait) {
  const auto add = [&](std::function<CUresult()> what, std::shared_ptr<Completion> after) {
    stream.last = std::make_shared<Completion>();
    stream.tasks.push_back({std::move(what), std::move(after), stream.last});
  };
  Context& context = *stream.context;
  const bool is_default = &stream == context.default_stream.get();
  if ((stream.flags & CU_STREAM_NON_BLOCKING) == 0) {
    for (const std::shared_ptr<Stream>& other : context.streams) {
      const bool blocks = is_default ? (other->flags & CU_STREAM_NON_BLOCKING) == 0
                                     : other == context.default_stream;
      if (other.get() != &stream && blocks && HasWork(*other)) add(nullptr, other->last);
    }
  }
  add(std::move(work), std::move(wait));
  TheRuntime().changed.notify_all();
  return stream.last;
}

CUresult WaitFor(Context& context, const std::shared_ptr<Completion>& completion, Lock& lock) {
  if (completion != nullptr) TheRuntime().changed.wait(lock, [&] { return completion->done; });
  return AnswerOf(context);
}

void WaitForAll(Context& context, Lock& lock) {
  const std::set<std::shared_ptr<Stream>> streams = context.streams;
  for (const std::shared_ptr<Stream>& stream : streams) WaitFor(context, stream->last, lock);
}

void StartStream(const std::shared_ptr<Stream>& stream) {
  stream->context->streams.insert(stream);
  stream->thread = std::thread([stream] { RunStream(stream); });
}

void StopStream(const std::shared_ptr<Stream>& stream, Lock& lock) {
  stream->stopping = true;
  TheRuntime().changed.notify_all();
  lock.unlock();
  stream->thread.join();
  lock.lock();
  stream->context->streams.erase(stream);
}

extern "C" {

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return InContext("cuStreamCreateWithPriority", [&](Context& context, Lock&) {
    if (stream == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0)
      return Mistake("cuStreamCreateWithPriority: the flags", CUDA_ERROR_INVALID_VALUE);
    auto made = std::make_shared<Stream>(Stream{.context = &context, .flags = flags});
    StartStream(made);
    *stream = TheRuntime().streams.Add(made);
    return CUDA_SUCCESS;
  });
}

// Allowed in a context that has failed, like all functions that release objects.
CUresult cuStreamDestroy_v2(CUstream handle) {
  Lock lock(TheRuntime().mutex);
  if (InCallback()) return Mistake("cuStreamDestroy in a callback", CUDA_ERROR_NOT_PERMITTED);
  const std::shared_ptr<Stream> stream = TheRuntime().streams.Find(handle);
  if (stream == nullptr) return Mistake("cuStreamDestroy: no stream", CUDA_ERROR_INVALID_HANDLE);
  TheRuntime().streams.Remove(handle);
  StopStream(stream, lock);
  return AnswerOf(*stream->context);
}

CUresult cuStreamSynchronize(CUstream handle) {
  return InContext("cuStreamSynchronize", [&](Context& context, Lock& lock) {
    const std::shared_ptr<Stream> stream = FindStream(context, handle);
    if (stream == nullptr)
      return Mistake("cuStreamSynchronize: no stream", CUDA_ERROR_INVALID_HANDLE);
    return WaitFor(context, stream->last, lock);
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return InContext("cuStreamQuery", [&](Context& context, Lock&) {
    const std::shared_ptr<Stream> stream = FindStream(context, handle);
    if (stream == nullptr) return Mistake("cuStreamQuery: no stream", CUDA_ERROR_INVALID_HANDLE);
    return HasWork(*stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  return InContext("cuStreamWaitEvent", [&](Context& context, Lock&) {
    const std::shared_ptr<Stream> stream = FindStream(context, handle);
    const std::shared_ptr<Event> event = TheRuntime().events.Find(event_handle);
    if (stream == nullptr || event == nullptr || flags != 0)
      return Mistake("cuStreamWaitEvent: the stream, event or flags", CUDA_ERROR_INVALID_HANDLE);
    if (event->recorded != nullptr) Push(*stream, nullptr, event->recorded);
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* user_data) {
  return InContext("cuLaunchHostFunc", [&](Context& context, Lock&) {
    const std::shared_ptr<Stream> stream = FindStream(context, handle);
    if (stream == nullptr || function == nullptr)
      return Mistake("cuLaunchHostFunc: the stream or function", CUDA_ERROR_INVALID_HANDLE);
    Push(*stream, [=] {
      InCallback() = true;
      function(user_data);
      InCallback() = false;
      return CUDA_SUCCESS;
    });
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return InContext("cuEventCreate", [&](Context& context, Lock&) {
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (event == nullptr || (flags & ~kKnown) != 0)
      return Mistake("cuEventCreate: the flags", CUDA_ERROR_INVALID_VALUE);
    *event = TheRuntime().events.Add(std::make_shared<Event>(Event{&context, flags, nullptr}));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  Lock lock(TheRuntime().mutex);
  if (InCallback()) return Mistake("cuEventDestroy in a callback", CUDA_ERROR_NOT_PERMITTED);
  if (!TheRuntime().events.Remove(event))
    return Mistake("cuEventDestroy: no event", CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event_handle, CUstream handle) {
  return InContext("cuEventRecord", [&](Context& context, Lock&) {
    const std::shared_ptr<Stream> stream = FindStream(context, handle);
    const std::shared_ptr<Event> event = TheRuntime().events.Find(event_handle);
    if (stream == nullptr || event == nullptr || event->context != &context)
      return Mistake("cuEventRecord: the stream or event", CUDA_ERROR_INVALID_HANDLE);
    event->recorded = Push(*stream, nullptr);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventQuery(CUevent handle) {
  return InContext("cuEventQuery", [&](Context&, Lock&) {
    const std::shared_ptr<Event> event = TheRuntime().events.Find(handle);
    if (event == nullptr) return Mistake("cuEventQuery: no event", CUDA_ERROR_INVALID_HANDLE);
    const bool done = event->recorded == nullptr || event->recorded->done;
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return InContext("cuEventSynchronize", [&](Context& context, Lock& lock) {
    const std::shared_ptr<Event> event = TheRuntime().events.Find(handle);
    if (event == nullptr) return Mistake("cuEventSynchronize: no event", CUDA_ERROR_INVALID_HANDLE);
    return WaitFor(context, event->recorded, lock);
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  return InContext("cuEventElapsedTime", [&](Context&, Lock&) {
    const std::shared_ptr<Event> start = TheRuntime().events.Find(start_handle);
    const std::shared_ptr<Event> end = TheRuntime().events.Find(end_handle);
    const auto timed = [](const std::shared_ptr<Event>& event) {
      return event != nullptr && (event->flags & CU_EVENT_DISABLE_TIMING) == 0 &&
             event->recorded != nullptr;
    };
    if (milliseconds == nullptr || !timed(start) || !timed(end))
      return Mistake("cuEventElapsedTime: an event that has no time", CUDA_ERROR_INVALID_HANDLE);
    if (!start->recorded->done || !end->recorded->done) return CUDA_ERROR_NOT_READY;
    *milliseconds =
        1e-6f * static_cast<float>(end->recorded->nanoseconds - start->recorded->nanoseconds);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::cuda
