# Language, warnings, sanitizers and the compiler cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")           # checks stay on: no NDEBUG
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")

set(KILN_SANITIZER "" CACHE STRING "-fsanitize= for all of Kiln: address,undefined,float-cast-overflow or thread")
add_library(kiln_options INTERFACE)
# With a sanitizer, a program that contains all libraries takes up to 320 MB of disk, and there are a hundred programs. So they
# share their libraries.
if(KILN_SANITIZER)
  set(KILN_LIBRARY_TYPE SHARED)
  set(hidden "")
else()
  set(KILN_LIBRARY_TYPE STATIC)
  set(hidden $<$<NOT:$<BOOL:$<TARGET_PROPERTY:KILN_SHOWS_NAMES>>>:-fvisibility=hidden>)
endif()
# -pthread everywhere: gRPC requires it, and a precompiled header is read only with the options with which it was made.
target_compile_options(kiln_options INTERFACE -Wall -Wextra -Wno-unused-parameter ${hidden} -pthread)
target_include_directories(kiln_options INTERFACE ${PROJECT_SOURCE_DIR})
# The sanitizer presets are compiled by Clang (CMakePresets.json), all others by GCC 12.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Debian's Abseil is compiled by GCC 12. Since version 18 Clang gives constrained templates other symbols than GCC 12.
  add_compile_options(-fclang-abi-compat=17)
  # std::stable_sort of GCC's library calls what the library itself deprecates.
  add_compile_options(-Wno-deprecated-declarations)
  # Precompiled headers must not contain times, or the compiler cache finds nothing that includes them.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
else()
  # With the sanitizers' checks in the code, GCC considers unused alternatives of a std::variant uninitialized. GCC 12 also
  # reports "text" + std::string as a write out of bounds (its bug 105651), and no longer suppresses that warning if the
  # standard library's header was precompiled, as it is for tests.
  if(KILN_SANITIZER)
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  # By default GCC collects garbage from 128 MB on, which takes up to a tenth of the time of a large unit.
  add_compile_options("SHELL:--param ggc-min-expand=200" "SHELL:--param ggc-min-heapsize=400000")
  set(KILN_TEST_WARNINGS -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(KILN_LIBRARY_TYPE STREQUAL "SHARED")
  target_compile_options(kiln_options INTERFACE -fvisibility=default -fno-semantic-interposition)
endif()
# Sanitizer builds check the most (proto/check): KILN_DCHECK is on, and tables validate themselves in every process.
if(KILN_SANITIZER OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_definitions(KILN_DEBUG_CHECKS)
endif()
if(KILN_SANITIZER)
  add_compile_definitions(KILN_VALIDATES)
  add_compile_options(-fsanitize=${KILN_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${KILN_SANITIZER})
  # Debian's LLVM, Protocol Buffers and Abseil are built without the type information that the vptr check needs.
  if(KILN_SANITIZER MATCHES "undefined")
    add_compile_options(-fno-sanitize=vptr)
    # Clang reads a function's type from the bytes before its address. Machine code that Kiln generates has no such bytes.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      add_compile_options(-fno-sanitize=function)
    endif()
    # AddressSanitizer detects the effect of a null pointer or an access beyond an object; these checks would add an eighth of
    # the compile time.
    if(KILN_SANITIZER MATCHES "address")
      add_compile_options(-fno-sanitize=null,object-size)
    endif()
  endif()
  # Detects errors that AddressSanitizer misses: an index above a vector's size but within its capacity, the front of an empty
  # vector.
  if(KILN_SANITIZER MATCHES "address")
    add_compile_definitions(_GLIBCXX_ASSERTIONS)
  endif()
  # ThreadSanitizer does not know Abseil's locks; this library tells it about them, and must be found before Abseil's own.
  if(KILN_SANITIZER MATCHES "thread")
    add_library(kiln_tsan_abseil SHARED ${PROJECT_SOURCE_DIR}/tests/sanitizers/tsan_abseil.cc)
    target_compile_options(kiln_tsan_abseil PRIVATE -fno-sanitize=thread -fvisibility=default)
    target_link_libraries(kiln_tsan_abseil PRIVATE ${CMAKE_DL_LIBS})
    target_link_libraries(kiln_options INTERFACE kiln_tsan_abseil)
    target_link_options(kiln_options INTERFACE LINKER:--no-as-needed $<TARGET_FILE:kiln_tsan_abseil>)
  endif()
endif()

option(KILN_COVERAGE "libraries that kiln_count_coverage names count which of their lines run; see tests/coverage" OFF)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # ccache refuses precompiled headers unless it may ignore changes of macros and times.
  set(KILN_CCACHE_SETTINGS CCACHE_SLOPPINESS=pch_defines,time_macros)
  # Paths are relative to this checkout, so that another clone finds what this one has compiled.
  if(NOT KILN_COVERAGE)
    list(APPEND KILN_CCACHE_SETTINGS CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
    add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${KILN_CCACHE_SETTINGS} ${CCACHE_PROGRAM})
endif()
find_program(LLD_PROGRAM NAMES ld.lld ld.lld-22)
if(LLD_PROGRAM)
  add_link_options(-fuse-ld=lld)
endif()
# Much of LLVM's and lld's archives is never called, and a part of LLVM's has debug information, which Kiln's release code does
# not have. Without both, programs are a quarter smaller and link as fast. Symbols are kept, for profilers and traces.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT KILN_SANITIZER AND NOT KILN_COVERAGE)
  add_link_options(LINKER:--gc-sections LINKER:--strip-debug)
endif()
# Two linkers at once fit into the memory of a small machine.
set_property(GLOBAL PROPERTY JOB_POOLS link=2)
set(CMAKE_JOB_POOL_LINK link)
