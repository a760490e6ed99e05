# Headers that many sources include, parsed once: the most used parts of the standard library and of Abseil, and GoogleTest for
# tests. None of Kiln's own headers: a change in one would recompile everything.
# A source must still include what it uses; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows missing includes.
set(KILN_COMMON_HEADERS
    <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <optional> <set> <string>
    <string_view> <thread> <utility> <variant> <vector>
    <absl/algorithm/container.h> <absl/base/thread_annotations.h> <absl/container/flat_hash_map.h>
    <absl/container/flat_hash_set.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/synchronization/mutex.h>
    <absl/time/clock.h> <absl/time/time.h> <absl/types/span.h>)

# Optimizing a test costs up to as much time again as compiling it, and a test spends its time in the code under test and in the
# libraries that compute references. Those are optimized.
set(KILN_TEST_OPTIONS -O0)

# Kiln throws no exceptions, and code without exception cleanup compiles in 5/6 of the time. A source that must catch a
# library's exceptions is compiled separately, with KILN_CATCHES_EXCEPTIONS.
set(KILN_LIBRARY_OPTIONS -fPIC -fno-exceptions)
set(KILN_CATCHES_EXCEPTIONS SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -fexceptions)

# GCC reads a precompiled header only with the options with which it was made: one for libraries and tools, one for tests.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
function(kiln_precompiled_headers name)
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE kiln_options)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set_target_properties(${name} PROPERTIES
      CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/precompile_anew;${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
endfunction()
# kiln_precompiled_library_headers(NAME OPTIONS… HEADERS…): the targets that use the headers are compiled with OPTIONS, too.
function(kiln_precompiled_library_headers name)
  cmake_parse_arguments(A "" "" "OPTIONS;HEADERS" ${ARGN})
  kiln_precompiled_headers(${name} ${A_HEADERS})
  set_target_properties(${name} PROPERTIES KILN_COMPILE_OPTIONS "${KILN_LIBRARY_OPTIONS};${A_OPTIONS}"
    POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE ${KILN_LIBRARY_OPTIONS} ${A_OPTIONS})
endfunction()
kiln_precompiled_library_headers(kiln_headers HEADERS ${KILN_COMMON_HEADERS})
set(KILN_HEADERS kiln_headers)
# Light libraries compute little: server, drivers and clients mostly wait. Under a sanitizer, optimizing them would take a third
# of the build time.
if(KILN_SANITIZER)
  set(KILN_LIGHT_OPTIONS -O0)
  kiln_precompiled_library_headers(kiln_light_headers OPTIONS ${KILN_LIGHT_OPTIONS} HEADERS ${KILN_COMMON_HEADERS})
  set(KILN_LIGHT_HEADERS kiln_light_headers)
else()
  set(KILN_LIGHT_OPTIONS "")
  set(KILN_LIGHT_HEADERS kiln_headers)
endif()
# kiln_precompiled_test_headers(NAME MORE…): the headers of tests, and MORE that the tests of some folders share.
function(kiln_precompiled_test_headers name)
  kiln_precompiled_headers(${name} ${KILN_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h> ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest)
  target_compile_options(${name} PRIVATE -fPIE ${KILN_TEST_OPTIONS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endfunction()
kiln_precompiled_test_headers(kiln_test_headers)
set(KILN_TEST_HEADERS kiln_test_headers)
if(KILN_COVERAGE)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # libraries that count coverage are compiled with different options
endif()
