// Which devices of one driver reach each other's memory.
#ifndef KILN_DRIVERS_CUDA_PEER_ACCESS_H_
#define KILN_DRIVERS_CUDA_PEER_ACCESS_H_

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/cuda/context.h"

namespace kiln::drivers::cuda {

// Thread-safe. Shared by the devices, since any of them may get a new context.
class PeerAccess {
 public:
  // From here on this is its device's context. Where the hardware can, it and those of the other
  // devices reach each other's memory.
  void Enter(const std::shared_ptr<Context>& context);

  // Whether kernels and copies of the one may use memory of the other.
  bool Reaches(const Context* from, const Context* to) const;

 private:
  struct Member {
    CUdevice device;
    const Context* context;
    std::weak_ptr<Context> alive;
  };
  void Forget(CUdevice device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enable(const Context& from, const Context& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<const Context*, const Context*>> reached_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_PEER_ACCESS_H_
