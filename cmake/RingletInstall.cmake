# Sets up `cmake --install` and `find_package(Ringlet)`. They offer the targets Ringlet::ringlet (C++) and Ringlet::c (C), the headers and
# the `ringlet` command. `pkg-config ringlet` is for C.
#
# There are three components: library, c and command. Each can be installed alone once its target has been built (`cmake --install DIR
# --component library`). Without --component everything that has been built is installed, and the other parts are named in messages.
include(CMakePackageConfigHelpers)

# ringlet_check_built(component target "what it is"): installing a part that was not built is an error if the part was asked for by name, or
# if it is the library, which the other parts need. Otherwise the part is left out.
function(ringlet_check_built component target part)
  install(CODE "
    if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
      if(CMAKE_INSTALL_COMPONENT OR \"${component}\" STREQUAL library)
        message(FATAL_ERROR \"There is no ${part} to install yet. First run: cmake --build ${PROJECT_BINARY_DIR} --target ${target}\")
      endif()
      message(STATUS \"Left out, since it was not built: ${part} (target ${target})\")
    endif()" COMPONENT ${component})
endfunction()
ringlet_check_built(library ringlet "C++ library")
ringlet_check_built(c ringlet_c "C library")
ringlet_check_built(command ringlet_command "ringlet command")

install(TARGETS ringlet EXPORT RingletTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library OPTIONAL)
install(TARGETS ringlet_c EXPORT RingletCTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c NAMELINK_COMPONENT c OPTIONAL)
install(TARGETS ringlet_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command OPTIONAL)
install(DIRECTORY include/ringlet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(DIRECTORY include/ringlet/c DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ringlet COMPONENT c)
install(FILES include/ringlet/ringlet.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ringlet COMPONENT c)

# The package offers those parts whose files are installed.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Ringlet)
set(RINGLET_LIBRARY_FILE ${CMAKE_STATIC_LIBRARY_PREFIX}ringlet${CMAKE_STATIC_LIBRARY_SUFFIX})
set(RINGLET_C_LIBRARY_FILE ${CMAKE_SHARED_LIBRARY_PREFIX}ringlet${CMAKE_SHARED_LIBRARY_SUFFIX})
configure_package_config_file(cmake/RingletConfig.cmake.in ${PROJECT_BINARY_DIR}/RingletConfig.cmake
                              INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RingletConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT RingletTargets NAMESPACE Ringlet:: DESTINATION ${package_folder} COMPONENT library)
install(EXPORT RingletCTargets NAMESPACE Ringlet:: DESTINATION ${package_folder} COMPONENT c)
foreach(component library c)
  install(FILES ${PROJECT_BINARY_DIR}/RingletConfig.cmake ${PROJECT_BINARY_DIR}/RingletConfigVersion.cmake
          DESTINATION ${package_folder} COMPONENT ${component})
endforeach()

file(RELATIVE_PATH RINGLET_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/ringlet.pc.in ${PROJECT_BINARY_DIR}/ringlet.pc @ONLY)
install(CODE "
  if(EXISTS \"$<TARGET_FILE:ringlet_c>\")
    file(INSTALL \"${PROJECT_BINARY_DIR}/ringlet.pc\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
  endif()" COMPONENT c)
