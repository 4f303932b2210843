# XGrammar's C++ core, compiled from its sources as one library (docs/dependencies.md says why and how it is fetched).
set(BRIAR_THIRD_PARTY_DIR ${PROJECT_SOURCE_DIR}/build/third_party)
set(XGRAMMAR_DIR ${BRIAR_THIRD_PARTY_DIR}/xgrammar-0.2.9)
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/fetch_xgrammar.sh ${BRIAR_THIRD_PARTY_DIR}
                COMMAND_ERROR_IS_FATAL ANY)

# Its own CMakeLists.txt always builds the Python bindings.
file(GLOB_RECURSE XGRAMMAR_SOURCES ${XGRAMMAR_DIR}/cpp/*.cc)
list(FILTER XGRAMMAR_SOURCES EXCLUDE REGEX "/cpp/tvm_ffi/")
add_library(briar_xgrammar STATIC ${XGRAMMAR_SOURCES})
target_include_directories(briar_xgrammar SYSTEM PUBLIC ${XGRAMMAR_DIR}/include ${XGRAMMAR_DIR}/3rdparty/dlpack/include)
target_include_directories(briar_xgrammar PRIVATE ${XGRAMMAR_DIR}/3rdparty/picojson)
target_compile_definitions(briar_xgrammar PRIVATE XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0
                           XGRAMMAR_LOG_CUSTOMIZE=1)
# Optimised in every preset: a debug build of it takes seconds for a schema.
target_compile_options(briar_xgrammar PRIVATE -w -O2 -fno-strict-aliasing)
target_link_libraries(briar_xgrammar PRIVATE Threads::Threads)
