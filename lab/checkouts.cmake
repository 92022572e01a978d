# The programs of rivals from checkouts: stele_durabletx_MEMORY and stele_viper.

# checkout_program(TARGET SOURCES DIR HEADER OPTION): a program that includes headers of a checkout; an error when HEADER is not in it.
function(checkout_program target sources dir header option)
  if(NOT EXISTS "${dir}/${header}")
    message(FATAL_ERROR "${option}=${dir} has no ${header}: give the folder of a checkout, or -D${option}= to build without it")
  endif()
  list(TRANSFORM sources PREPEND bench/rivals/)
  add_executable(${target} ${sources})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(${target} PRIVATE stele_compare stele_options)
  add_dependencies(stele_compare_programs ${target})
endfunction()

add_custom_target(stele_compare_programs)
if(STELE_DURABLETX OR STELE_VIPER)
  file(STRINGS /proc/cpuinfo processor_flags REGEX "^flags" LIMIT_COUNT 1)
endif()

if(STELE_DURABLETX)
  set(flush PWB_IS_CLFLUSH)
  if(processor_flags MATCHES " clwb")
    set(flush PWB_IS_CLWB)
  elseif(processor_flags MATCHES " clflushopt")
    set(flush PWB_IS_CLFLUSHOPT)
  endif()
  set_source_files_properties(bench/rivals/durabletx.cc PROPERTIES COMPILE_OPTIONS -std=c++17)  # its headers are not C++20
  foreach(memory IN ITEMS quadra:quadra/QuadraFC:Quadra quadra-vr:quadra/QuadraVRFC:Quadra trinity:trinity/TrinityFC:Trinity
                          trinity-vr:trinity/TrinityVRFC:Trinity trinity-tl2:trinity/TrinityTL2:Trinity trinity-vr-tl2:trinity/TrinityVRTL2:Trinity)
    string(REPLACE ":" ";" parts ${memory})
    list(GET parts 0 name)
    list(GET parts 1 path)
    list(GET parts 2 class)
    get_filename_component(space ${path} NAME)
    string(TOLOWER ${space} space)
    checkout_program(stele_durabletx_${name} "durabletx.cc;durabletx_process.cc" "${STELE_DURABLETX}" ptms/${path}.hpp STELE_DURABLETX)
    target_include_directories(stele_durabletx_${name} SYSTEM PRIVATE "${STELE_DURABLETX}")
    target_compile_definitions(stele_durabletx_${name} PRIVATE ${flush} STELE_PTM_HEADER=<ptms/${path}.hpp> STELE_PTM_NAMESPACE=${space}
                               STELE_PTM_CLASS=${class})
    if(name MATCHES "-vr")
      target_compile_definitions(stele_durabletx_${name} PRIVATE STELE_PTM_HAS_REPLICA)
    endif()
  endforeach()
  set(durabletx_programs "${PROJECT_BINARY_DIR}/stele_durabletx_")
endif()

if(STELE_VIPER)
  find_path(STELE_CONCURRENTQUEUE_HEADERS concurrentqueue.h PATH_SUFFIXES concurrentqueue concurrentqueue/moodycamel)
  if(NOT STELE_CONCURRENTQUEUE_HEADERS)
    message(FATAL_ERROR "STELE_VIPER needs concurrentqueue.h: install libconcurrentqueue-dev, or give -DSTELE_CONCURRENTQUEUE_HEADERS=DIR")
  elseif(NOT processor_flags MATCHES " clwb")
    message(FATAL_ERROR "STELE_VIPER needs a processor with clwb, which this one lacks; configure with -DSTELE_VIPER=")
  endif()
  checkout_program(stele_viper viper.cc "${STELE_VIPER}" include/viper/viper.hpp STELE_VIPER)
  target_include_directories(stele_viper SYSTEM PRIVATE "${STELE_VIPER}/include" ${STELE_CONCURRENTQUEUE_HEADERS})
  target_compile_options(stele_viper PRIVATE -O3 -march=native -mclwb)  # as its own build
  set(viper_program "${PROJECT_BINARY_DIR}/stele_viper")
endif()

set_source_files_properties(bench/rivals/checkouts.cc PROPERTIES COMPILE_DEFINITIONS
                            "STELE_DURABLETX_PROGRAMS=\"${durabletx_programs}\";STELE_VIPER_PROGRAM=\"${viper_program}\"")
