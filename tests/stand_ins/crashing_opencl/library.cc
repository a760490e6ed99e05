// A libOpenCL.so.1 that ends the process which opens it, as one for another kernel module may.
#include <cstdlib>

namespace {

[[gnu::constructor]] void Crash() { std::abort(); }

}  // namespace
