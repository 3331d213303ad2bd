// <setjmp.h> for WebAssembly, which this libc lacks: clang turns setjmp and longjmp into a throw of
// WebAssembly's exceptions and a catch (-wasm-enable-sjlj), and calls web/jump.c.
#ifndef FATHOM_WASM_SETJMP_H
#define FATHOM_WASM_SETJMP_H

typedef struct wasm_jump {
    void *call;     // of the function that called setjmp
    unsigned place; // there
    struct {
        void *jump;
        int value;
    } thrown;
} jmp_buf[1];

int setjmp(jmp_buf) __attribute__((returns_twice));
void longjmp(jmp_buf, int) __attribute__((noreturn));

#endif
