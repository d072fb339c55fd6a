# SPDX-License-Identifier: Apache-2.0
# libbpf and what its static archive needs. Newer elfutils compress with zstd; older ones must not link it.
include_guard(GLOBAL)

find_library(ZSTD_LIBRARY zstd)
add_library(static_libbpf INTERFACE)
target_link_libraries(static_libbpf INTERFACE bpf elf z)
if(ZSTD_LIBRARY)
  target_link_libraries(static_libbpf INTERFACE zstd)
endif()
