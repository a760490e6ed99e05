# Short forms that keep every folder's CMakeLists.txt a list of its parts.
include(GoogleTest)

include(KilnHeaders)

# A unit of compilation is sixteen sources of a library together: most of what a source costs are the headers that they
# share. Names in anonymous namespaces are unique within a library for that reason.
set(KILN_UNITY_SOURCES 16)

# kiln_library(NAME [STATIC] SOURCES… PUBLIC… PRIVATE…): a library; PUBLIC and PRIVATE are the libraries it may know. STATIC:
# even where others are shared, for what brings GoogleTest, of which a program has one. In folders that set KILN_HEADERS,
# what was precompiled is that target's.
function(kiln_library name)
  cmake_parse_arguments(A "STATIC" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(type ${KILN_LIBRARY_TYPE})
  if(A_STATIC)
    set(type STATIC)
  endif()
  add_library(${name} ${type} ${A_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${KILN_UNITY_SOURCES})
  target_precompile_headers(${name} REUSE_FROM ${KILN_HEADERS})
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:kiln_options> ${A_PUBLIC} PRIVATE ${A_PRIVATE})
endfunction()

# kiln_count_coverage(NAME): the library counts what runs of it, if that was asked for. Not optimised, since one
# instruction may otherwise be several lines, and without exceptions, of which Kiln throws none: each call would have a
# branch for them.
function(kiln_count_coverage name)
  if(KILN_COVERAGE)
    target_compile_options(${name} PRIVATE --coverage -fprofile-update=atomic -O0 -fno-exceptions)
    target_link_options(${name} PUBLIC --coverage)
  endif()
endfunction()

# kiln_test(NAME SOURCES… LIBRARIES… DATA dir): a GoogleTest program. DATA is passed as KILN_TEST_DATA. In folders that set
# KILN_TEST_HEADERS, what was precompiled is that target's.
function(kiln_test name)
  cmake_parse_arguments(A "" "DATA;TIMEOUT" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${KILN_UNITY_SOURCES})
  target_precompile_headers(${name} REUSE_FROM ${KILN_TEST_HEADERS})
  # GCC 12 takes "text" + std::string for a write out of bounds (its bug 105651), and no longer hides that when the
  # standard library's header was precompiled.
  target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overflow ${KILN_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE kiln_options ${A_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
  if(A_DATA)
    target_compile_definitions(${name} PRIVATE KILN_TEST_DATA="${A_DATA}")
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}")
endfunction()
