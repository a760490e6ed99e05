// Programs of other projects that read what Kiln writes, where they are installed.
#ifndef KILN_TESTS_NUMERICS_OUTSIDE_TOOLS_H_
#define KILN_TESTS_NUMERICS_OUTSIDE_TOOLS_H_

#include <string>
#include <vector>

namespace kiln::numerics {

// The path of a program on $PATH; empty if there is none.
std::string FindProgram(const std::string& name);

struct ToolSays {
  int status = 0;    // of the command
  std::string text;  // its output and its errors
};

// Runs a command of the shell in a new folder, where each file is called by its number: "0", "1", …
// Removes the folder. Threads may call it at once.
ToolSays RunTool(const std::string& command, const std::vector<std::string>& files);

// "0 1 2": the names of so many files.
std::string FileNames(size_t files);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_OUTSIDE_TOOLS_H_
