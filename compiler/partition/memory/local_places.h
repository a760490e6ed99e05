// Decides which values that a kernel keeps from stage to stage share memory.
#ifndef KILN_COMPILER_PARTITION_MEMORY_LOCAL_PLACES_H_
#define KILN_COMPILER_PARTITION_MEMORY_LOCAL_PLACES_H_

#include <vector>

#include "compiler/partition/partition.h"

namespace kiln::partition {

// Assigns each value a local. If places are reused, the local of a value that no stage needs any
// more is given to a later stage's value of the same dtype that is not larger. So there are about
// as many locals as are needed at a time.
class LocalPlaces {
 public:
  explicit LocalPlaces(bool used_again) : used_again_(used_again) {}

  // Values are added in the order of the stages that make them. `last` is the last stage that uses
  // the value, at least `made` (except in a trial to merge clusters of which one reads from the
  // other, which is then refused). Returns the local's number.
  int Add(const Local& local, int made, int last);

  const std::vector<Local>& locals() const { return locals_; }

 private:
  void Validate() const;

  const bool used_again_;
  std::vector<Local> locals_;
  std::vector<int> last_;  // by local, the last stage that needs its value
  int made_ = 0;           // the stage of the last value
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_MEMORY_LOCAL_PLACES_H_
