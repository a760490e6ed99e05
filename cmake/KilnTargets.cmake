# Short forms, so that each folder's CMakeLists.txt is a list of its parts.
include(GoogleTest)

include(KilnHeaders)

# A compilation unit is 32 sources of a library together, because the headers that they share are most of a source's
# compile time. This requires that names in anonymous namespaces are unique within a library.
set(KILN_UNITY_SOURCES 32)

# kiln_compiled_in_units(NAME HEADERS): compiles the target's sources as units, with the precompiled headers and the options of
# the target HEADERS.
function(kiln_compiled_in_units name headers)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${KILN_UNITY_SOURCES}
    POSITION_INDEPENDENT_CODE OFF)
  target_precompile_headers(${name} REUSE_FROM ${headers})
  get_target_property(options ${headers} KILN_COMPILE_OPTIONS)
  target_compile_options(${name} PRIVATE ${options})
endfunction()

# kiln_library(NAME [STATIC] SOURCES… PUBLIC… PRIVATE…): a library; PUBLIC and PRIVATE are the libraries that it may use.
# STATIC: static even if others are shared, for libraries that contain GoogleTest, of which a program must have only one. In
# folders that set KILN_HEADERS, that target's precompiled headers are used. Every library may assert invariants
# (proto/check).
function(kiln_library name)
  cmake_parse_arguments(A "STATIC" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(type ${KILN_LIBRARY_TYPE})
  if(A_STATIC)
    set(type STATIC)
  endif()
  add_library(${name} ${type} ${A_SOURCES})
  kiln_compiled_in_units(${name} ${KILN_HEADERS})
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:kiln_options> ${A_PUBLIC} PRIVATE ${A_PRIVATE})
  if(NOT name STREQUAL kiln_check)
    target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:kiln_check>)
  endif()
endfunction()

# kiln_program(NAME SOURCES… LIBRARIES…): an executable that is not a GoogleTest.
function(kiln_program name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  kiln_compiled_in_units(${name} ${KILN_HEADERS})
  target_link_libraries(${name} PRIVATE kiln_options ${A_LIBRARIES})
endfunction()

# kiln_module(NAME SOURCES… LIBRARIES…): a shared library that a test opens in place of a vendor's. All its symbols are visible.
function(kiln_module name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(${name} MODULE ${A_SOURCES})
  kiln_compiled_in_units(${name} ${KILN_HEADERS})
  target_link_libraries(${name} PRIVATE kiln_options ${A_LIBRARIES})
  set_target_properties(${name} PROPERTIES KILN_SHOWS_NAMES ON)
  target_compile_options(${name} PRIVATE -Wno-attributes)  # the precompiled header hides its names
endfunction()

# kiln_count_coverage(NAME): makes the library count executed lines, if coverage was requested. Not optimized, since one
# instruction may otherwise stand for several lines. Without exceptions, which Kiln does not throw: each call would have a
# branch for them.
function(kiln_count_coverage name)
  if(KILN_COVERAGE)
    target_compile_options(${name} PRIVATE --coverage -fprofile-update=atomic -O0 -fno-exceptions)
    target_link_options(${name} PUBLIC --coverage)
  endif()
endfunction()

# kiln_test_program(NAME SOURCES… LIBRARIES… [DATA dir]): a GoogleTest program that ctest does not run by itself. DATA is passed
# as KILN_TEST_DATA. In folders that set KILN_TEST_HEADERS, that target's precompiled headers are used.
function(kiln_test_program name)
  cmake_parse_arguments(A "" "DATA" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${KILN_UNITY_SOURCES})
  target_precompile_headers(${name} REUSE_FROM ${KILN_TEST_HEADERS})
  target_compile_options(${name} PRIVATE ${KILN_TEST_WARNINGS} ${KILN_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE kiln_options ${A_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
  if(A_DATA)
    target_compile_definitions(${name} PRIVATE KILN_TEST_DATA="${A_DATA}")
  endif()
endfunction()

# kiln_test(NAME SOURCES… LIBRARIES… [DATA dir] [SHARDS n] [COST seconds] [LABELS label] [NOT_WITH sanitizer…]): the GoogleTest
# program of a folder; a folder has only one, since each program is linked separately. ctest runs it as SHARDS processes, each
# with every n-th of its tests, and starts the tests with the highest COST first. Tables validate themselves (KILN_VALIDATE in
# proto/check). NOT_WITH: sanitizers (address, thread) with which tests/run skips it.
function(kiln_test name)
  cmake_parse_arguments(A "" "DATA;SHARDS;COST;LABELS" "SOURCES;LIBRARIES;NOT_WITH" ${ARGN})
  kiln_test_program(${name} SOURCES ${A_SOURCES} LIBRARIES ${A_LIBRARIES} DATA "${A_DATA}")
  if(NOT A_COST)
    set(A_COST 0)
  endif()
  list(TRANSFORM A_NOT_WITH PREPEND not_with_)
  set(labels ${A_LABELS} ${A_NOT_WITH})
  if(NOT A_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES COST ${A_COST} LABELS "${labels}" ENVIRONMENT KILN_VALIDATE=1)
    return()
  endif()
  foreach(shard RANGE 1 ${A_SHARDS})
    set(test ${name}_${shard}_of_${A_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES COST ${A_COST} LABELS "${labels}"
      ENVIRONMENT "KILN_VALIDATE=1;GTEST_TOTAL_SHARDS=${A_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
