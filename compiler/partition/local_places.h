// Which of the values that a kernel keeps from stage to stage stand in the same memory.
#ifndef KILN_COMPILER_PARTITION_LOCAL_PLACES_H_
#define KILN_COMPILER_PARTITION_LOCAL_PLACES_H_

#include <vector>

#include "compiler/partition/partition.h"

namespace kiln::partition {

// Gives each value a local. Where places are used again, one that no stage needs any more goes to a
// later stage's value of the same dtype that is no larger: so there are about as many as are needed
// at a time.
class LocalPlaces {
 public:
  explicit LocalPlaces(bool used_again) : used_again_(used_again) {}

  // Values come in the order of the stages that make them. `last`: the last stage that uses the
  // value, at least `made`. Returns the local's number.
  int Add(const Local& local, int made, int last);

  const std::vector<Local>& locals() const { return locals_; }

 private:
  const bool used_again_;
  std::vector<Local> locals_;
  std::vector<int> last_;  // by local, the last stage that needs what is there
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_LOCAL_PLACES_H_
