// Building the tree, and writing it as JSON.
#include "core/emit/document.h"

#include "core/base/json_out.h"

struct node *document_in(struct arena *a)
{
    return NEW(a, struct node, 1);
}

static struct node *append(struct node *parent, struct arena *a, struct str key)
{
    struct node *child = NEW(a, struct node, 1);
    child->key = key;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    return child;
}

static bool is_index(struct str part)
{
    return part.n && char_is_digit(part.p[0]);
}

static struct node *child_at(struct node *parent, struct arena *a, struct str part)
{
    ptrdiff_t wanted = 0, index = 0;
    for (ptrdiff_t i = 0; is_index(part) && i < part.n; i++)
        wanted = 10 * wanted + (part.p[i] - '0');
    for (struct node *n = parent->first; n; n = n->next, index++)
        if (parent->kind == NODE_LIST ? index == wanted : str_equal(n->key, part))
            return n;
    ASSERT(parent->kind == NODE_MAP || index == wanted);
    return append(parent, a, parent->kind == NODE_MAP ? part : STR_NONE);
}

struct node *document_at(struct node *root, struct arena *a, struct str path)
{
    struct node *at = root;
    for (struct str_cut c = str_cut(path, '.');; c = str_cut(c.tail, '.')) {
        if (!c.head.n)
            return at;
        if (is_index(c.head))
            at->kind = NODE_LIST;
        at = child_at(at, a, c.head);
        if (!c.found)
            return at;
    }
}

static void put_json(struct json_out *j, const struct node *n)
{
    if (n->kind == NODE_TEXT) {
        json_out_str(j, n->value);
        return;
    }
    if (n->kind == NODE_LITERAL) {
        json_out_literal(j, n->value);
        return;
    }
    bool map = n->kind == NODE_MAP;
    if (map)
        json_out_object(j);
    else
        json_out_array(j);
    for (const struct node *child = n->first; child; child = child->next) {
        if (map)
            json_out_key_str(j, child->key);
        put_json(j, child);
    }
    if (map)
        json_out_object_end(j);
    else
        json_out_array_end(j);
}

void document_json(struct buf *out, const struct node *root)
{
    struct json_out j = json_out_to(out);
    put_json(&j, root);
    json_out_end(&j);
}
