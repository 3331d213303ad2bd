// libyaml's events drive a stack of open mappings and sequences; nothing recurses and no tree is
// built. Every node's key is remembered with its place, also those that add no value, and the
// sorted list shows duplicates at the end.
#include "host/formats/yaml_in.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "host/formats/key_path.h"

struct level {
    bool sequence;
    bool value_next; // in a mapping: the key has been read
    ptrdiff_t index; // in a sequence
    ptrdiff_t path_bytes;
};

struct node {
    struct str key, where;
    ptrdiff_t order;
};

struct reading {
    struct settings *settings;
    struct str source;
    struct key_path path;
    struct level levels[FLATTEN_MAX_DEPTH];
    int depth;
    int documents;
    bool done;
    struct node *nodes;
    ptrdiff_t node_count, node_capacity;
};

static struct str place(struct arena *a, struct str source, yaml_mark_t mark)
{
    return str_format(a, "%.*s:%zu:%zu", STR_ARGS(source), mark.line + 1, mark.column + 1);
}

static struct str scalar_of(const yaml_event_t *event)
{
    return (struct str){(const char *)event->data.scalar.value,
                        (ptrdiff_t)event->data.scalar.length};
}

static bool is_null(const yaml_event_t *event)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (ptrdiff_t i = 0; i < COUNT_OF(words); i++)
        if (str_is(scalar_of(event), words[i]))
            return true;
    return false;
}

// Only these three kinds of event are nodes; an alias is refused before it gets here.
static bool is_node(const yaml_event_t *event)
{
    return event->type == YAML_SCALAR_EVENT || event->type == YAML_SEQUENCE_START_EVENT ||
           event->type == YAML_MAPPING_START_EVENT;
}

static bool check_plain(const yaml_event_t *event, struct str where, struct error *e)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor)
        return FAIL(e, BAD_INPUT, where, "anchors such as '&%.60s' are not accepted",
                    (const char *)anchor);
    if (tag)
        return FAIL(e, BAD_INPUT, where, "tags such as '%.60s' are not accepted",
                    (const char *)tag);
    return true;
}

static bool read_key(struct reading *r, const yaml_event_t *event, struct str where,
                     struct error *e)
{
    if (event->type != YAML_SCALAR_EVENT)
        return FAIL(e, BAD_INPUT, where, "a key must be text, not a list or a mapping");
    r->levels[r->depth - 1].value_next = true;
    return key_path_push(&r->path, scalar_of(event), where, e);
}

static void grow_nodes(struct reading *r)
{
    ptrdiff_t capacity = r->node_capacity ? 2 * r->node_capacity : 32;
    struct node *grown = NEW(r->settings->arena, struct node, capacity);
    if (r->node_count)
        memcpy(grown, r->nodes, (size_t)r->node_count * sizeof *grown);
    r->nodes = grown;
    r->node_capacity = capacity;
}

static bool remember_node(struct reading *r, struct str where, struct error *e)
{
    if (r->node_count == SETTINGS_MAX)
        return FAIL(e, BAD_INPUT, where, "more than %d values are given", SETTINGS_MAX);
    if (r->node_count == r->node_capacity)
        grow_nodes(r);
    struct str key = str_join(r->settings->arena, key_path_str(&r->path), STR_NONE);
    r->nodes[r->node_count] = (struct node){key, where, r->node_count};
    r->node_count++;
    return true;
}

static bool add_scalar(struct reading *r, const yaml_event_t *event, struct error *e)
{
    const struct node *node = &r->nodes[r->node_count - 1];
    struct str value = scalar_of(event);
    if (is_null(event))
        return true;
    if (value.n && memchr(value.p, 0, (size_t)value.n))
        return FAIL(e, BAD_INPUT, node->where, "this value holds a NUL character");
    struct setting item = {node->key, str_join(r->settings->arena, value, STR_NONE), node->where};
    return settings_add(r->settings, item, e);
}

static bool open_level(struct reading *r, bool sequence, struct str where, struct error *e)
{
    if (r->depth == FLATTEN_MAX_DEPTH)
        return FAIL(e, BAD_INPUT, where, "this is nested deeper than %d levels", FLATTEN_MAX_DEPTH);
    r->levels[r->depth++] = (struct level){.sequence = sequence, .path_bytes = r->path.n};
    return true;
}

// A value has ended: back to the key of the level that holds it.
static void end_value(struct reading *r)
{
    if (r->depth == 0)
        return;
    struct level *level = &r->levels[r->depth - 1];
    level->value_next = false;
    level->index++;
    key_path_cut(&r->path, level->path_bytes);
}

