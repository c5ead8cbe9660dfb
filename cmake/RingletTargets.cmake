# Layers. A layer's sources see the public vocabulary and the layers named after MAY_INCLUDE, and nothing else of the project: each layer's
# folder is reached through a folder of links in the build tree, so that an include that points up does not compile.

add_library(ringlet_flags INTERFACE)
# Contraction (a*b+c in one rounding) differs between compilers and CPUs; results must not.
target_compile_options(ringlet_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
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
if(RINGLET_FUZZERS)
  # What is fuzzed tells where it has been.
  target_compile_options(ringlet_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

add_library(ringlet_public INTERFACE)
target_include_directories(ringlet_public INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)

foreach(layer simd core transport native wasm tests)
  set(root ${PROJECT_BINARY_DIR}/layers/${layer})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${layer} ${root}/${layer} SYMBOLIC)
endforeach()

# ringlet_layer(core MAY_INCLUDE simd): an object library `ringlet_core` whose sources the caller adds with target_sources.
function(ringlet_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 LAYER "" "" "MAY_INCLUDE")
  add_library(ringlet_${name} OBJECT)
  target_link_libraries(ringlet_${name} PRIVATE ringlet_flags PUBLIC ringlet_public)
  target_include_directories(ringlet_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/layers/${name}>)
  if(EMSCRIPTEN AND NOT name STREQUAL "simd")
    # What a page has to download; the time goes into the kernels.
    target_compile_options(ringlet_${name} PRIVATE -Os)
  endif()
  foreach(below IN LISTS LAYER_MAY_INCLUDE)
    target_include_directories(ringlet_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/layers/${below}>)
  endforeach()
endfunction()
