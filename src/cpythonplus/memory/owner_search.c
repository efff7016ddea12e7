/* Each object counts with all on its shortest path from a named root: with a list, and the module that has it.  Owners are
 * looked for from the roots of that tree downwards.  What counts is how much is reached through a node, or by how much that
 * has grown.
 *
 *     one child has most of it          the child is asked in its turn
 *     several have much                 each is asked
 *     it is spread over small ones      this node is an owner: a container, a cache, an object with many parts
 *     a chain without an end            its first node is: a linked list
 *
 * (Memory Analyzer of Eclipse calls them accumulation points.)  Modules, classes and frames only give names.
 *
 * What would be freed with an owner follows from dominators.  They are not asked for owners: what two have, as a set of tasks
 * and the event that these wait for, is neither's.
 */
#include "owner_search.h"

#include <errno.h>

#include "../_base/copy_memory.h"

#define CHAIN 24
#define HELD_BYTES 16384
#define SPREAD 0.5 /* of what a node has, that no child has alone */

static int64_t
amount_of(const struct plus_owners_search *it, uint32_t node)
{
    const struct plus_marked *before = plus_mark_before(it->mark, it->owners->graph->objects[node]);

    return (int64_t)it->owners->reached_bytes[node] -
           (before != NULL ? (int64_t)before->reached : 0);
}

static void
note(struct plus_owners_search *it, uint32_t node, int64_t amount)
{
    size_t at = it->count < PLUS_OWNERS ? it->count++ : PLUS_OWNERS;

    if (at == PLUS_OWNERS && (amount <= it->rows[PLUS_OWNERS - 1].amount)) {
        return;
    }
    at = at == PLUS_OWNERS ? PLUS_OWNERS - 1 : at;
    for (; at > 0 && it->rows[at - 1].amount < amount; at--) {
        it->rows[at] = it->rows[at - 1];
    }
    it->rows[at] = (struct plus_owner){node, amount};
}

struct task {
    uint32_t node, chain; /* where a chain of only children began */
    uint32_t length;      /* of it */
};

struct tasks {
    struct task *all;
    size_t count, room;
};

static int
push(struct tasks *tasks, struct task task)
{
    if (tasks->count == tasks->room) {
        size_t room = tasks->room > 0 ? 2 * tasks->room : 1024;
        struct task *all = plus_realloc(tasks->all, room * sizeof *all);
        if (all == NULL) {
            return -ENOMEM;
        }
        tasks->all = all;
        tasks->room = room;
    }
    tasks->all[tasks->count++] = task;
    return 0;
}

uint64_t
plus_owners_held_limit(const struct plus_owners_search *it)
{
    return it->mark != NULL ? UINT64_MAX : HELD_BYTES;
}

int64_t
plus_owners_more(const struct plus_owners_search *it, const struct plus_together *row)
{
    const struct plus_marked *before = plus_mark_find(it->mark, (uintptr_t)row->key);

    return (int64_t)row->count - (before != NULL && before->type == 0 ? before->length : 0);
}

/* Garbage is told by class; what C code holds, if there are more of the same than before, and this is a new one. */
static bool
is_told_together(const struct plus_owners_search *it, uint32_t root)
{
    const struct plus_reach *owners = it->owners;

    if (owners->anchor[root] == PLUS_GARBAGE) {
        return true;
    }
    const void *key = plus_together_key(owners, root);
    const struct plus_together *row = key == NULL ? NULL : plus_record_table_find(&it->held, key);

    return it->mark != NULL && row != NULL && plus_owners_more(it, row) >= PLUS_MANY &&
           plus_mark_before(it->mark, owners->graph->objects[root]) == NULL;
}

static int
look_at(struct plus_owners_search *it, struct tasks *tasks, struct task task)
{
    const struct plus_reach *owners = it->owners;
    int64_t own = amount_of(it, task.node), most = 0, explained = 0;
    uint32_t large = 0;

    for (size_t i = owners->first_child[task.node]; i < owners->first_child[task.node + 1]; i++) {
        if ((int64_t)owners->reached_bytes[owners->child[i]] < it->least) {
            continue;
        }
        int64_t amount = amount_of(it, owners->child[i]);
        if (amount >= it->least) {
            large++;
            explained += amount;
            most = amount > most ? amount : most;
        }
    }
    bool names = task.node == 0 || plus_reach_is_namespace(owners, task.node);

    if (!names && (double)most < SPREAD * (double)own) {
        note(it, task.node, own);
        return 0;
    }
    if (!names && large == 1 && task.length >= CHAIN) {
        note(it, task.chain, amount_of(it, task.chain));
        return 0;
    }
    bool has_before = it->mark == NULL || owners->graph->objects[task.node] != NULL;

    if (task.node != 0 && has_before && own - explained >= it->least) {
        note(it, task.node, own - explained);
    }
    for (size_t i = owners->first_child[task.node]; i < owners->first_child[task.node + 1]; i++) {
        uint32_t child = owners->child[i];
        if ((int64_t)owners->reached_bytes[child] >= it->least &&
            amount_of(it, child) >= it->least && (task.node != 0 || !is_told_together(it, child))) {
            bool goes_on = large == 1 && !names;
            struct task next = {child, goes_on ? task.chain : child, goes_on ? task.length + 1 : 0};
            if (push(tasks, next) < 0) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

int
plus_owners_find(struct plus_owners_search *it)
{
    struct tasks tasks = {.all = NULL};
    int status =
        plus_together_count(it->owners, PLUS_TOGETHER_HELD, plus_owners_held_limit(it), &it->held);

    if (status == 0) {
        status = push(&tasks, (struct task){0, 0, 0});
    }

    while (status == 0 && tasks.count > 0) {
        status = look_at(it, &tasks, tasks.all[--tasks.count]);
    }
    plus_free(tasks.all);
    return status;
}
