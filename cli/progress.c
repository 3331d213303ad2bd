// One line, written over itself.
#include "cli/progress.h"

#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/terminal.h"

enum { BAR_CELLS = 30, LEAST_COLUMNS = 50 };
#define PATIENCE_S 1.0
#define BETWEEN_S  0.1

struct progress progress_of_terminal(void)
{
    struct winsize size;
    bool wide = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
                size.ws_col >= LEAST_COLUMNS;
    return (struct progress){.terminal = isatty(STDERR_FILENO) && wide};
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void write_line(struct str text)
{
    struct error ignored = {0};
    (void)!terminal_write(STDERR_FILENO, text, &ignored);
}

static void draw(struct progress *p, ptrdiff_t done, ptrdiff_t total)
{
    char block[160];
    struct buf line = buf_over(block, sizeof block);
    buf_put_z(&line, "\r[");
    for (ptrdiff_t i = 0; i < BAR_CELLS; i++)
        buf_char(&line, i < done * BAR_CELLS / total ? '#' : '.');
    buf_printf(&line, "] %d of %d", (int)done, (int)total);
    write_line(buf_str(&line));
    p->shown = true;
}

void progress_end(struct progress *p)
{
    if (p->shown)
        write_line(STR("\r\033[K"));
    p->shown = false;
}

void progress_show(void *progress, ptrdiff_t done, ptrdiff_t total)
{
    struct progress *p = progress;
    double now = seconds();
    if (p->started <= 0)
        p->started = now;
    if (done == total)
        progress_end(p);
    bool due = now - p->started >= PATIENCE_S && now - p->written >= BETWEEN_S;
    if (!p->terminal || !due || done == total)
        return;
    p->written = now;
    draw(p, done, total);
}
