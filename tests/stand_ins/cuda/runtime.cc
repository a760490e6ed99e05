// State shared by all calls: mistakes, contexts and their errors.
#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {

Control& TheControl() {
  static auto* const control = new Control;
  return *control;
}

Runtime& TheRuntime() {
  static auto* const runtime = [] {
    auto* made = new Runtime;
    for (int i = 0; i < kDevicesMax; ++i) {
      made->contexts[i].device = i;
      made->default_pools[i] = std::make_shared<Pool>(Pool{.device = i, .is_default = true});
      made->next_address[i] = (CUdeviceptr{0x70} << 40) + (static_cast<CUdeviceptr>(i) << 39);
    }
    return made;
  }();
  return *runtime;
}

CUresult Mistake(const std::string& what, CUresult code) {
  ++TheControl().mistakes;
  TheRuntime().message = what;
  return code;
}

void Report(const std::string& message) {
  Lock lock(TheRuntime().mutex);
  TheRuntime().message = message;
}

bool& InCallback() {
  thread_local bool in_callback = false;
  return in_callback;
}

std::vector<Context*>& ContextStack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

CUresult AnswerOf(Context& context) {
  if (!context.active) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const int lost = TheControl().lost;
  if (lost != 0 && TheControl().lost_device == context.device && context.error == CUDA_SUCCESS)
    context.error = static_cast<CUresult>(lost);
  return context.error;
}

void ResetContext(Context& context, Lock& lock) {
  Runtime& runtime = TheRuntime();
  const std::set<std::shared_ptr<Stream>> streams = context.streams;
  for (const std::shared_ptr<Stream>& stream : streams) StopStream(stream, lock);
  context.default_stream = nullptr;
  context.streams.clear();
  const auto mine = [&](const auto& object) { return object.context == &context; };
  runtime.streams.RemoveIf(mine);
  runtime.events.RemoveIf(mine);
  runtime.graph_execs.RemoveIf(mine);
  runtime.functions.RemoveIf([&](const KernelFunction& function) {
    const std::shared_ptr<Module> module = function.module.lock();
    return module == nullptr || module->context == &context;
  });
  runtime.modules.RemoveIf(mine);
  std::vector<CUdeviceptr> addresses;
  for (const auto& [address, allocation] : runtime.allocations)
    if (allocation.context == &context) addresses.push_back(address);
  for (CUdeviceptr address : addresses) Free(address);
  context.error = CUDA_SUCCESS;
  context.active = false;
  context.peers.clear();
  for (Context& other : runtime.contexts) other.peers.erase(&context);
}

}  // namespace kiln::drivers::cuda

extern "C" kiln::stand_ins::cuda::Control* KilnCudaStandInControl() {
  return &kiln::drivers::cuda::TheControl();
}

extern "C" const char* KilnCudaStandInMessage() {
  thread_local std::string message;
  std::lock_guard lock(kiln::drivers::cuda::TheRuntime().mutex);
  message = kiln::drivers::cuda::TheRuntime().message;
  return message.c_str();
}
