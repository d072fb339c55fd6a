# SPDX-License-Identifier: Apache-2.0
# add_engine_library(NAME) makes lib/libNAME.so, which Python loads, of c_api.cpp and of the static library NAME_core.
# It needs no C++ library of the machine that it is carried to.
function(add_engine_library name)
  add_library(${name} SHARED c_api.cpp)
  target_link_libraries(${name} PRIVATE ${name}_core)
  target_compile_options(${name} PRIVATE -fPIC -Wconversion -Wpedantic)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  if(NOT ROUNDABOUT_SANITIZE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
