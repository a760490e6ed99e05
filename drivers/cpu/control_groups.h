// The limits that Linux's control groups, versions 1 and 2, set for this process; see cgroups(7).
#ifndef KILN_DRIVERS_CPU_CONTROL_GROUPS_H_
#define KILN_DRIVERS_CPU_CONTROL_GROUPS_H_

#include <cstdint>
#include <string>
#include <utility>

namespace kiln::drivers::cpu {

// Every group from this process's own up to the root may set a limit; the smallest applies.
class ControlGroups {
 public:
  // `root`: where the hierarchies are mounted. `own_groups_file`: lists this process's groups.
  explicit ControlGroups(std::string root = "/sys/fs/cgroup",
                         std::string own_groups_file = "/proc/self/cgroup")
      : root_(std::move(root)), own_groups_file_(std::move(own_groups_file)) {}

  // In bytes; INT64_MAX if there is none.
  int64_t MemoryLimit() const;

  // Seconds of processor time per second, for example 1.5; infinite if there is no limit. Cpusets
  // do not count here: they show in the affinity mask.
  double CoreLimit() const;

 private:
  const std::string root_;
  const std::string own_groups_file_;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_CONTROL_GROUPS_H_
