# What the Emscripten build does in its own way. Nothing here when the build is native.

# em++ searches only its own system folders; header-only libraries are reached by links in the build tree.
set(wasm_headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${wasm_headers})
set(header_folders /usr/include /usr/include/eigen3 /usr/local/include /opt/homebrew/include /opt/homebrew/include/eigen3)
function(ringlet_link_headers folder header)
  find_path(${folder}_INCLUDE_DIR ${folder}/${header} PATHS ${header_folders} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  if(NOT ${folder}_INCLUDE_DIR)
    message(FATAL_ERROR "no ${folder}/${header}; run scripts/setup, or set ${folder}_INCLUDE_DIR to the folder that holds it")
  endif()
  file(CREATE_LINK ${${folder}_INCLUDE_DIR}/${folder} ${wasm_headers}/${folder} SYMBOLIC)
endfunction()
ringlet_link_headers(xsimd xsimd.hpp)
ringlet_link_headers(protozero pbf_reader.hpp)
find_file(XXHASH_HEADER xxhash.h PATHS ${header_folders} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
file(CREATE_LINK ${XXHASH_HEADER} ${wasm_headers}/xxhash.h SYMBOLIC)
if(RINGLET_TESTS)
  ringlet_link_headers(catch2 catch.hpp)
  ringlet_link_headers(dlpack dlpack.h)
endif()
if(RINGLET_EXAMPLES)
  ringlet_link_headers(Eigen Core)
  ringlet_link_headers(fmt format.h)
endif()
include_directories(SYSTEM ${wasm_headers})

# Debian's Emscripten finds its own JavaScript tools only so.
if(EXISTS /usr/share/nodejs/acorn)
  set(CMAKE_CXX_LINKER_LAUNCHER ${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs)
endif()

# The compiler is a script of another name.
set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
if(CCACHE_PROGRAM)
  list(INSERT CMAKE_CXX_COMPILER_LAUNCHER 3 CCACHE_COMPILERTYPE=clang)
endif()
