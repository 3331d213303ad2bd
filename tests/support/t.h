// The test framework: TEST(name) registers itself, CHECK_* print both values and go on, and main
// runs what matches the name given (all without one), ending with "N passed, N failed".
#ifndef FATHOM_TESTS_T_H
#define FATHOM_TESTS_T_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/str.h"

struct test {
    const char *name;
    void (*run)(void);
    struct test *next;
};

void test_register(struct test *t);
void test_failed(const char *file, int line, const char *format, ...) PRINTF_LIKE(3, 4);
void test_check_u64(const char *file, int line, const char *text, uint64_t got, uint64_t wanted);
void test_check_str(const char *file, int line, const char *text, struct str got,
                    struct str wanted);

// A fresh arena for the running test; the earlier ones are given up.
struct arena *test_arena(void);

#define TEST(name)                                                 \
    static void name(void);                                        \
    static struct test test_of_##name = {#name, name, NULL};       \
    __attribute__((constructor)) static void register_##name(void) \
    {                                                              \
        test_register(&test_of_##name);                            \
    }                                                              \
    static void name(void)

#define CHECK(condition)                                       \
    do {                                                       \
        if (!(condition))                                      \
            test_failed(__FILE__, __LINE__, "%s", #condition); \
    } while (0)
#define CHECK_U64(got, wanted) test_check_u64(__FILE__, __LINE__, #got, got, wanted)
#define CHECK_STR(got, wanted) test_check_str(__FILE__, __LINE__, #got, got, str_from(wanted))

#endif
