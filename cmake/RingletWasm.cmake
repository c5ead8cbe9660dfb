# Settings of the Emscripten build. Native builds do not use this file.

# em++ searches only its own system folders, so header-only libraries are reached through links in the build tree.
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
find_path(xxhash_INCLUDE_DIR xxhash.h PATHS /usr/include /usr/local/include /opt/homebrew/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
file(CREATE_LINK ${xxhash_INCLUDE_DIR}/xxhash.h ${wasm_headers}/xxhash.h SYMBOLIC)
find_file(XXHASH_HEADER xxhash.h PATHS ${header_folders} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
file(CREATE_LINK ${XXHASH_HEADER} ${wasm_headers}/xxhash.h SYMBOLIC)
find_path(RINGLET_UTF8CPP utf8/unchecked.h PATHS ${header_folders} PATH_SUFFIXES utf8cpp NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
file(CREATE_LINK ${RINGLET_UTF8CPP}/utf8 ${wasm_headers}/utf8 SYMBOLIC)
if(RINGLET_TESTS)
  ringlet_link_headers(catch2 catch.hpp)
  ringlet_link_headers(dlpack dlpack.h)
endif()
if(RINGLET_EXAMPLES)
  ringlet_link_headers(Eigen Core)
endif()
include_directories(SYSTEM ${wasm_headers})

# Debian's Emscripten finds its JavaScript tools only with this setting.
if(EXISTS /usr/share/nodejs/acorn)
  set(CMAKE_CXX_LINKER_LAUNCHER ${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs)
endif()

# The compiler is a script with an unusual name, so ccache must be told that it is Clang.
set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
if(CCACHE_PROGRAM)
  list(INSERT CMAKE_CXX_COMPILER_LAUNCHER 3 CCACHE_COMPILERTYPE=clang)
endif()

# ringlet_wasm_module(train_text a.cpp b.cpp): builds bin/train_text.mjs and bin/train_text.wasm. The first is an ES module whose default
# export makes an instance with Ringlet's exports (wasm/cpp/exports.hpp) and those functions of the sources that are marked RINGLET_EXPORT.
# Its argument has the `host` (wasm/cpp/imports.js) and either `wasmBinary` or `instantiateWasm`, because the module looks for no file
# itself.
function(ringlet_wasm_module name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE ringlet_flags ringlet_wasm ringlet_core ringlet_simd)
  target_link_options(${name} PRIVATE -O3 --no-entry -fwasm-exceptions -sMODULARIZE -sEXPORT_ES6 -sUSE_ES6_IMPORT_META=0
    -sENVIRONMENT=web,worker -sALLOW_MEMORY_GROWTH -sFILESYSTEM=0 -sTOTAL_STACK=1MB
    "SHELL:-sEXPORTED_RUNTIME_METHODS=UTF8ToString,stringToUTF8,lengthBytesUTF8"
    "SHELL:--js-library ${PROJECT_SOURCE_DIR}/wasm/cpp/imports.js")
  set_target_properties(${name} PROPERTIES SUFFIX .mjs LINK_DEPENDS ${PROJECT_SOURCE_DIR}/wasm/cpp/imports.js)
endfunction()
