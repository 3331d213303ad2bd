// See scope.h.
#include "core/models/scope.h"

// What holds a value (struct var, place); a name's is its number, from 1.
enum { HELD_ELSEWHERE, HELD_BY_NOBODY = -1 };

static bool is_unnamed(struct var v)
{
    return v.place == HELD_BY_NOBODY;
}

struct var unnamed(struct var v)
{
    v.place = HELD_BY_NOBODY;
    return v;
}

struct var borrowed(struct var v)
{
    v.place = HELD_ELSEWHERE;
    return v;
}

struct var taken(struct var v)
{
    return borrowed(is_unnamed(v) ? v : var_share(v));
}

struct var same(struct var v)
{
    return unnamed(taken(v));
}

static void leave(struct graph *g, struct var v)
{
    if (is_unnamed(v))
        var_drop(g, &v);
}

struct var after(struct graph *g, struct var result, struct var x)
{
    leave(g, x);
    return unnamed(result);
}

struct var after_two(struct graph *g, struct var result, struct var a, struct var b)
{
    leave(g, a);
    return after(g, result, b);
}

struct scope scope_in(struct graph *g)
{
    struct scope s; // its names are given by local()
    s.graph = g;
    s.name_count = 0;
    return s;
}

struct var local(struct scope *s, struct var value)
{
    ASSERT(s->name_count < SCOPE_NAMES);
    struct var named = taken(value);
    s->names[s->name_count++] = named;
    named.place = s->name_count;
    return named;
}

void assign(struct scope *s, struct var *name, struct var value)
{
    ASSERT(name->place > 0 && name->place <= s->name_count);
    struct var *held = &s->names[name->place - 1];
    struct var fresh = taken(value);
    if (s->graph->stopped) {
        var_drop(s->graph, &fresh);
        fresh.storage = held->storage;
    } else {
        var_drop(s->graph, held);
    }
    *held = fresh;
    fresh.place = name->place;
    *name = fresh;
}

void forget(struct scope *s, struct var *name)
{
    ASSERT(name->place > 0 && name->place <= s->name_count);
    if (s->graph->stopped)
        return;
    var_drop(s->graph, &s->names[name->place - 1]);
    name->storage = NULL;
}

void ends(struct scope *s)
{
    for (int i = 0; i < s->name_count; i++)
        var_drop(s->graph, &s->names[i]);
}

struct var returns(struct scope *s, struct var value)
{
    struct var out = taken(value);
    ends(s);
    return unnamed(out);
}
