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

bool Is(const DeviceFacts& facts, const Finisher& finisher) {
  const Finisher& other = facts.target.finisher;
  return other.device == finisher.device && other.version == finisher.version;
}

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

absl::StatusOr<std::unique_ptr<ProgramBuilder>> ProgramBuilder::Open(const std::string& library) {
  auto cl = Library::Open(library);
  if (!cl.ok()) return absl::FailedPreconditionError(cl.status().message());
  auto devices = QueryDevices(**cl);
  if (!devices.ok()) return absl::FailedPreconditionError(devices.status().message());
  return std::unique_ptr<ProgramBuilder>(new ProgramBuilder(*std::move(cl), *std::move(devices)));
}

absl::StatusOr<KernelImage> ProgramBuilder::Build(const KernelImage& image,
                                                  const Finisher& finisher) {
  const auto facts = Find(finisher);
  if (!facts.ok()) return facts.status();
  auto context = ContextOf(**facts);
  if (!context.ok()) return context.status();
  KernelImage finished = image;
  finished.finished.clear();
  auto kernel = OpenClKernel::Load(*std::move(context), **facts, finished);
  if (!kernel.ok()) return kernel.status();
  if (absl::StrContains((*facts)->platform, "Portable Computing")) AskPoclForWorkGroups(image);
  auto binary = (*kernel)->Binary();
  if (!binary.ok()) return binary.status();
  finished.finished = *std::move(binary);
  return finished;
}

absl::StatusOr<const DeviceFacts*> ProgramBuilder::Find(const Finisher& finisher) const {
  for (const DeviceFacts& facts : devices_) {
    if (Is(facts, finisher)) return &facts;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "another process cannot find ", finisher.device,
      " as it was when kilnd started; restart kilnd if the vendor's driver was updated"));
}

absl::StatusOr<std::shared_ptr<Context>> ProgramBuilder::ContextOf(const DeviceFacts& facts) {
  std::shared_ptr<Context>& context = contexts_[facts.id];
  // A lost device may work again.
  if (context == nullptr || !context->Health().ok()) {
    auto made = Context::Make(cl_, facts.id, /*command_buffers=*/nullptr);
    if (!made.ok()) return made.status();
    context = *std::move(made);
  }
  return context;
}

}  // namespace kiln::drivers::opencl
