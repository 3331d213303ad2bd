# clang 19 with Debian's wasi-libc, as a reactor: a module without main. -nostdlibinc keeps the native
# /usr/include out, so that a header that does not belong here is an error. setjmp, which this libc lacks, is
# WebAssembly's exceptions: toolchain/wasm32/setjmp.h and web/jump.c. The stack that comes by itself, 64 KiB, is too
# small for a plan.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS_INIT "-mbulk-memory -mexception-handling -mllvm -wasm-enable-sjlj -nostdlibinc -isystem ${CMAKE_CURRENT_LIST_DIR}/wasm32 -isystem /usr/include/wasm32-wasi")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-mexec-model=reactor -Wl,--stack-first,-z,stack-size=262144,--strip-all -Wl,-mllvm,-wasm-enable-sjlj")
