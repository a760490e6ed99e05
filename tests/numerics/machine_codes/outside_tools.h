// Runs external programs, if installed, that read Kiln's output.
#ifndef KILN_TESTS_NUMERICS_MACHINE_CODES_OUTSIDE_TOOLS_H_
#define KILN_TESTS_NUMERICS_MACHINE_CODES_OUTSIDE_TOOLS_H_

#include <string>
#include <vector>

namespace kiln::numerics {

// Returns the path of a program on $PATH; empty if there is none.
std::string FindProgram(const std::string& name);

struct ToolSays {
  int status = 0;    // of the command
  std::string text;  // standard output and standard error
};

// Runs a shell command in a new folder, in which the files are named by their numbers: "0", "1", …
// Removes the folder. Thread-safe.
ToolSays RunTool(const std::string& command, const std::vector<std::string>& files);

// Returns "0 1 2", the names of `files` files.
std::string FileNames(size_t files);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_MACHINE_CODES_OUTSIDE_TOOLS_H_
