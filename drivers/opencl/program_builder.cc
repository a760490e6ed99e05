#include "drivers/opencl/program_builder.h"

#include <cstdlib>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "drivers/opencl/kernel.h"
#include "drivers/opencl/library.h"

namespace kiln::drivers::opencl {
namespace {

// PoCL generates the executable code, a loop over a block's threads, when a kernel is launched: for
// its block size, for launches that begin at 0, and for grids of less than 2^16 threads. With this
// environment variable it also stores that code in a binary; see its manual. (A launch that the
// variable's value does not describe would be compiled when it first runs.)
void AskPoclForWorkGroups(const KernelImage& image) {
  const bool is_small =
      image.grid_size * image.block_size < std::numeric_limits<unsigned short>::max();
  const std::string name =
      absl::StrCat(image.block_size, "-1-1-goffs0", is_small ? "-smallgrid" : "");
  setenv("POCL_BINARY_SPECIALIZE_WG", name.c_str(), /*overwrite=*/1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelBuilder>> ProgramBuilder::Open(const std::string& library) {
  auto cl = Library::Open(library);
  if (!cl.ok()) return absl::FailedPreconditionError(cl.status().message());
  auto devices = QueryDevices(**cl);
  if (!devices.ok()) return absl::FailedPreconditionError(devices.status().message());
  return std::unique_ptr<KernelBuilder>(new ProgramBuilder(*std::move(cl), *std::move(devices)));
}

ProgramBuilder::ProgramBuilder(std::shared_ptr<const Library> cl, std::vector<DeviceFacts> devices)
    : KernelBuilder(FinishersOf(devices)), cl_(std::move(cl)), devices_(std::move(devices)) {}

absl::StatusOr<std::string> ProgramBuilder::Binary(size_t device, const KernelImage& image) {
  const DeviceFacts& facts = devices_[device];
  std::shared_ptr<Context>& context = contexts_[device];
  // A lost device may work again.
  if (context == nullptr || !context->Health().ok()) {
    auto made = Context::Make(cl_, facts.id, /*command_buffers=*/nullptr);
    if (!made.ok()) return made.status();
    context = *std::move(made);
  }
  const auto kernel = OpenClKernel::Load(context, facts, image);
  if (!kernel.ok()) return kernel.status();
  if (absl::StrContains(facts.platform, "Portable Computing")) AskPoclForWorkGroups(image);
  return (*kernel)->Binary();
}

}  // namespace kiln::drivers::opencl
