// What LLVM's linker would do with LLVM's bitcode: nothing, since it gets none. These are defined
// here in place of the linker's own, which would bring LLVM's optimiser with them, half as much
// again as all else of LLVM that Kiln has. Names and layouts are those of LLVM 22's lld/ELF/LTO.h,
// which is not installed.
#include "llvm/ADT/SmallVector.h"
#include "llvm/LTO/LTO.h"
#include "llvm/Support/ErrorHandling.h"

namespace lld::elf {

struct Ctx;
class BitcodeFile;

class BitcodeCompiler {
 public:
  explicit BitcodeCompiler(Ctx& context);
  ~BitcodeCompiler();
  void add(BitcodeFile& file);            // NOLINT(readability-identifier-naming)
  llvm::SmallVector<void*, 0> compile();  // NOLINT(readability-identifier-naming)
};

// Made for each link.
BitcodeCompiler::BitcodeCompiler(Ctx&) {}
BitcodeCompiler::~BitcodeCompiler() = default;
void BitcodeCompiler::add(BitcodeFile&) { llvm::report_fatal_error("no bitcode is linked"); }
// Of pointers to files, in the linker's header.
llvm::SmallVector<void*, 0> BitcodeCompiler::compile() { return {}; }

}  // namespace lld::elf

namespace llvm::lto {

Expected<std::unique_ptr<InputFile>> InputFile::create(MemoryBufferRef) {
  return createStringError("no bitcode is linked");
}
InputFile::~InputFile() = default;
SmallVector<const char*> LTO::getRuntimeLibcallSymbols(const Triple&) { return {}; }

}  // namespace llvm::lto
