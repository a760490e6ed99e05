#include "drivers/cuda/peer_access.h"

#include "proto/check/check.h"

namespace kiln::drivers::cuda {

void PeerAccess::Enter(const std::shared_ptr<Context>& context) {
  absl::MutexLock lock(&mutex_);
  Forget(context->device());
  for (const Member& member : members_) {
    const std::shared_ptr<Context> other = member.alive.lock();
    if (other == nullptr) continue;
    Enable(*other, *context);
    Enable(*context, *other);
  }
  members_.push_back({context->device(), context.get(), context});
  KILN_VALIDATE(*this, members_.size() + reached_.size());
}

void PeerAccess::Validate() const {
  std::set<CUdevice> devices;
  std::set<const DeviceContext*> contexts;
  for (const Member& member : members_) {
    const bool is_new = devices.insert(member.device).second;
    KILN_CHECK(is_new) << "device " << member.device << " is registered twice";
    contexts.insert(member.context);
  }
  KILN_CHECK_EQ(contexts.size(), members_.size());
  for (const auto& [from, to] : reached_) {
    KILN_CHECK(from != to);
    KILN_CHECK(contexts.contains(from) && contexts.contains(to)) << "a pair without its contexts";
  }
}

bool PeerAccess::Reaches(const DeviceContext* from, const DeviceContext* to) const {
  absl::MutexLock lock(&mutex_);
  return reached_.contains({from, to});
}

// Forgets the device's previous context, and destroyed contexts: a new one may have their address.
void PeerAccess::Forget(CUdevice device) {
  std::erase_if(members_, [&](const Member& member) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (member.device != device && !member.alive.expired()) return false;
    std::erase_if(reached_, [&](const auto& pair) {
      return pair.first == member.context || pair.second == member.context;
    });
    return true;
  });
}

void PeerAccess::Enable(const Context& from, const Context& to) {
  const Library& cuda = from.cuda();
  int can = 0;
  if (cuda.DeviceCanAccessPeer(&can, from.device(), to.device()) != CUDA_SUCCESS || can == 0)
    return;
  Context::Use use(from);
  if (!use.ok()) return;
  const CUresult code = cuda.CtxEnablePeerAccess(to.get(), 0);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
    reached_.insert({&from, &to});
}

}  // namespace kiln::drivers::cuda
