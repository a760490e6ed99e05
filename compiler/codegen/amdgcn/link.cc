#include "compiler/codegen/amdgcn/link.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/base/const_init.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace kiln::codegen {
namespace {

ABSL_CONST_INIT absl::Mutex linker_mutex(absl::kConstInit);
// A crash may have damaged the linker's state.
bool linker_works ABSL_GUARDED_BY(linker_mutex) = true;

// A temporary folder, deleted with its contents by the destructor. Unnamed files are not enough,
// since the linker renames its output.
class LinkFolder {
 public:
  LinkFolder() {
    std::error_code error;
    std::string temporary = std::filesystem::temp_directory_path(error).string();
    for (const std::string& parent : {std::string("/dev/shm"), std::move(temporary)}) {
      std::string path = absl::StrCat(parent, "/kiln-link-XXXXXX");
      if (mkdtemp(path.data()) == nullptr) continue;
      path_ = path;
      return;
    }
  }
  ~LinkFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  LinkFolder(const LinkFolder&) = delete;
  LinkFolder& operator=(const LinkFolder&) = delete;

  bool ok() const { return !path_.empty(); }
  std::string File(const char* name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

}  // namespace

absl::StatusOr<std::string> LinkCodeObject(std::string_view object) {
  const LinkFolder folder;
  if (!folder.ok())
    return absl::InternalError(
        absl::StrCat("cannot create a folder to link in: ", std::strerror(errno)));
  const std::string from = folder.File("kernel.o");
  const std::string to = folder.File("kernel.so");
  std::ofstream input(from, std::ios::binary);
  input.write(object.data(), static_cast<std::streamsize>(object.size()));
  input.close();
  if (!input) return absl::InternalError(absl::StrCat("cannot write ", from));
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  const char* const arguments[] = {"ld.lld", "-shared",  "--threads=1", "--build-id=none",
                                   "-o",     to.c_str(), from.c_str()};
  {
    absl::MutexLock lock(&linker_mutex);
    if (!linker_works) return absl::InternalError("the linker has crashed in this process before");
    const lld::Result result =
        lld::lldMain(arguments, problems, problems, {{lld::Gnu, &lld::elf::link}});
    linker_works = result.canRunAgain;
    if (result.retCode != 0)
      return absl::InternalError(absl::StrCat("cannot link a code object: ", problem));
  }
  std::ifstream output(to, std::ios::binary);
  std::string linked((std::istreambuf_iterator<char>(output)), std::istreambuf_iterator<char>());
  if (linked.empty()) return absl::InternalError(absl::StrCat("cannot read ", to));
  return linked;
}

}  // namespace kiln::codegen
