# Everything from outside; deploy/dependencies installs it.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_path(OPENCL_INCLUDE CL/cl.h REQUIRED)
# LLVM is linked statically and only by compiler/codegen.
find_package(LLVM 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22)
find_package(OpenSSL REQUIRED)
