# The tool that runs passes on graphs in text form.
add_executable(irtool irtool.cc)
target_link_libraries(irtool PRIVATE kiln_options kiln_compiler kiln_graph kiln_kernel kiln_partition)

# irtool_test(NAME REGEX ARGUMENT…): its output must match.
function(irtool_test name regex)
  add_test(NAME irtool_${name} COMMAND irtool ${ARGN})
  set_tests_properties(irtool_${name} PROPERTIES PASS_REGULAR_EXPRESSION "${regex}" LABELS compiler)
endfunction()
set(IRTOOL_EXAMPLE ${CMAKE_CURRENT_SOURCE_DIR}/testdata/loss.txt)
irtool_test(list "differentiate.*simplify.*partition.*kernels" --list)
irtool_test(pass "mul float32\\[4\\] %0 %0.*neg float32" --pass simplify ${IRTOOL_EXAMPLE})
irtool_test(partition "group" --to partition ${IRTOOL_EXAMPLE})
irtool_test(kernels "float32" ${IRTOOL_EXAMPLE})
irtool_test(unknown_pass "there is no pass frobnicate" --pass frobnicate ${IRTOOL_EXAMPLE})
irtool_test(unknown_file "cannot read" ${IRTOOL_EXAMPLE}.missing)
