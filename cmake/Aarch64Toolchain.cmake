# Compiles for 64-bit Arm Linux on another Linux machine, and runs the results under an emulator. All headers and libraries come from the
# folder that scripts/setup --arm64 makes, and none from the building machine.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../scripts/arm64-sysroot --where OUTPUT_VARIABLE CMAKE_SYSROOT OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
find_program(QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static NO_CMAKE_FIND_ROOT_PATH)
find_program(AARCH64_COMPILER NAMES ${CMAKE_CXX_COMPILER} NO_CMAKE_FIND_ROOT_PATH)
if(NOT QEMU_AARCH64 OR NOT AARCH64_COMPILER OR NOT EXISTS ${CMAKE_SYSROOT}/packages.txt)
  message(FATAL_ERROR "The compiler for 64-bit Arm, its emulator or its libraries are not here: run scripts/setup --arm64")
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR ${QEMU_AARCH64} -L ${CMAKE_SYSROOT})

# Programs such as protoc run on the building machine. Libraries and headers are those of the other machine.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
