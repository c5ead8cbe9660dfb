# `cmake --install` and `find_package(Ringlet)`: targets Ringlet::ringlet (C++) and Ringlet::c (C), the headers, the `ringlet` command.
# `pkg-config ringlet` is for C.
include(CMakePackageConfigHelpers)

install(TARGETS ringlet ringlet_c EXPORT RingletTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ringlet_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/ringlet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT RingletTargets NAMESPACE Ringlet:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Ringlet)
configure_package_config_file(cmake/RingletConfig.cmake.in ${PROJECT_BINARY_DIR}/RingletConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Ringlet)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RingletConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RingletConfig.cmake ${PROJECT_BINARY_DIR}/RingletConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Ringlet)

file(RELATIVE_PATH RINGLET_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/ringlet.pc.in ${PROJECT_BINARY_DIR}/ringlet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ringlet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
