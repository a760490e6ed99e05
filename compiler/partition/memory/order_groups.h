// The order in which a partition's groups run.
#ifndef KILN_COMPILER_PARTITION_MEMORY_ORDER_GROUPS_H_
#define KILN_COMPILER_PARTITION_MEMORY_ORDER_GROUPS_H_

#include "compiler/partition/partition.h"

namespace kiln::partition {

// Reorders the groups topologically, so that intermediates die soon after they are made.
void OrderGroups(Partition* partition);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_MEMORY_ORDER_GROUPS_H_
