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

// Up from the first, which is nobody's right child and has no left one, nor has anyone on its way.
void treap_add_first(struct block **root, struct block *first, struct block *b)
{
    struct block *parent = first, *below = NULL;
    while (parent && parent->priority < b->priority) {
        below = parent;
        parent = parent->parent;
    }
    *(parent ? &parent->left : root) = b;
    b->parent = parent;
    b->left = NULL;
    b->right = below;
    if (below)
        below->parent = b;
}

void treap_remove(struct block **root, struct block *b)
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

struct block *treap_second(const struct block *first)
{
    struct block *next = first->right;
    while (next && next->left)
        next = next->left;
    return next ? next : first->parent;
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
        root = block_is_before(b, root) ? root->left : root->right;
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
    return bucket < SET_CLASSES ? s->first[bucket] : NULL;
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
