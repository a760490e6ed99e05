// Tracks which devices of a driver can access each other's memory.
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
  // Registers the device's current context, and enables access in both directions between it and
  // the contexts of the other devices, where the hardware supports it.
  void Enter(const std::shared_ptr<Context>& context);

  // Whether kernels and copies of `from` may use memory of `to`.
  bool Reaches(const DeviceContext* from, const DeviceContext* to) const;

 private:
  struct Member {
    CUdevice device;
    const Context* context;
    std::weak_ptr<Context> alive;
  };
  // Checks that each device has one context, and that reached pairs are of registered contexts.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(CUdevice device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enable(const Context& from, const Context& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<const DeviceContext*, const DeviceContext*>> reached_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_PEER_ACCESS_H_
