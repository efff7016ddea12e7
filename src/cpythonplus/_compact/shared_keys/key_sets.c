/* A row's keys are compared by address with those of the row before: a parser that meets a name again gives the same
 * string.  If they differ, they are hashed and looked up, with four places for a hash.
 *
 * On 3.11 each allocation of a container may run the collector and so any code, which may call these functions and
 * replace a set.  So after such a call a set is looked up again before it is used.
 *
 * Rejected: tables made by hand in the interpreter's private layout.  It would save the look-up of each name, about a
 * third of the time, and break with each version. */
#include "key_sets.h"

#define BUCKETS 256u /* a power of two */
#define WAYS 4u

struct key_set {
    uint64_t hash; /* of the keys, in their order */
    uint32_t met;  /* number of rows, halved when a new set needs the place */
    Py_ssize_t count;
    PyObject *names; /* tuple of the first row's keys; NULL: the place is free */
    PyObject *last;  /* tuple of the keys of the row before, the same strings or equal ones */
    /* The dict to copy; None if no dict can share these keys, NULL until the second row. */
    PyObject *pattern;
};

struct plus_key_sets {
    struct key_set *previous; /* the set of the last row, or NULL */
    struct key_set places[BUCKETS][WAYS];
};

struct plus_key_sets *
plus_key_sets_new(void)
{
    return PyMem_Calloc(1, sizeof(struct plus_key_sets));
}

static void
forget(struct key_set *set)
{
    struct key_set old = *set;

    *set = (struct key_set){0};
    Py_XDECREF(old.names);
    Py_XDECREF(old.last);
    Py_XDECREF(old.pattern);
}

void
plus_key_sets_free(struct plus_key_sets *sets)
{
    for (size_t i = 0; sets != NULL && i < BUCKETS * WAYS; i++) {
        forget(&sets->places[0][0] + i);
    }
    PyMem_Free(sets);
}

/* ---- patterns ------------------------------------------------------------------------------------ */

/* The result of the dict's __sizeof__; -1 with an exception. */
static Py_ssize_t
size_of(PyObject *dict)
{
    PyObject *size = PyObject_CallMethod(dict, "__sizeof__", NULL);
    Py_ssize_t bytes = size != NULL ? PyLong_AsSsize_t(size) : -1;

    Py_XDECREF(size);
    return bytes;
}

/* An instance whose class has room for `room` names: each new instance reduces the room by one. */
static PyObject *
instance_with_room(Py_ssize_t room)
{
    PyObject *type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(){}", "keys");
    PyObject *instance = NULL;

    for (Py_ssize_t left = PLUS_KEY_SET_MOST; type != NULL && left >= room; left--) {
        Py_XDECREF(instance);
        instance = PyObject_CallNoArgs(type);
        if (instance == NULL) {
            break;
        }
    }
    Py_XDECREF(type);
    return instance;
}

static int
fill(PyObject *dict, PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), Py_None) < 0) {
            return -1;
        }
    }
    return 0;
}

/* 1 if a copy has the same names in this order, in fewer bytes than a plain dict; else 0; -1 with an exception. */
static int
is_pattern(PyObject *pattern, PyObject *names)
{
    PyObject *copy = PyDict_Copy(pattern), *plain = PyDict_New();
    PyObject *listed = copy != NULL ? PySequence_Tuple(copy) : NULL;
    int fits = -1;

    if (listed != NULL && plain != NULL && fill(plain, names) == 0) {
        Py_ssize_t shared_bytes = size_of(copy);
        Py_ssize_t plain_bytes = shared_bytes < 0 ? -1 : size_of(plain);
        int same = plain_bytes < 0 ? -1 : PyObject_RichCompareBool(listed, names, Py_EQ);
        if (same >= 0) {
            fits = same && shared_bytes < plain_bytes;
        }
    }
    Py_XDECREF(copy);
    Py_XDECREF(plain);
    Py_XDECREF(listed);
    return fits;
}

/* The dict whose copies share their keys, for these names; None if such a dict would not save memory. */
static PyObject *
make_pattern(PyObject *names)
{
    PyObject *instance = instance_with_room(PyTuple_GET_SIZE(names));
    PyObject *pattern = instance != NULL ? PyObject_GenericGetDict(instance, NULL) : NULL;
    int fits = pattern != NULL && fill(pattern, names) == 0 ? 0 : -1;

    /* Freeing the instance moves the values from the instance into the dict. */
    Py_XDECREF(instance);
    if (fits == 0) {
        fits = is_pattern(pattern, names);
    }
    if (fits <= 0) {
        Py_XDECREF(pattern);
        pattern = fits == 0 ? Py_NewRef(Py_None) : NULL;
    }
    return pattern;
}

/* ---- the table ----------------------------------------------------------------------------------- */

