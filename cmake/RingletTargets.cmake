# Rooms. The sources of a room see the public headers and the rooms named after MAY_INCLUDE, and nothing else of the project: each room is
# reached through an include folder of its own in the build tree, which holds one link to it, so that an include that points up does not compile.

add_library(ringlet_flags INTERFACE)
# Contraction (a*b+c in one rounding) differs between compilers and CPUs; results must not.
target_compile_options(ringlet_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
# An enumeration's new value fails to compile where a switch without a default lacks it.
target_compile_options(ringlet_flags INTERFACE -Werror=switch)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 takes std::string's own operator+ for an overlapping copy.
  target_compile_options(ringlet_flags INTERFACE -Wno-restrict)
  if(RINGLET_SANITIZE)
    # And, instrumenting, variables of its own <regex> for uninitialised.
    target_compile_options(ringlet_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(RINGLET_WARNINGS_AS_ERRORS)
  target_compile_options(ringlet_flags INTERFACE -Werror)
endif()
if(RINGLET_SANITIZE)
  target_compile_options(ringlet_flags INTERFACE -fsanitize=${RINGLET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ringlet_flags INTERFACE -fsanitize=${RINGLET_SANITIZE})
endif()

# ringlet_fuzzed(TARGET...): what a fuzzer reaches tells it where it has been.
function(ringlet_fuzzed)
  if(RINGLET_FUZZERS)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endforeach()
  endif()
endfunction()

# ringlet_waits(TARGET...): what waits for sockets, processes or the core. Where sanitizers slow the compiler down, optimising it takes longer
# than it saves.
function(ringlet_waits)
  if(RINGLET_SANITIZE)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE -O0)
    endforeach()
  endif()
endfunction()

add_library(ringlet_public INTERFACE)
target_include_directories(ringlet_public INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)

# ringlet_may_include(TARGET PUBLIC|PRIVATE ROOM...): lets the sources of a target include the headers of these rooms.
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

# ringlet_layer(tools/launch STATIC MAY_INCLUDE native): a library `ringlet_launch`, named after the last part of the room's path, whose sources
# the caller adds with target_sources. Without STATIC it is an object library.
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
    # What a page has to download; the time goes into the kernels.
    target_compile_options(ringlet_${name} PRIVATE -Os)
  endif()
endfunction()
