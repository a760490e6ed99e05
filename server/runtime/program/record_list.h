// Writes the command list of one device of a program.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_RECORD_LIST_H_
#define KILN_SERVER_RUNTIME_PROGRAM_RECORD_LIST_H_

#include <vector>

#include "drivers/interface/command_list.h"
#include "server/runtime/program/loaded_program.h"

namespace kiln::runtime {

// A list, and the positions of calls and exchanges in it. Copies that are not part of an exchange
// are its last commands.
struct RecordedList {
  drivers::CommandList list;
  std::vector<int> command_of_call;
  std::vector<int> exchange_ends;  // by exchange: the index after its last command
};

// The list's slots are the program's; if it is joint, followed by each device's published memory,
// the mirror and the staging memory. Requires: `loaded` has the kernels and knows which device
// reaches which.
RecordedList RecordList(const ShardedProgram& program, const LoadedProgram& loaded, int member);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_RECORD_LIST_H_
