// See block_set.h. Split and join turn pointers to links instead of recursing.
#include "core/allocator/block_set.h"

#include "core/base/compiler.h"

void treap_add(struct block **root, struct block *b)
{
    struct block *parent = NULL;
    while (*root && (*root)->priority > b->priority) {
        parent = *root;
        root = block_is_before(b, parent) ? &parent->left : &parent->right;
    }
    struct block *rest = *root, **left = &b->left, **right = &b->right;
    struct block *left_parent = b, *right_parent = b;
    *root = b;
    b->parent = parent;
    while (rest) {
        if (block_is_before(rest, b)) {
            *left = rest;
            rest->parent = left_parent;
            left_parent = rest;
            left = &rest->right;
            rest = *left;
        } else {
            *right = rest;
            rest->parent = right_parent;
            right_parent = rest;
            right = &rest->left;
            rest = *right;
        }
    }
    *left = *right = NULL;
}

void treap_remove(struct block **root, const struct block *b)
{
    struct block *parent = b->parent, *left = b->left, *right = b->right;
    if (parent)
        root = parent->left == b ? &parent->left : &parent->right;
    while (left && right) {
        struct block *upper = left->priority > right->priority ? left : right;
        *root = upper;
        upper->parent = parent;
        parent = upper;
        root = upper == left ? &left->right : &right->left;
        *(upper == left ? &left : &right) = *root;
    }
    *root = left ? left : right;
    if (*root)
        (*root)->parent = parent;
}

static inline bool lies_before(const struct block *b, uint64_t key, uint64_t address)
{
    return b->key != key ? b->key < key : b->address < address;
}

struct block *treap_find(struct block *root, uint64_t key, uint64_t address)
{
    struct block *best = NULL;
    while (root) {
        if (lies_before(root, key, address)) {
            root = root->right;
        } else {
            best = root;
            root = root->left;
        }
    }
    return best;
}

bool treap_holds(const struct block *root, const struct block *b)
{
    while (root && root != b)
        root = block_is_before(b, root) ? root->left : root->right;
    return root;
}

static struct block *treap_find_before(struct block *root, uint64_t key, uint64_t address)
{
    struct block *best = NULL;
    while (root) {
        if (lies_before(root, key, address)) {
            best = root;
            root = root->right;
        } else {
            root = root->left;
        }
    }
    return best;
}

void bucket_add(struct bucket *k, struct block *b)
{
    int at = k->count;
    bool full = at == SET_FRONT;
    if ((full || k->rest) && block_is_before(k->front[at - 1], b)) {
        treap_add(&k->rest, b);
        return;
    }
    if (full)
        treap_add(&k->rest, k->front[--at]);
    else
        k->count++;
    for (; at > 0 && block_is_before(b, k->front[at - 1]); at--)
        k->front[at] = k->front[at - 1];
    k->front[at] = b;
}

// The front is not left empty.
void bucket_remove(struct bucket *k, const struct block *b)
{
    int at = 0;
    while (at < k->count && k->front[at] != b)
        at++;
    if (at == k->count) {
        treap_remove(&k->rest, b);
        return;
    }
    for (k->count--; at < k->count; at++)
        k->front[at] = k->front[at + 1];
    if (k->count)
        return;
    struct block *first = k->rest;
    while (first->left)
        first = first->left;
    treap_remove(&k->rest, first);
    k->front[0] = first;
    k->count = 1;
}

struct block *bucket_find(const struct bucket *k, uint64_t key, uint64_t address)
{
    for (int i = 0; i < k->count; i++)
        if (!lies_before(k->front[i], key, address))
            return k->front[i];
    return treap_find(k->rest, key, address);
}

static struct block *bucket_find_before(const struct bucket *k, uint64_t key, uint64_t address)
{
    struct block *found = treap_find_before(k->rest, key, address);
    for (int i = k->count - 1; i >= 0 && !found; i--)
        if (lies_before(k->front[i], key, address))
            found = k->front[i];
    return found;
}

struct block *block_set_find(const struct block_set *s, uint64_t bytes, uint64_t address)
{
    unsigned bucket = block_set_bucket(bytes);
    struct block *found = bucket_find(&s->buckets[bucket], bytes, address);
    if (found)
        return found;
    bucket = block_set_next_bucket(s, bucket + 1);
    return bucket < SET_CLASSES ? s->buckets[bucket].front[0] : NULL;
}

struct block *block_set_after(const struct block_set *s, const struct block *b)
{
    return block_set_find(s, b->key, b->address + 1);
}

bool block_set_holds(const struct block_set *s, const struct block *b)
{
    const struct bucket *k = &s->buckets[block_set_bucket(b->key)];
    for (int i = 0; i < k->count; i++)
        if (k->front[i] == b)
            return true;
    return treap_holds(k->rest, b);
}

struct block *block_set_before(const struct block_set *s, uint64_t bytes, uint64_t address)
{
    unsigned bucket = block_set_bucket(bytes);
    struct block *found = bucket_find_before(&s->buckets[bucket], bytes, address);
    while (!found && bucket-- > 0)
        found = bucket_find_before(&s->buckets[bucket], UINT64_MAX, UINT64_MAX);
    return found;
}
