#include "compiler/partition/memory/local_places.h"

#include "proto/check/check.h"

namespace kiln::partition {

void LocalPlaces::Validate() const {
  KILN_CHECK_EQ(locals_.size(), last_.size());
  for (const int last : last_) KILN_CHECK_GE(last, 0);
}

int LocalPlaces::Add(const Local& local, int made, int last) {
  KILN_CHECK_GE(made, made_) << "stages out of order";
  made_ = made;
  for (size_t i = 0; used_again_ && i < locals_.size(); ++i) {
    // A stage's threads read at their own pace, so none of them may overwrite a value in the stage
    // that last reads it.
    const bool fits = locals_[i].elements >= local.elements && locals_[i].dtype == local.dtype;
    if (!fits || last_[i] >= made) continue;
    last_[i] = last;
    return static_cast<int>(i);
  }
  locals_.push_back(local);
  last_.push_back(last);
  KILN_VALIDATE(*this, last_.size());
  return static_cast<int>(locals_.size()) - 1;
}

}  // namespace kiln::partition
