# Writes the header OUT with the commit of the checkout ROOT, unless COMMIT names it. The file changes only with the commit, so that
# a build without a new commit compiles nothing.
if(NOT COMMIT)
  execute_process(COMMAND git -C ${ROOT} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(COMMIT "unknown")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define KILN_COMMIT \"@COMMIT@\"\n" @ONLY)
