# The compiler as a whole: what the server, the tools and the tests link.
kiln_library(kiln_compiler
  SOURCES cached_kernel.cc compile_kernels.cc compiler.cc digest.cc pipeline.cc
  PUBLIC kiln_graph kiln_driver_interface absl::statusor
  PRIVATE kiln_autodiff kiln_partition kiln_kernel kiln_search kiln_schedule kiln_codegen
          kiln_codegen_x86 OpenSSL::Crypto Threads::Threads)
