#include "drivers/cpu/control_groups.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace kiln::drivers::cpu {
namespace {

// Returns this process's group in the hierarchy of a version 1 controller, or in version 2's, whose
// controller is "". Empty if there is none.
std::string OwnGroup(const std::string& own_groups_file, const std::string& controller) {
  std::ifstream file(own_groups_file);
  std::string line;
  while (std::getline(file, line)) {
    // Version 1: "4:cpu,cpuacct:/user.slice", version 2: "0::/user.slice"; see cgroups(7). The path
    // itself may contain colons.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    for (const auto name : absl::StrSplit(parts[1], ',')) {
      if (name == controller) return parts[2];
    }
  }
  return "";
}

// Returns the folders of a group and its ancestors. The root is included even if the group is not
// below it: a container may see its own group there, although its path is the one outside.
std::vector<std::string> GroupFolders(const std::string& root, std::string group) {
  std::vector<std::string> folders = {root};
  while (group.size() > 1) {
    folders.push_back(absl::StrCat(root, group));
    group.resize(group.rfind('/'));
  }
  return folders;
}

// Returns the number at a position of a file's first line, or `otherwise` if there is none, as for
// "max".
int64_t ReadNumber(const std::string& path, int place, int64_t otherwise) {
  std::ifstream file(path);
  std::string word;
  for (int i = 0; i <= place; ++i) {
    if (!(file >> word)) return otherwise;
  }
  int64_t number = 0;
  return absl::SimpleAtoi(word, &number) && number > 0 ? number : otherwise;
}

double Share(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(quota) / static_cast<double>(period);
}

}  // namespace

int64_t ControlGroups::MemoryLimit() const {
  // Both versions may be mounted at once, each with some of the controllers.
  int64_t limit = INT64_MAX;
  for (const std::string& folder : GroupFolders(root_, OwnGroup(own_groups_file_, "")))
    limit = std::min(limit, ReadNumber(folder + "/memory.max", 0, INT64_MAX));
  for (const std::string& folder :
       GroupFolders(root_ + "/memory", OwnGroup(own_groups_file_, "memory")))
    limit = std::min(limit, ReadNumber(folder + "/memory.limit_in_bytes", 0, INT64_MAX));
  return limit;
}

double ControlGroups::CoreLimit() const {
  double limit = std::numeric_limits<double>::infinity();
  for (const std::string& folder : GroupFolders(root_, OwnGroup(own_groups_file_, ""))) {
    // "150000 100000": microseconds of processor time in each period, or "max" for the first.
    const std::string file = folder + "/cpu.max";
    limit = std::min(limit, Share(ReadNumber(file, 0, 0), ReadNumber(file, 1, 0)));
  }
  for (const std::string& folder : GroupFolders(root_ + "/cpu", OwnGroup(own_groups_file_, "cpu")))
    limit = std::min(limit, Share(ReadNumber(folder + "/cpu.cfs_quota_us", 0, 0),
                                  ReadNumber(folder + "/cpu.cfs_period_us", 0, 0)));
  return limit;
}

}  // namespace kiln::drivers::cpu
