# Part of an installation: the files that name its folders. With the prefix /usr the configuration is in /etc, elsewhere in
# PREFIX/etc.
set(bin ${CMAKE_INSTALL_PREFIX}/bin)
set(etc ${CMAKE_INSTALL_PREFIX}/etc)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(etc /etc)
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/systemd/kilnd.service.in ${KILN_BINARY_DIR}/kilnd.service @ONLY)
file(INSTALL ${KILN_BINARY_DIR}/kilnd.service DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
file(INSTALL ${CMAKE_CURRENT_LIST_DIR}/kilnd.toml DESTINATION ${etc}/kiln)
