# SPDX-License-Identifier: Apache-2.0
# add_bpf_object(NAME SOURCE [INCLUDES DIR...] [DEFINES D...]) compiles an eBPF program to ${CMAKE_BINARY_DIR}/bpf/NAME.bpf.o.
# The object carries BTF and relocates itself to the running kernel (CO-RE), so one build serves every host.

find_program(CLANG NAMES clang REQUIRED)
find_program(LLVM_STRIP NAMES llvm-strip llvm-strip-14 llvm-strip-15 llvm-strip-16 llvm-strip-18 REQUIRED)

# How eBPF is compiled, here and where a run builds a transport from outside the tree.
file(READ ${CMAKE_CURRENT_LIST_DIR}/bpf_flags.txt BPF_FLAGS)
separate_arguments(BPF_FLAGS UNIX_COMMAND "${BPF_FLAGS}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/bpf_flags.txt)

function(add_bpf_object name source)
  cmake_parse_arguments(BPF "" "" "INCLUDES;DEFINES" ${ARGN})
  list(TRANSFORM BPF_DEFINES PREPEND "-D")
  list(TRANSFORM BPF_INCLUDES PREPEND "-I")
  set(input ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  set(output ${CMAKE_BINARY_DIR}/bpf/${name}.bpf.o)
  set(dependencies ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.d)
  # The multiarch folder holds asm/types.h on Debian and Ubuntu; -target bpf does not look there by itself.
  set(multiarch "")
  if(CMAKE_LIBRARY_ARCHITECTURE)
    set(multiarch -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  endif()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/bpf
    COMMAND ${CLANG} ${BPF_FLAGS} ${multiarch} ${BPF_INCLUDES} ${BPF_DEFINES}
            -MD -MF ${dependencies} -MT ${output} -c ${input} -o ${output}
    COMMAND ${LLVM_STRIP} -g ${output} # drops DWARF, keeps BTF
    DEPENDS ${input}
    DEPFILE ${dependencies}
    VERBATIM)
  add_custom_target(${name}.bpf ALL DEPENDS ${output})
endfunction()
