# cmake -DSOURCE=<the project> -P: builds the programs for 64-bit Arm that the tests beside this file run.
include(${CMAKE_CURRENT_LIST_DIR}/tools.cmake)
if(NOT emulate)
  return()
endif()
# scripts/cross-arm64 may build there at the same time.
set(alone flock ${SOURCE}/build/arm64.lock)
execute_process(COMMAND ${alone} ${CMAKE_COMMAND} --preset arm64 -DRINGLET_TESTS=ON WORKING_DIRECTORY ${SOURCE} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${alone} ${CMAKE_COMMAND} --build ${built} --target simd_kernels train_text native_rank COMMAND_ERROR_IS_FATAL ANY)
