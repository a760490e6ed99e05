# find_package(kiln) gives the library kiln::client.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(absl)
find_dependency(Protobuf)
find_dependency(OpenSSL)
find_dependency(gRPC CONFIG)
include(${CMAKE_CURRENT_LIST_DIR}/kiln.cmake)
