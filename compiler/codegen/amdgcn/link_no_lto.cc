// Stubs for the linker's handling of LLVM bitcode, of which it never gets any. They replace the
// linker's own functions, which would add LLVM's optimiser, half as large as the rest of LLVM in
// Kiln. Names and layouts are those of LLVM 22's lld/ELF/LTO.h, which is not installed.
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

// Constructed for each link.
BitcodeCompiler::BitcodeCompiler(Ctx&) {}
BitcodeCompiler::~BitcodeCompiler() = default;
void BitcodeCompiler::add(BitcodeFile&) { llvm::report_fatal_error("no bitcode is linked"); }
// The linker's header declares pointers to files.
llvm::SmallVector<void*, 0> BitcodeCompiler::compile() { return {}; }

}  // namespace lld::elf

namespace llvm::lto {

Expected<std::unique_ptr<InputFile>> InputFile::create(MemoryBufferRef) {
  return createStringError("no bitcode is linked");
}
InputFile::~InputFile() = default;
SmallVector<const char*> LTO::getRuntimeLibcallSymbols(const Triple&) { return {}; }

}  // namespace llvm::lto
