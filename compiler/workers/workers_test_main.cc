// The test's workers are the test executable itself, run again. A job's kernel text tells them what
// to do.
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/workers/worker.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::workers {
namespace {

std::string ListOpenFiles() {
  std::vector<int> files;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    const int file = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && file != dirfd(folder)) files.push_back(file);
  }
  closedir(folder);
  std::sort(files.begin(), files.end());
  return absl::StrJoin(files, " ");
}

// Returns whether a child of this process has the socket open.
std::string AskChildForSocket() {
  FILE* const child = popen("test -e /proc/self/fd/3 && echo open || echo closed", "r");
  char said[16] = {};
  if (child == nullptr || std::fgets(said, sizeof said, child) == nullptr) return "no child";
  pclose(child);
  return said;
}

void AddByte(const std::string& file) { std::ofstream(file, std::ios::app) << 'x'; }

// Waits until three jobs are running at once, each of which appends a byte to the file; false if
// that does not happen.
bool Meet(const std::string& file) {
  AddByte(file);
  return testing::Eventually([&] { return std::filesystem::file_size(file) >= 3; });
}

[[noreturn]] void Spin() {
  while (true) {
    const volatile int step = 0;
    (void)step;
  }
}

[[noreturn]] void EatMemory() {
  while (true) {
    std::string* const piece = new std::string(1 << 24, 'x');
    if (piece->empty()) std::abort();
  }
}

absl::StatusOr<drivers::KernelImage> Do(const KernelJob& job) {
  const std::string& what = job.kernel;
  if (what == "abort") {
    std::fputs("LLVM ERROR: Cannot select: \x1b[31mplanted\n", stderr);
    std::abort();
  }
  if (what == "chatter")
    for (int i = 0; i < 100'000; ++i) std::fputs("a line that nobody reads\n", stderr);
  if (what == "exit") std::exit(3);
  // The schedule names a file that gets a byte for each started job.
  if (what == "spin") {
    AddByte(job.schedule);
    Spin();
  }
  if (what == "eat") EatMemory();
  if (what == "meet" && !Meet(job.schedule)) return absl::UnknownError("nobody came");
  if (what == "disproof") {
    absl::Status status = absl::InternalError("not the kernel");
    status.SetPayload("kiln.disproof", absl::Cord());
    return status;
  }
  if (what == "files") return absl::UnknownError(ListOpenFiles());
  if (what == "child") return absl::UnknownError(AskChildForSocket());
  if (what == "core") {
    rlimit limit{};
    getrlimit(RLIMIT_CORE, &limit);
    return absl::UnknownError(absl::StrCat(limit.rlim_max));
  }
  // The schedule names a file that exists once the first worker has died.
  if (what == "die once" && !std::filesystem::exists(job.schedule)) {
    std::ofstream(job.schedule) << "died";
    raise(SIGKILL);
  }
  drivers::KernelImage image;
  image.name = job.name;
  image.architecture = job.target.architecture;
  image.code = job.schedule;
  return image;
}

}  // namespace
}  // namespace kiln::workers

int main(int argc, char** argv) {
  if (kiln::workers::IsWorker(argc, argv))
    return kiln::workers::RunWorker(argc, argv, kiln::workers::Do);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
