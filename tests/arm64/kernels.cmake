# cmake -DSOURCE=<the project> -P: runs the kernels' tests on 64-bit Arm.
include(${CMAKE_CURRENT_LIST_DIR}/tools.cmake)
if(emulate)
  execute_process(COMMAND ${emulate} ${built}/tests/simd_kernels COMMAND_ERROR_IS_FATAL ANY)
endif()
