# The compiler as a whole: what the server, the tools and the tests link.

# Everything that decides what code a kernel becomes names itself in the kernel cache's keys: a changed source is a new
# compiler, so that no kernel of an older one is ever taken for its own.
file(GLOB_RECURSE KILN_KERNEL_SOURCES CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/ir/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/ir/*.h
  ${CMAKE_CURRENT_SOURCE_DIR}/kernel/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/kernel/*.h
  ${CMAKE_CURRENT_SOURCE_DIR}/schedule/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/schedule/*.h
  ${CMAKE_CURRENT_SOURCE_DIR}/proof/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/proof/*.h
  ${CMAKE_CURRENT_SOURCE_DIR}/search/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/search/*.h
  ${CMAKE_CURRENT_SOURCE_DIR}/codegen/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/codegen/*.h
  ${CMAKE_CURRENT_SOURCE_DIR}/machine_codes.cc)
list(FILTER KILN_KERNEL_SOURCES EXCLUDE REGEX "_test\\.cc$|/testing/")
set(KILN_FINGERPRINT ${CMAKE_CURRENT_BINARY_DIR}/fingerprint/compiler_fingerprint.h)
add_custom_command(
  OUTPUT ${KILN_FINGERPRINT}
  COMMAND ${CMAKE_COMMAND} "-DFILES=${KILN_KERNEL_SOURCES}" -DOUTPUT=${KILN_FINGERPRINT} -P
          ${PROJECT_SOURCE_DIR}/cmake/Fingerprint.cmake
  DEPENDS ${KILN_KERNEL_SOURCES} ${PROJECT_SOURCE_DIR}/cmake/Fingerprint.cmake
  VERBATIM)

# The passes from a graph to a partition: what tools and tests need that make no machine code.
kiln_library(kiln_pipeline
  SOURCES pipeline.cc rehearsal_job.cc
  PUBLIC kiln_graph kiln_partition kiln_shard kiln_workers kiln_driver_interface absl::statusor absl::time
  PRIVATE kiln_autodiff kiln_kernel)

kiln_library(kiln_compiler
  SOURCES cached_kernel.cc compile_job.cc compile_kernels.cc compiler.cc machine_codes.cc rehearse.cc version.cc ${KILN_FINGERPRINT}
  PUBLIC kiln_pipeline kiln_graph kiln_codegen kiln_workers kiln_driver_interface absl::statusor absl::time
  PRIVATE kiln_coding kiln_partition kiln_kernel kiln_search kiln_schedule kiln_proof kiln_digest absl::flat_hash_map absl::synchronization Threads::Threads)
kiln_test(compiler_test SOURCES compile_kernels_test.cc LIBRARIES kiln_compiler kiln_search kiln_kernel)
kiln_test(machine_codes_test SOURCES machine_codes_test.cc LIBRARIES kiln_compiler kiln_codegen absl::strings)
target_include_directories(kiln_compiler PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/fingerprint)
