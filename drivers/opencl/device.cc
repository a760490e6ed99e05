#include "drivers/opencl/device.h"

#include "absl/strings/str_cat.h"
#include "drivers/opencl/kernel.h"
#include "drivers/opencl/prepared_list.h"

namespace kiln::drivers::opencl {
namespace {

class QueueCopies : public HostCopies {
 public:
  QueueCopies(Context& context, Handle<cl_command_queue> queue)
      : context_(context), queue_(std::move(queue)) {}

  absl::Status ToDevice(char* to, absl::Span<const char> from) override {
    return Copy(to, from.data(), from.size());
  }
  absl::Status ToHost(absl::Span<char> to, const char* from) override {
    return Copy(to.data(), from, to.size());
  }

 private:
  absl::Status Copy(char* to, const char* from, size_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    const Library& cl = context_.cl();
    cl_event event = nullptr;
    const cl_int code =
        cl.EnqueueSVMMemcpy(queue_.get(), CL_FALSE, to, from, bytes, 0, nullptr, &event);
    if (code != CL_SUCCESS)
      return context_.Failure(absl::StrCat("cannot copy ", bytes, " bytes"), code);
    return Event(context_, event).Await();
  }

  Context& context_;
  const Handle<cl_command_queue> queue_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<VendorDevice>> OpenClDevice::Open(std::shared_ptr<const Library> cl,
                                                                 const DeviceFacts& facts,
                                                                 CommandBufferUse command_buffers) {
  std::unique_ptr<CommandBufferExtension> extension;
  if (command_buffers.wanted)
    extension = CommandBufferExtension::Find(*cl, facts.id, command_buffers.on_broken);
  auto context = Context::Make(std::move(cl), facts.id, std::move(extension));
  if (!context.ok()) return context.status();
  auto copy_queue = (*context)->MakeQueue();
  if (!copy_queue.ok()) return copy_queue.status();
  auto copies = std::make_unique<QueueCopies>(**context, *std::move(copy_queue));
  return std::shared_ptr<VendorDevice>(
      new OpenClDevice(*std::move(context), std::move(copies), facts, std::move(command_buffers)));
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> OpenClDevice::LoadKernel(const KernelImage& image) {
  return OpenClKernel::Load(context_, facts_, image);
}

absl::StatusOr<std::shared_ptr<ListProgram>> OpenClDevice::Prepare(CommandList list,
                                                                   ListNeeds needs) {
  return Program::Make(context_, std::move(list), std::move(needs));
}

absl::StatusOr<std::shared_ptr<VendorDevice>> OpenClDevice::Reopen() {
  if (!IsAvailable(context_->cl(), facts_.id))
    return absl::UnavailableError("the device is no longer available");
  return Open(context_->shared_cl(), facts_, command_buffers_);
}

}  // namespace kiln::drivers::opencl
