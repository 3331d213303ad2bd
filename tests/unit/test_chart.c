// Pictures: whatever is written in them stays inside, and what happened is drawn.
#include "core/draw/chart.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "tests/support/t.h"

enum { POINTS = 4, WIDTH = 960, LETTER = 8 }; // a letter of DejaVu Sans at 13 is 7.7 on average

static const uint64_t rising[POINTS] = {GIB, 2 * GIB, 3 * GIB, 4 * GIB};

static struct chart chart_of(const char *name, ptrdiff_t layers)
{
    struct chart c = {
        .title = "a title", .time_axis = "events", .layer_count = layers, .points = POINTS};
    for (ptrdiff_t i = 0; i < layers; i++)
        c.layers[i] = (struct chart_layer){name, "#123456", "#", rising};
    return c;
}

// Lasts until the next.
static const char *svg_of(const struct chart *charts, ptrdiff_t count)
{
    struct arena *a = test_arena();
    struct buf b = buf_in(a);
    chart_svg(&b, charts, count, NULL);
    return str_z(a, buf_str(&b));
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

// Every text as wide as its letters, between the edges and above the lower one.
static int texts_outside(const char *svg)
{
    int outside = 0;
    long height = strtol(strstr(svg, "viewBox=\"0 0 960 ") + 17, NULL, 10);
    for (const char *at = svg; (at = strstr(at, "<text x=\"")); at++) {
        const char *tag_end = strchr(at, '>'), *end = strstr(at, "</text>");
        char *rest;
        double x = strtod(at + 9, &rest), y = strtod(rest + 5, NULL);
        const char *anchor = strstr(at, "text-anchor=\"end\"");
        bool right = anchor && anchor < tag_end;
        double width = (double)LETTER * (double)(end - tag_end - 1);
        if ((right ? x - width < 0 : x + width > (double)WIDTH) || y > (double)height)
            outside++;
    }
    return outside;
}

static const char long_name[] = "a name of more than a hundred letters, which no row of a legend "
                                "has room for beside the square "
                                "that shows its colour, so that it is cut";

TEST(a_legend_stays_inside)
{
    static const char *const names[] = {"x", "parameters and more of them", long_name};
    for (ptrdiff_t i = 0; i < COUNT_OF(names); i++)
        for (ptrdiff_t layers = 1; layers <= CHART_MAX_LAYERS; layers++) {
            struct chart c = chart_of(names[i], layers);
            c.line = (struct chart_line){"reserved by torch", "#111", rising, POINTS};
            c.limit_bytes = 5 * GIB;
            const char *svg = svg_of(&c, 1);
            if (texts_outside(svg))
                test_failed(__FILE__, __LINE__, "%td layers of '%s': %d texts are outside", layers,
                            names[i], texts_outside(svg));
        }
}

TEST(a_title_is_cut_from_the_left)
{
    char title[400];
    memset(title, 'a', sizeof title);
    memcpy(title + sizeof title - 20, "/snapshot<1>.pickle", 20);
    struct chart c = chart_of("x", 1);
    c.title = title;
    const char *svg = svg_of(&c, 1);
    const char *cut = strstr(svg, "…aaa"), *end = strstr(svg, "/snapshot&lt;1&gt;.pickle</text>");
    CHECK(cut && end && end - cut > 40 && end - cut < 80);
}

// The line and the limit are drawn and named; a limit far above says so instead.
TEST(lines_of_a_chart)
{
    struct chart c = chart_of("x", 2);
    c.line = (struct chart_line){"reserved by torch", "#111", rising, POINTS};
    c.limit_bytes = 10 * GIB;
    const char *svg = svg_of(&c, 1);
    CHECK_U64((uint64_t)count_of(svg, "<polyline"), 1);
    CHECK_U64((uint64_t)count_of(svg, "stroke-dasharray"), 2); // in the picture and in the legend
    CHECK(strstr(svg, ">reserved by torch</text>") != NULL);
    CHECK(strstr(svg, ">limit: 10.00 GiB</text>") != NULL);
    CHECK_U64(chart_top(&c), 10 * GIB);
    c.limit_bytes = 80 * GIB;
    svg = svg_of(&c, 1);
    CHECK_U64((uint64_t)count_of(svg, "stroke-dasharray"), 1);
    CHECK(strstr(svg, ">limit: 80.00 GiB, above the picture</text>") != NULL);
    CHECK_U64(chart_top(&c), 8 * GIB);
}

TEST(marks_are_round)
{
    static const struct {
        uint64_t bytes;
        const char *mark;
    } rows[] = {{3 * GIB, ">1.50 GiB<"},    {139 * GIB, ">120 GiB<"}, {448 * MIB, ">300 MiB<"},
                {1800 * MIB, ">1.75 GiB<"}, {900 * KIB, ">200 KiB<"}, {0, "a title"}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        const uint64_t values[POINTS] = {rows[i].bytes, 0, 0, rows[i].bytes};
        struct chart c = chart_of("x", 1);
        c.layers[0].values = values;
        if (!strstr(svg_of(&c, 1), rows[i].mark))
            test_failed(__FILE__, __LINE__, "row %td has no mark %s", i, rows[i].mark);
    }
}

TEST(two_charts_and_a_failure)
{
    struct chart charts[2] = {chart_of("x", 1), chart_of("x", 1)};
    charts[1].failed = true;
    charts[1].failed_point = 2;
    const char *svg = svg_of(charts, 2);
    CHECK_U64((uint64_t)count_of(svg, "<polygon"), 2);
    CHECK_U64((uint64_t)count_of(svg, ">out of memory<"), 1);
    CHECK_U64((uint64_t)texts_outside(svg), 0);
}
