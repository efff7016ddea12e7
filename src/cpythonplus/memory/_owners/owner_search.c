/* Each object counts with all objects on its shortest path from a named root, for example a list and the module that
 * has it.  The search for owners goes down from the roots of that tree.  The amount of a node is the number of bytes
 * reached through it, or the growth of that number.
 *
 *     one child has most of it          search goes on in the child
 *     several have much                 search goes on in each
 *     it is spread over small ones      this node is an owner: a container, a cache, an object with many parts
 *     a chain without an end            its first node is: a linked list
 *
 * (Memory Analyzer of Eclipse calls them accumulation points.) Modules, classes and frames only give names.
 *
 * Dominators tell the bytes that would be freed with an owner.  They do not choose owners: if two objects share
 * something, as a set of tasks and the event that the tasks wait for, it is dominated by neither. */
#include "owner_search.h"

#include <errno.h>

#include "../../_base/memory/copy_memory.h"
#include "owner_shape.h"

#define CHAIN 24
#define HELD_BYTES 16384
#define SPREAD 0.5 /* share of a node's amount below which no single child explains it */

static int64_t
amount_of(const struct plus_owners_search *it, uint32_t node)
{
    const struct plus_marked *before = plus_mark_before(it->mark, it->owners->graph->objects[node]);
    uint64_t excess = it->excess == NULL ? 0 : it->excess[node];

    return (int64_t)(it->owners->reached_bytes[node] - excess) -
           (before != NULL ? (int64_t)before->reached : 0);
}

static int
note(struct plus_owners_search *it, uint32_t node, int64_t amount)
{
    struct plus_owner *found =
        plus_room_for_one(it->found, it->count, &it->room, 256, sizeof *found);

    if (found == NULL) {
        return -ENOMEM;
    }
    it->found = found;
    it->found[it->count++] = (struct plus_owner){plus_owner_shape(it->owners, node), node, amount};
    return 0;
}

/* ---- rows -------------------------------------------------------------------------------------------- */

static void
choose(struct plus_owner_rows *rows, struct plus_owner_row row)
{
    size_t at = rows->count < PLUS_OWNERS ? rows->count++ : PLUS_OWNERS;

    if (at == PLUS_OWNERS && row.amount <= rows->all[PLUS_OWNERS - 1].amount) {
        return;
    }
    at = at == PLUS_OWNERS ? PLUS_OWNERS - 1 : at;
    for (; at > 0 && rows->all[at - 1].amount < row.amount; at--) {
        rows->all[at] = rows->all[at - 1];
    }
    rows->all[at] = row;
}

/* Makes one row of owners that look alike, if there are many. */
static void
sum_up(struct plus_owners_search *it)
{
    plus_sort_by_word(it->found, it->count, sizeof *it->found);
    for (size_t first = 0, end; first < it->count; first = end) {
        struct plus_owner_row row = {&it->found[first], 0, 0};
        size_t most = first;

        for (end = first; end < it->count && it->found[end].shape == it->found[first].shape;
             end++) {
            row.amount += it->found[end].amount;
            most = it->found[end].amount > it->found[most].amount ? end : most;
        }
        struct plus_owner largest = it->found[most];
        it->found[most] = it->found[first];
        it->found[first] = largest;
        row.count = end - first;
        for (size_t i = first; i < end && row.count < PLUS_ALIKE; i++) {
            choose(&it->rows, (struct plus_owner_row){&it->found[i], 1, it->found[i].amount});
        }
        if (row.count >= PLUS_ALIKE) {
            choose(&it->rows, row);
        }
    }
}

/* Finds tables that were made larger.  A table has nothing behind it, so the search does not meet it. */
static int
find_resized(struct plus_owners_search *it)
{
    const struct plus_heap_graph *graph = it->owners->graph;
    struct plus_owner *tables = plus_malloc(PLUS_OWNERS * sizeof *tables);
    size_t count = 0;

    if (tables == NULL) {
        return -ENOMEM;
    }
    for (uint32_t node = graph->frames + 1;
         it->excess != NULL && node < graph->edges.count && count < PLUS_OWNERS; node++) {
        int64_t bytes = (int64_t)it->excess[node] < it->least
                            ? 0
                            : (int64_t)plus_table_excess(it->owners, it->mark, node);
        if (bytes >= it->least) {
            tables[count] = (struct plus_owner){0, node, bytes};
            choose(&it->resized, (struct plus_owner_row){&tables[count++], 1, bytes});
        }
    }
    return 0;
}

/* ---- the search -------------------------------------------------------------------------------------- */

struct task {
    uint32_t node, chain; /* chain: where a chain of only children began */
    uint32_t length;      /* length of the chain */
};

struct tasks {
    struct task *all;
    size_t count, room;
};

static int
push(struct tasks *tasks, struct task task)
{
    struct task *all = plus_room_for_one(tasks->all, tasks->count, &tasks->room, 1024, sizeof *all);

    if (all == NULL) {
        return -ENOMEM;
    }
    tasks->all = all;
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

bool
plus_owners_grow_together(const struct plus_owners_search *it, const struct plus_together *row)
{
    const struct plus_marked *before = plus_mark_find(it->mark, (uintptr_t)row->key);
    int64_t then = before != NULL && before->type == 0 ? (int64_t)before->reached : 0;
    int64_t grown = (int64_t)row->bytes - then;

    return (plus_owners_more(it, row) >= PLUS_MANY && !row->has_names) ||
           (row->count >= PLUS_ALIKE && grown >= it->least && grown / row->count < it->least);
}

/* True if the root shares a row with others of its kind: garbage, by class; and an object that C code holds if it is
 * new and its kind has become more, or if many of its kind have grown alike. */
static bool
is_told_together(const struct plus_owners_search *it, uint32_t root)
{
    const struct plus_reach *owners = it->owners;

    if (owners->anchor[root] == PLUS_GARBAGE) {
        return true;
    }
    const void *key = plus_together_key(owners, root);
    const struct plus_together *row = key == NULL ? NULL : plus_record_table_find(&it->held, key);

    if (it->mark == NULL || row == NULL || !plus_owners_grow_together(it, row)) {
        return false;
    }
    return plus_owners_more(it, row) < PLUS_MANY ||
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
        return note(it, task.node, own);
    }
    if (!names && large == 1 && task.length >= CHAIN) {
        return note(it, task.chain, amount_of(it, task.chain));
    }
    bool has_before = it->mark == NULL || owners->graph->objects[task.node] != NULL;

    if (task.node != 0 && has_before && own - explained >= it->least &&
        note(it, task.node, own - explained) < 0) {
        return -ENOMEM;
    }
    for (size_t i = owners->first_child[task.node]; i < owners->first_child[task.node + 1]; i++) {
        uint32_t child = owners->child[i];
        /* In a module one name may have lost more than another has grown. */
        if ((int64_t)owners->reached_bytes[child] >= it->least &&
            (amount_of(it, child) >= it->least || plus_reach_is_namespace(owners, child)) &&
            (task.node != 0 || !is_told_together(it, child))) {
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
        it->excess = plus_tables_find(it->owners, it->mark, &status);
    }
    if (status == 0) {
        status = push(&tasks, (struct task){0, 0, 0});
    }

    while (status == 0 && tasks.count > 0) {
        status = look_at(it, &tasks, tasks.all[--tasks.count]);
    }
    plus_free(tasks.all);
    if (status < 0) {
        return status;
    }
    sum_up(it);
    return find_resized(it);
}
