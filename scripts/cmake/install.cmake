# What `cmake --install` puts where: tools, launcher, libraries, one C header (with the C++ wrapper and two optional
# ones beside it), a CMake package with the components runtime and compiler, a pkg-config file. All of it may be moved
# as a whole: nothing names the prefix.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The installed ingot.h is one file: the DLPack structs, which runtime/ uses too, stand in it.
file(READ ${CMAKE_SOURCE_DIR}/vm/include/ingot/ingot.h header)
file(READ ${CMAKE_SOURCE_DIR}/runtime/dlpack_abi.h structs)
string(REPLACE "#include \"runtime/dlpack_abi.h\"\n" "${structs}" header "${header}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/include/ingot/ingot.h CONTENT "${header}")
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/vm/include/ingot/ingot.h ${CMAKE_SOURCE_DIR}/runtime/dlpack_abi.h)
install(FILES ${CMAKE_BINARY_DIR}/include/ingot/ingot.h vm/include/ingot/ingot.hpp vm/include/ingot/dlpack.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ingot COMPONENT runtime)

set_target_properties(ingot PROPERTIES EXPORT_NAME runtime)
set_target_properties(ingot_archive PROPERTIES EXPORT_NAME runtime_static)
target_link_libraries(ingot_archive INTERFACE $<INSTALL_INTERFACE:ingot::zstd>
  $<$<BOOL:${INGOT_SIGNATURES}>:$<INSTALL_INTERFACE:ingot::sodium>> Threads::Threads stdc++ m)
target_link_options(ingot_archive INTERFACE ${INGOT_WRAP_OPTIONS})
install(TARGETS ingot ingot_archive EXPORT ingot-runtime
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(TARGETS vm-run vm-inspect vm-bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(TARGETS ingot-launcher ingot-launcher-dynamic ingot-measure-worker
  RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/ingot COMPONENT runtime)
install(PROGRAMS ${INGOT_CROSS_LAUNCHERS} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/ingot COMPONENT runtime)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ingot)
install(EXPORT ingot-runtime NAMESPACE ingot:: DESTINATION ${package} COMPONENT runtime)

if(INGOT_BUILD_COMPILER)
  install(FILES compiler/include/ingot/compiler.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ingot COMPONENT compiler)
  install(TARGETS ingot_compiler_shared EXPORT ingot-compiler
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler)
  install(TARGETS vm-compile vm-tune RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)
  install(EXPORT ingot-compiler NAMESPACE ingot:: DESTINATION ${package} COMPONENT compiler)
endif()

configure_package_config_file(scripts/cmake/ingotConfig.cmake.in ${CMAKE_BINARY_DIR}/cmake/ingotConfig.cmake
  INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/ingotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/cmake/ingotConfig.cmake ${CMAKE_BINARY_DIR}/cmake/ingotConfigVersion.cmake
  DESTINATION ${package} COMPONENT runtime)

# Relative to the .pc file, so that it moves along.
file(RELATIVE_PATH INGOT_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(INGOT_PC_SODIUM "")
if(INGOT_SIGNATURES)
  set(INGOT_PC_SODIUM -lsodium)
endif()
list(TRANSFORM INGOT_WRAP_OPTIONS REPLACE "^LINKER:" "-Wl," OUTPUT_VARIABLE INGOT_PC_WRAP)
configure_file(scripts/cmake/ingot-runtime.pc.in ${CMAKE_BINARY_DIR}/cmake/ingot-runtime.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cmake/ingot-runtime.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)