static bool read_top(struct reading *r, const yaml_event_t *event, struct str where,
                     struct error *e)
{
    if (event->type == YAML_MAPPING_START_EVENT)
        return open_level(r, false, where, e);
    if (event->type == YAML_SCALAR_EVENT && is_null(event))
        return true;
    return FAIL(e, BAD_INPUT, where, "the top level must be a mapping of 'key: value' lines");
}

static bool read_node(struct reading *r, const yaml_event_t *event, struct error *e)
{
    struct str where = place(r->settings->arena, r->source, event->start_mark);
    if (!check_plain(event, where, e))
        return false;
    if (r->depth == 0)
        return read_top(r, event, where, e);
    const struct level *level = &r->levels[r->depth - 1];
    if (!level->sequence && !level->value_next)
        return read_key(r, event, where, e);
    if (level->sequence && !key_path_push_index(&r->path, level->index, where, e))
        return false;
    if (!remember_node(r, where, e))
        return false;
    if (event->type != YAML_SCALAR_EVENT)
        return open_level(r, event->type == YAML_SEQUENCE_START_EVENT, where, e);
    bool ok = add_scalar(r, event, e);
    end_value(r);
    return ok;
}

static bool read_event(struct reading *r, const yaml_event_t *event, struct error *e)
{
    struct arena scratch = *r->settings->arena;
    if (is_node(event))
        return read_node(r, event, e);
    if (event->type == YAML_ALIAS_EVENT)
        return FAIL(e, BAD_INPUT, place(&scratch, r->source, event->start_mark),
                    "aliases such as '*%.60s' are not accepted",
                    (const char *)event->data.alias.anchor);
    if (event->type == YAML_DOCUMENT_START_EVENT && ++r->documents > 1)
        return FAIL(e, BAD_INPUT, place(&scratch, r->source, event->start_mark),
                    "there is more than one document in this file");
    if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT) {
        r->depth--;
        end_value(r);
    }
    r->done = event->type == YAML_STREAM_END_EVENT;
    return true;
}

static bool parse_failed(struct reading *r, const yaml_parser_t *parser, struct str text,
                         struct error *e)
{
    struct arena scratch = *r->settings->arena;
    if (parser->error == YAML_MEMORY_ERROR)
        return FAIL(e, NO_MEMORY, r->source, "there is not enough memory to parse this YAML");
    const char *problem = parser->problem ? parser->problem : "unknown problem";
    if (parser->error == YAML_READER_ERROR)
        return FAIL(e, BAD_INPUT, r->source, "this is not valid YAML: %s at byte %zu", problem,
                    parser->problem_offset);
    yaml_mark_t mark = parser->problem_mark;
    FAIL(e, BAD_INPUT, place(&scratch, r->source, mark), "this is not valid YAML: %s", problem);
    if (mark.index < (size_t)text.n && memchr(text.p + mark.index, '\t', 1))
        HINT(e, "YAML is indented with spaces, not tabs");
    return false;
}

static int compare_nodes(const void *left, const void *right)
{
    const struct node *a = left, *b = right;
    if (a->key.n != b->key.n)
        return a->key.n < b->key.n ? -1 : 1;
    int order = memcmp(a->key.p, b->key.p, (size_t)a->key.n);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static bool check_unique(struct reading *r, struct error *e)
{
    const struct node *again = NULL, *first = NULL;
    if (r->node_count)
        qsort(r->nodes, (size_t)r->node_count, sizeof *r->nodes, compare_nodes);
    for (ptrdiff_t i = 1; i < r->node_count; i++) {
        const struct node *node = &r->nodes[i];
        bool same = str_equal(node->key, node[-1].key);
        if (same && (!again || node->order < again->order)) {
            again = node;
            first = node - 1;
        }
    }
    if (!again)
        return true;
    return FAIL(e, BAD_INPUT, again->where, "'%.*s' is given twice, first at %.*s",
                (int)(again->key.n < 80 ? again->key.n : 80), again->key.p, STR_ARGS(first->where));
}

bool yaml_flatten(struct settings *s, struct str text, struct str source, struct error *e)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return FAIL(e, NO_MEMORY, source, "there is not enough memory to parse this YAML");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.n ? text.p : ""),
                                 (size_t)text.n);
    struct reading r = {.settings = s, .source = source};
    ptrdiff_t before = s->count;
    bool ok = key_path_init(&r.path, STR_NONE, source, e);
    while (ok && !r.done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            ok = parse_failed(&r, &parser, text, e);
            break;
        }
        ok = read_event(&r, &event, e);
        yaml_event_delete(&event);
    }
    ok = ok && check_unique(&r, e);
    if (!ok)
        s->count = before;
    yaml_parser_delete(&parser);
    return ok;
}
