// Runner of the unit tests of one binary. ctest gives each binary its own process, so a crash costs
// one stage and not the run.
#include "tests/support/t.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct test *first;
static int failures_in_test;
static struct arena arena;
static void *block;

enum { BLOCK_BYTES = 256 << 20 };

void test_register(struct test *t)
{
    t->next = first;
    first = t;
}

void test_failed(const char *file, int line, const char *format, ...)
{
    failures_in_test++;
    printf("%s:%d: ", file, line);
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

void test_check_u64(const char *file, int line, const char *text, uint64_t got, uint64_t wanted)
{
    if (got != wanted)
        test_failed(file, line, "%s is %llu, not %llu", text, (unsigned long long)got,
                    (unsigned long long)wanted);
}

void test_check_str(const char *file, int line, const char *text, struct str got, struct str wanted)
{
    if (!str_equal(got, wanted))
        test_failed(file, line, "%s is '%.*s', not '%.*s'", text, STR_ARGS(got), STR_ARGS(wanted));
}

struct arena *test_arena(void)
{
    if (!block)
        block = malloc(BLOCK_BYTES);
    arena = arena_over(block, BLOCK_BYTES, NULL);
    return &arena;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (struct test *t = first; t; t = t->next) {
        if (argc > 1 && !strstr(t->name, argv[1]))
            continue;
        failures_in_test = 0;
        t->run();
        if (failures_in_test)
            printf("FAILED %s\n", t->name);
        failures_in_test ? failed++ : passed++;
    }
    free(block);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
