// The few compiler extensions the project uses, each behind one name, and ASSERT. An ASSERT guards
// against our own defects and traps in every build; what a user can cause is an error, never an
// assert.
#ifndef FATHOM_BASE_COMPILER_H
#define FATHOM_BASE_COMPILER_H

#define MUST_USE              __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, arg) __attribute__((format(printf, fmt, arg)))
#define NO_RETURN             __attribute__((noreturn))
#define ALWAYS_INLINE         inline __attribute__((always_inline)) // where it was measured

#define COUNT_OF(array) ((ptrdiff_t)(sizeof(array) / sizeof((array)[0])))

#define ASSERT(condition)     \
    do {                      \
        if (!(condition))     \
            __builtin_trap(); \
    } while (0)

#endif
