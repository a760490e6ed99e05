// Runs kernels by the twin that follows their code object (compiler/codegen/amdgcn/host_twin.h).
#ifndef KILN_TESTS_STAND_INS_HSA_OBJECT_TWIN_H_
#define KILN_TESTS_STAND_INS_HSA_OBJECT_TWIN_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/codegen/amdgcn/host_twin.h"

namespace kiln::stand_ins::hsa {

struct Dispatch {
  uint32_t blocks = 1;
  uint32_t threads = 1;  // of a block
  int wave = 32;         // threads that may shuffle together
  uint32_t shared_bytes = 0;
  const void* arguments = nullptr;
};

class Twin {
 public:
  // INVALID_ARGUMENT: there is no twin, or it is truncated. FAILED_PRECONDITION: this processor
  // lacks x86-64-v3.
  static absl::StatusOr<std::unique_ptr<Twin>> Load(std::string_view file);
  ~Twin();
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;

  const codegen::HostTwinFooter& footer() const { return footer_; }

  // Runs every thread of every block, on the calling thread: blocks one after another, threads of a
  // block forward or backward, with shared memory initially full of NaNs. INTERNAL: threads of a
  // block wait in different places, or shuffle with a thread that is not there.
  absl::Status Run(const Dispatch& dispatch) const;

 private:
  explicit Twin(const codegen::HostTwinFooter& footer) : footer_(footer) {}

  const codegen::HostTwinFooter footer_;
  void* memory_ = nullptr;
};

}  // namespace kiln::stand_ins::hsa

#endif  // KILN_TESTS_STAND_INS_HSA_OBJECT_TWIN_H_