static uint64_t
hash_of(const struct plus_row *row)
{
    uint64_t hash = (uint64_t)row->count;

    for (Py_ssize_t i = 0; i < row->count; i++) {
        hash = (hash ^ (uint64_t)PyObject_Hash(row->keys[i])) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

static bool
is_same_keys(PyObject *names, const struct plus_row *row)
{
    for (Py_ssize_t i = 0; i < row->count; i++) {
        if (PyTuple_GET_ITEM(names, i) != row->keys[i]) {
            return false;
        }
    }
    return true;
}

static bool
is_equal_keys(PyObject *names, const struct plus_row *row)
{
    for (Py_ssize_t i = 0; i < row->count; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (name != row->keys[i] && PyUnicode_Compare(name, row->keys[i]) != 0) {
            return false;
        }
    }
    return true;
}

static struct key_set *
find(struct plus_key_sets *sets, uint64_t hash, const struct plus_row *row)
{
    struct key_set *bucket = sets->places[hash % BUCKETS];

    for (unsigned i = 0; i < WAYS; i++) {
        if (bucket[i].names != NULL && bucket[i].hash == hash && bucket[i].count == row->count &&
            is_equal_keys(bucket[i].names, row)) {
            return &bucket[i];
        }
    }
    return NULL;
}

/* The place of a new set: a free one, else that of the set with the fewest rows.  The others of the bucket lose half of
 * their count, so that none stays for ever. */
static struct key_set *
make_room(struct plus_key_sets *sets, uint64_t hash)
{
    struct key_set *bucket = sets->places[hash % BUCKETS], *least = bucket;

    for (unsigned i = 0; i < WAYS; i++) {
        if (bucket[i].names == NULL) {
            return &bucket[i];
        }
        bucket[i].met /= 2;
        if (bucket[i].met < least->met) {
            least = &bucket[i];
        }
    }
    sets->previous = NULL;
    forget(least);
    return least;
}

static PyObject *
names_of(const struct plus_row *row)
{
    PyObject *names = PyTuple_New(row->count);

    for (Py_ssize_t i = 0; names != NULL && i < row->count; i++) {
        PyTuple_SET_ITEM(names, i, Py_NewRef(row->keys[i]));
    }
    return names;
}

/* True if two keys of the row are equal: then dict() handles the row, and the last one counts. */
static int
has_duplicates(PyObject *names)
{
    PyObject *set = PySet_New(names);
    int rc = set != NULL ? PySet_GET_SIZE(set) < PyTuple_GET_SIZE(names) : -1;

    Py_XDECREF(set);
    return rc;
}

/* Note the first row with these keys. */
static int
note_new(struct plus_key_sets *sets, uint64_t hash, const struct plus_row *row)
{
    PyObject *names = names_of(row);
    int duplicates = names != NULL ? has_duplicates(names) : -1;

    if (duplicates != 0) {
        Py_XDECREF(names);
        return duplicates < 0 ? -1 : 0;
    }
    struct key_set *set = make_room(sets, hash);
    *set = (struct key_set){
        .hash = hash, .met = 1, .count = row->count, .names = names, .last = Py_NewRef(names)};
    return 0;
}

/* Make the pattern at the second row. */
static int
add_pattern(struct plus_key_sets *sets, struct key_set *set, const struct plus_row *row)
{
    uint64_t hash = set->hash;
    PyObject *names = Py_NewRef(set->names);
    PyObject *pattern = make_pattern(names);

    Py_DECREF(names);
    if (pattern == NULL) {
        return -1;
    }
    set = find(sets, hash, row);
    if (set == NULL || set->pattern != NULL) {
        Py_DECREF(pattern);
        return 0;
    }
    set->pattern = pattern;
    return 0;
}

static bool
has_pattern(const struct key_set *set)
{
    return set->pattern != NULL && set->pattern != Py_None;
}

/* The set of a row, with a pattern; NULL if it has none, with an exception if it failed. */
static struct key_set *
set_of(struct plus_key_sets *sets, const struct plus_row *row)
{
    struct key_set *set = sets->previous;

    if (set != NULL && set->count == row->count && is_same_keys(set->last, row)) {
        set->met += set->met < UINT32_MAX;
        return set;
    }
    uint64_t hash = hash_of(row);
    set = find(sets, hash, row);
    if (set == NULL) {
        (void)note_new(sets, hash, row);
        return NULL;
    }
    set->met += set->met < UINT32_MAX;
    if (set->pattern == NULL) {
        if (add_pattern(sets, set, row) < 0 || (set = find(sets, hash, row)) == NULL) {
            return NULL;
        }
    }
    if (!has_pattern(set)) {
        return NULL;
    }
    if (!is_same_keys(set->last, row)) {
        PyObject *last = names_of(row);
        if (last == NULL || (set = find(sets, hash, row)) == NULL || !has_pattern(set)) {
            Py_XDECREF(last);
            return NULL;
        }
        Py_SETREF(set->last, last);
    }
    sets->previous = set;
    return set;
}

PyObject *
plus_key_sets_dict(struct plus_key_sets *sets, const struct plus_row *row)
{
    struct key_set *set = set_of(sets, row);

    if (set == NULL) {
        return NULL;
    }
    PyObject *names = Py_NewRef(set->names), *pattern = Py_NewRef(set->pattern);
    PyObject *dict = PyDict_Copy(pattern);

    for (Py_ssize_t i = 0; dict != NULL && i < row->count; i++) {
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), row->values[i]) < 0) {
            Py_CLEAR(dict);
        }
    }
    Py_DECREF(names);
    Py_DECREF(pattern);
    return dict;
}

const char *
plus_key_sets_refusal(void)
{
    PyObject *names = Py_BuildValue("(ss)", "a", "b");
    PyObject *pattern = names != NULL ? make_pattern(names) : NULL;
    bool refused = pattern == Py_None;

    Py_XDECREF(names);
    Py_XDECREF(pattern);
    return refused ? "a copy of an instance's dict does not share its keys here" : NULL;
}
