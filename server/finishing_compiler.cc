#include "server/finishing_compiler.h"

#include <utility>

#include "proto/check/check.h"

namespace kiln {

FinishingCompiler::FinishingCompiler(Options options) : options_(std::move(options)) {
  KILN_CHECK_NE(options_.assembler, nullptr);
  KILN_CHECK_NE(options_.finisher, nullptr);
}

absl::StatusOr<drivers::KernelImage> FinishingCompiler::Compile(const workers::KernelJob& job) {
  absl::StatusOr<drivers::KernelImage> image = options_.assembler->Compile(job);
  const drivers::Finisher& finisher = job.target.finisher;
  const bool is_whole = job.rehearsal || finisher.driver.empty();
  if (!image.ok() || is_whole || IsUnable(finisher)) return image;
  workers::KernelJob finishing;
  finishing.name = job.name;
  finishing.target = job.target;
  finishing.unfinished = *image;
  absl::StatusOr<drivers::KernelImage> finished = options_.finisher->Compile(finishing);
  if (absl::IsUnimplemented(finished.status())) {
    SetUnable(finisher, finished.status());
    return image;
  }
  if (!finished.ok()) return finished.status();
  // Takes nothing else from a process that ran a vendor's compiler.
  image->finished = std::move(finished->finished);
  return image;
}

bool FinishingCompiler::IsUnable(const drivers::Finisher& finisher) const {
  absl::MutexLock lock(&mutex_);
  return unable_.contains(finisher.device);
}

void FinishingCompiler::SetUnable(const drivers::Finisher& finisher, const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (!unable_.insert(finisher.device).second) return;
  }
  if (options_.on_unable) options_.on_unable(finisher, why);
}

}  // namespace kiln
