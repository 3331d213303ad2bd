// See page.h. The file is large: it is put in as it is, not as an array in C.
#include "host/files/page.h"

#ifdef FATHOM_PAGE
__asm__(".section .rodata\n"
        ".balign 16\n"
        "fathom_page:\n"
        ".incbin \"" FATHOM_PAGE "\"\n"
        "fathom_page_end:\n"
        ".previous\n");
extern const char fathom_page[], fathom_page_end[];

static struct str page(void)
{
    return (struct str){fathom_page, fathom_page_end - fathom_page};
}
#else
static struct str page(void)
{
    return STR_NONE;
}
#endif

static void say_written(struct answer *a, const struct query *q, const struct attachment *file)
{
    if (q->json) {
        struct json_out j = json_out_to(&a->out);
        json_out_object(&j);
        json_out_field_str(&j, "file", file->path);
        json_out_field_u64(&j, "bytes", (uint64_t)file->content.n);
        json_out_object_end(&j);
        json_out_end(&j);
        return;
    }
    put_plain(&a->out, file->path);
    buf_put_z(&a->out, ": open it in a browser; it needs no network and sends nothing anywhere\n");
}

bool page_command(struct answer *a, const struct query *q, struct error *e)
{
    const struct setting *output = settings_find_z(q->settings, "output");
    struct attachment file = {output ? output->value : STR("fathom.html"), page()};
    if (!file.content.n) {
        FAIL(e, UNSUPPORTED, STR_NONE, "this program was built without the page");
        return HINT(e, "'make page' builds it with one");
    }
    answer_attach(a, q->arena, file);
    say_written(a, q, &file);
    return true;
}
