// Writes the lists of a gang's members (gang.h).
#ifndef KILN_SERVER_RUNTIME_GANG_RECORDER_H_
#define KILN_SERVER_RUNTIME_GANG_RECORDER_H_

#include <vector>

#include "drivers/interface/command_list.h"
#include "server/runtime/gang.h"

namespace kiln::runtime {

// A list, and the positions of calls and exchanges in it.
struct GangRecording {
  drivers::CommandList list;
  std::vector<int> command_of_call;
  std::vector<int> exchange_ends;  // by exchange: the index after its last command
};

// Requires: `loaded` has the kernels and knows which device reaches which.
GangRecording RecordGang(const Gang& gang, const Gang::Loaded& loaded, int member);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_GANG_RECORDER_H_
