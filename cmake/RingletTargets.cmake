# The sources of a room see the public headers and the rooms named after MAY_INCLUDE, and nothing else of the project. Each room has an
# include folder of its own in the build tree, which holds one link to the room. So an include of any other room does not compile.

add_library(ringlet_flags INTERFACE)
# Contraction (computing a*b+c with one rounding) differs between compilers and CPUs, but results must not.
target_compile_options(ringlet_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
# This makes a switch without a default fail to compile if it lacks a value of its enumeration.
target_compile_options(ringlet_flags INTERFACE -Werror=switch)
# __FILE__ is relative to the source folder: messages name no folder of the machine that built them, and ccache knows a file in any clone.
target_compile_options(ringlet_flags INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 mistakes std::string's own operator+ for a copy between overlapping buffers.
  target_compile_options(ringlet_flags INTERFACE -Wno-restrict)
  if(RINGLET_SANITIZE)
    # With sanitizers g++ 12 also warns about uninitialised variables in its own <regex>.
    target_compile_options(ringlet_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(RINGLET_WARNINGS_AS_ERRORS)
  target_compile_options(ringlet_flags INTERFACE -Werror)
endif()
if(RINGLET_SANITIZE)
  target_compile_options(ringlet_flags INTERFACE -fsanitize=${RINGLET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ringlet_flags INTERFACE -fsanitize=${RINGLET_SANITIZE})
  # They do not see that an empty optional is read, nor an index behind a span's end; GCC's library does, where it is used.
  target_compile_definitions(ringlet_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()

# ringlet_fuzzed(TARGET...): compiles targets so that the fuzzers know which of their code has run.
function(ringlet_fuzzed)
  if(RINGLET_FUZZERS)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endforeach()
  endif()
endfunction()

# ringlet_waits(TARGET...): compiles targets without optimisation in builds with sanitizers, where optimising takes long. These targets
# mostly wait for sockets, processes or the core.
function(ringlet_waits)
  if(RINGLET_SANITIZE)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE -O0)
    endforeach()
  endif()
endfunction()

add_library(ringlet_public INTERFACE)
target_include_directories(ringlet_public INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)

# ringlet_may_include(TARGET PUBLIC
# PRIVATE ROOM...): lets the sources of a target include the headers of these rooms.
function(ringlet_may_include target scope)
  foreach(room IN LISTS ARGN)
    if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${room})
      message(FATAL_ERROR "${target} may include '${room}', which is no folder of the project")
    endif()
    string(REPLACE / - name ${room})
    set(root ${PROJECT_BINARY_DIR}/rooms/${name})
    cmake_path(GET room PARENT_PATH parent)
    file(MAKE_DIRECTORY ${root}/${parent})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${room} ${root}/${room} SYMBOLIC)
    target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${root}>)
  endforeach()
endfunction()

# ringlet_layer(tools/launch STATIC MAY_INCLUDE native): makes a library `ringlet_launch`, named after the last part of the room's path. The
# caller adds its sources with target_sources. Without STATIC it is an object library.
function(ringlet_layer room)
  cmake_parse_arguments(PARSE_ARGV 1 LAYER "STATIC" "" "MAY_INCLUDE")
  cmake_path(GET room FILENAME name)
  if(LAYER_STATIC)
    add_library(ringlet_${name} STATIC)
  else()
    add_library(ringlet_${name} OBJECT)
  endif()
  target_link_libraries(ringlet_${name} PRIVATE ringlet_flags PUBLIC ringlet_public)
  ringlet_may_include(ringlet_${name} PUBLIC ${room} ${LAYER_MAY_INCLUDE})
  if(EMSCRIPTEN AND NOT name STREQUAL "simd")
    # A page downloads this code, so it is optimised for size. Most time is spent in the kernels, which are optimised for speed. Emscripten leaves
    # small functions where they are when it optimises for size; inlined, they make the code smaller, and vectors' loops over bytes fast.
    target_compile_options(ringlet_${name} PRIVATE -Oz -sINLINING_LIMIT=0)
  endif()
endfunction()
