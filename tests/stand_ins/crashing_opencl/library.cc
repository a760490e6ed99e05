// A libOpenCL.so.1 that terminates the process that opens it, as one for another kernel module may.
#include <cstdlib>

namespace {

[[gnu::constructor]] void Crash() { std::abort(); }

}  // namespace
