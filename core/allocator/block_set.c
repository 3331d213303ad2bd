// See block_set.h. The treap has no parent links: every operation walks down from the root, and
// split and join turn pointers to links instead of recursing.
#include "core/allocator/block_set.h"

#include "core/base/compiler.h"

// Priorities are unique, which keeps this a total order even if a recording overlaps itself.
static bool before(const struct block *a, const struct block *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    return a->address != b->address ? a->address < b->address : a->priority < b->priority;
}

void treap_add(struct block **root, struct block *b)
{
    while (*root && (*root)->priority > b->priority)
        root = before(b, *root) ? &(*root)->left : &(*root)->right;
    struct block *rest = *root, **left = &b->left, **right = &b->right;
    *root = b;
    while (rest) {
        if (before(rest, b)) {
            *left = rest;
            left = &rest->right;
            rest = *left;
        } else {
            *right = rest;
            right = &rest->left;
            rest = *right;
        }
    }
    *left = *right = NULL;
}

void treap_remove(struct block **root, struct block *b)
{
    while (*root != b) {
        ASSERT(*root);
        root = before(b, *root) ? &(*root)->left : &(*root)->right;
    }
    struct block *left = b->left, *right = b->right;
    while (left && right) {
        if (left->priority > right->priority) {
            *root = left;
            root = &left->right;
            left = *root;
        } else {
            *root = right;
            root = &right->left;
            right = *root;
        }
    }
    *root = left ? left : right;
}

struct block *treap_find(struct block *root, uint64_t key, uint64_t address)
{
    struct block *best = NULL;
    while (root) {
        if (root->key < key || (root->key == key && root->address < address)) {
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
        root = before(b, root) ? root->left : root->right;
    return root;
}

static struct block *treap_find_before(struct block *root, uint64_t key, uint64_t address)
{
    struct block *best = NULL;
    while (root) {
        if (root->key < key || (root->key == key && root->address < address)) {
            best = root;
            root = root->right;
        } else {
            root = root->left;
        }
    }
    return best;
}

struct block *block_set_find(const struct block_set *s, uint64_t bytes, uint64_t address)
{
    unsigned bucket = block_set_bucket(bytes);
    struct block *found = treap_find(s->roots[bucket], bytes, address);
    if (found)
        return found;
    bucket = block_set_next_bucket(s, bucket + 1);
    if (bucket == SET_CLASSES)
        return NULL;
    for (found = s->roots[bucket]; found->left;)
        found = found->left;
    return found;
}

struct block *block_set_after(const struct block_set *s, const struct block *b)
{
    return block_set_find(s, b->key, b->address + 1);
}

bool block_set_holds(const struct block_set *s, const struct block *b)
{
    return treap_holds(s->roots[block_set_bucket(b->key)], b);
}

struct block *block_set_before(const struct block_set *s, uint64_t bytes, uint64_t address)
{
    unsigned bucket = block_set_bucket(bytes);
    struct block *found = treap_find_before(s->roots[bucket], bytes, address);
    while (!found && bucket-- > 0)
        found = treap_find_before(s->roots[bucket], UINT64_MAX, UINT64_MAX);
    return found;
}
