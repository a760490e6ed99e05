// The limits that Linux's control groups, of both versions, put on this process; see cgroups(7).
#ifndef KILN_DRIVERS_CPU_CONTROL_GROUPS_H_
#define KILN_DRIVERS_CPU_CONTROL_GROUPS_H_

#include <cstdint>
#include <string>
#include <utility>

namespace kiln::drivers::cpu {

// Every group from this process's own up to the root may have a limit; the least one holds.
class ControlGroups {
 public:
  // Where the hierarchies are mounted, and the file that names this process's groups.
  explicit ControlGroups(std::string root = "/sys/fs/cgroup",
                         std::string own_groups_file = "/proc/self/cgroup")
      : root_(std::move(root)), own_groups_file_(std::move(own_groups_file)) {}

  // In bytes; INT64_MAX if there is none.
  int64_t MemoryLimit() const;

  // Seconds of processor time for each second, 1.5 for example; infinite if there is none. Cpusets
  // do not count here: they show in the affinity mask.
  double CoreLimit() const;

 private:
  const std::string root_;
  const std::string own_groups_file_;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_CONTROL_GROUPS_H_
