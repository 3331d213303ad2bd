// What clang's setjmp and longjmp call under WebAssembly: the first notes which call of a function
// it stands in, the second throws, and each function that a throw comes through asks whether it
// was meant.
#include <setjmp.h>

enum { LONGJMP_TAG = 1 }; // clang's, of C's jumps; 0 is C++'s exceptions

void __wasm_setjmp(struct wasm_jump *jump, unsigned place, void *call);
unsigned __wasm_setjmp_test(const struct wasm_jump *jump, const void *call);
void __wasm_longjmp(struct wasm_jump *jump, int value);

void __wasm_setjmp(struct wasm_jump *jump, unsigned place, void *call)
{
    jump->call = call;
    jump->place = place;
}

unsigned __wasm_setjmp_test(const struct wasm_jump *jump, const void *call)
{
    return jump->call == call ? jump->place : 0;
}

void __wasm_longjmp(struct wasm_jump *jump, int value)
{
    jump->thrown.jump = jump;
    jump->thrown.value = value ? value : 1;
    __builtin_wasm_throw(LONGJMP_TAG, &jump->thrown);
}
