# cmake -DFILES=a;b;… -DOUTPUT=header -P Fingerprint.cmake: writes a digest of the files' contents as a header.
set(digests "")
foreach(file IN LISTS FILES)
  file(SHA256 ${file} digest)
  string(APPEND digests ${digest})
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUTPUT} "#define KILN_COMPILER_FINGERPRINT \"${digest}\"\n")
