/* Looking a key up.
 *
 * A comparison with a key that is not simple may run other code, which may change the table.  The stored key is held
 * meanwhile, so that no other key gets its address.  If the key is not in its place afterwards, or the index is another
 * one, the search begins again.  Other changes are ignored: else a comparison that adds and deletes each time would
 * never come to an end.
 *
 * A number in the index may have been left by a deleted entry: it is checked against the number of entries, and may
 * lead to a hole. */
#include "compact_find.h"

#include "compact_index.h"

/* The result of comparing one entry. */
enum answer {
    OTHER,
    SAME,
    CHANGED, /* other code ran, and the entry is no longer there */
    FAILED,
};

/* Compare two exact strings whose hashes are equal, or that are cheap to compare. */
static inline bool
same_text(PyObject *one, PyObject *other)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(one);

    return length == PyUnicode_GET_LENGTH(other) && PyUnicode_KIND(one) == PyUnicode_KIND(other) &&
           memcmp(PyUnicode_DATA(one), PyUnicode_DATA(other),
                  (size_t)length * PyUnicode_KIND(one)) == 0;
}

/* True for an int that fits into one digit. */
static inline bool
is_short(PyObject *key, Py_ssize_t *value)
{
#if PY_VERSION_HEX >= 0x030C0000
    const PyLongObject *number = (PyLongObject *)key;

    if (!PyLong_CheckExact(key) || !PyUnstable_Long_IsCompact(number)) {
        return false;
    }
    *value = PyUnstable_Long_CompactValue(number);
    return true;
#else
    if (!PyLong_CheckExact(key) || Py_SIZE(key) < -1 || Py_SIZE(key) > 1) {
        return false;
    }
    *value = Py_SIZE(key) == 0 ? 0 : Py_SIZE(key) * (Py_ssize_t)((PyLongObject *)key)->ob_digit[0];
    return true;
#endif
}

/* Compare as a dict does, and check that the entry is still there. */
static enum answer
compare(const struct plus_compact *table, Py_ssize_t at, PyObject *key)
{
    PyObject *stored = Py_NewRef(plus_compact_at(table, at)->key);
    int same = PyObject_RichCompareBool(stored, key, Py_EQ);
    bool is_there = at < plus_compact_filled(table) && plus_compact_at(table, at)->key == stored;

    /* If the entry is still there, this is not the last reference, so no code runs after the check. */
    Py_DECREF(stored);
    return same < 0 ? FAILED : !is_there ? CHANGED : same ? SAME : OTHER;
}

/* Compare one entry whose hash equals the key's. */
static inline enum answer
ask(const struct plus_compact *table, Py_ssize_t at, PyObject *key)
{
    PyObject *stored = plus_compact_at(table, at)->key;

    if (stored == key) {
        return SAME;
    }
    Py_ssize_t value, other;
    if (PyUnicode_CheckExact(stored) && PyUnicode_CheckExact(key)) {
        return same_text(stored, key) ? SAME : OTHER;
    }
    if (is_short(stored, &value) && is_short(key, &other)) {
        return value == other ? SAME : OTHER;
    }
    return compare(table, at, key);
}

struct pair {
    PyObject *key, *value;
};

/* The position of the int `value` among a few pairs; -1 if it is missing; -2 if a stored key of another type, such as a
 * float, may be equal. */
static inline Py_ssize_t
find_short(const struct pair *pairs, Py_ssize_t count, Py_ssize_t value)
{
    Py_ssize_t other, result = -1;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *stored = pairs[i].key;
        if (stored == NULL || PyUnicode_CheckExact(stored)) {
            continue;
        }
        if (!is_short(stored, &other)) {
            result = -2;
        }
        else if (other == value) {
            return i;
        }
    }
    return result;
}

/* Search all entries, for there are few, comparing the hash first.  The table may have another form after each step. */
static Py_ssize_t
find_by_hash(const struct plus_compact *table, PyObject *key, Py_hash_t hash)
{
    Py_ssize_t i = 0;

    while (i < plus_compact_filled(table)) {
        const struct plus_compact_parts *parts = plus_compact_parts(table);
        const struct plus_compact_entry *entry = plus_compact_at(table, i);
        if (entry->key == NULL || (parts != NULL ? plus_compact_hash_at(parts, entry)
                                                 : plus_compact_hash(entry->key)) != hash) {
            i++;
            continue;
        }
        switch (ask(table, i, key)) {
        case SAME:
            return i;
        case FAILED:
            return -2;
        case CHANGED:
            i = 0;
            break;
        case OTHER:
            i++;
        }
    }
    return -1;
}

/* The position of a key, found without its hash; -1 if it is missing; -2 if the search needs the hash. */
static inline Py_ssize_t
find_pair(const struct pair *pairs, Py_ssize_t count, PyObject *key)
{
    Py_ssize_t value;

    for (Py_ssize_t i = 0; i < count; i++) {
        if (pairs[i].key == key) {
            return i;
        }
    }
    if (PyUnicode_CheckExact(key)) {
        /* The position of a str key among simple keys, which a str equals only if they are str.  All str keys have
         * been hashed. */
        Py_hash_t hash = plus_compact_hash(key);
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *stored = pairs[i].key;
            if (stored != NULL && PyUnicode_CheckExact(stored) &&
                ((PyASCIIObject *)stored)->hash == hash && same_text(stored, key)) {
                return i;
            }
        }
        return -1;
    }
    return is_short(key, &value) ? find_short(pairs, count, value) : -2;
}

static Py_ssize_t
find_by_looking(const struct plus_compact *table, PyObject *key, Py_hash_t hash)
{
    Py_ssize_t at = -2;

    if (plus_compact_parts(table) == NULL) {
        const struct pair *pairs = (const struct pair *)(table->word & PLUS_COMPACT_ADDRESS);
        at = find_pair(pairs, plus_compact_filled(table), key);
    }
    return at != -2 ? at : find_by_hash(table, key, hash);
}

/* A caller that looks up the keys in the order of insertion finds the next one without the index. */
static inline Py_ssize_t
found(const struct plus_compact *table, Py_ssize_t at)
{
    struct plus_compact_parts *parts = plus_compact_parts(table);

    if (parts == NULL) { /* a comparison changed the table */
        return at;
    }
    parts->expected = at == parts->last + 1 ? at + 1 : -1;
    parts->last = at;
    return at;
}

static inline bool
is_expected(const struct plus_compact *table, const struct plus_compact_parts *parts, PyObject *key,
            Py_hash_t hash)
{
    if (parts->expected < 0 || parts->expected >= parts->filled) {
        return false;
    }
    const struct plus_compact_entry *entry = plus_compact_at(table, parts->expected);
    PyObject *stored = entry->key;
    Py_ssize_t value, other;
    if (stored == key) {
        return true;
    }
    if (stored == NULL || Py_TYPE(stored) != Py_TYPE(key)) {
        return false;
    }
    if (PyUnicode_CheckExact(key)) {
        return ((PyASCIIObject *)stored)->hash == hash && same_text(stored, key);
    }
    return is_short(key, &value) && is_short(stored, &other) && value == other;
}

/* True if a group that was read before must not be read any further. */
static bool
has_other_index(const struct plus_compact *table, const struct plus_compact_parts *parts,
                const struct plus_compact_parts *before)
{
    return plus_compact_parts(table) != parts || parts->index != before->index ||
           parts->groups != before->groups || parts->width != before->width;
}

Py_ssize_t
plus_compact_find(const struct plus_compact *table, PyObject *key, Py_hash_t hash)
{
    uint64_t bits = plus_index_mixed(hash);
    unsigned char tag = plus_index_tag(bits);
    struct plus_compact_parts *parts;

again:
    parts = plus_compact_parts(table);
    if (parts == NULL || parts->index == NULL) {
        return find_by_looking(table, key, hash);
    }
    if (is_expected(table, parts, key, hash)) {
        return found(table, parts->expected);
    }
    const struct plus_compact_parts as = *parts;
    for (uint32_t number = plus_index_home(parts, bits);; number = plus_index_next(parts, number)) {
        const unsigned char *group = plus_index_group(parts, number);
        for (unsigned half = 0; half < 2; half++) {
            for (uint64_t matches = plus_index_equal(plus_index_tags(group, half), tag);
                 matches != 0; matches &= matches - 1) {
                Py_ssize_t at =
                    plus_index_number(parts, group, 8 * half + plus_index_lowest(matches));
                if (at >= parts->filled) {
                    continue;
                }
                const struct plus_compact_entry *entry = plus_compact_at(table, at);
                if (entry->key == key) {
                    return found(table, at);
                }
                if (entry->key == NULL || plus_compact_hash_at(parts, entry) != hash) {
                    continue;
                }
                switch (ask(table, at, key)) {
                case SAME:
                    return found(table, at);
                case FAILED:
                    return -2;
                case CHANGED:
                    goto again;
                case OTHER:
                    if (has_other_index(table, parts, &as)) {
                        goto again;
                    }
                }
            }
        }
        if (plus_index_has_vacant(group)) {
            return -1;
        }
    }
}

Py_hash_t
plus_compact_hash_of(PyObject *key)
{
    Py_hash_t hash = plus_compact_hash(key);

#if PY_VERSION_HEX >= 0x030E0000
    if (hash == -1) {
        PyObject *error = PyErr_GetRaisedException();
        if (Py_IS_TYPE(error, (PyTypeObject *)PyExc_TypeError)) {
            PyErr_Format(PyExc_TypeError, "cannot use '%T' as a dict key (%S)", key, error);
            Py_DECREF(error);
        }
        else {
            PyErr_SetRaisedException(error);
        }
    }
#endif
    return hash;
}

Py_ssize_t
plus_compact_look_up(const struct plus_compact *table, PyObject *key)
{
    if (plus_compact_parts(table) == NULL) {
        const struct pair *pairs = (const struct pair *)(table->word & PLUS_COMPACT_ADDRESS);
        Py_ssize_t at = find_pair(pairs, plus_compact_filled(table), key);
        if (at != -2) {
            return at;
        }
    }
    Py_hash_t hash = plus_compact_hash_of(key);
    return hash != -1 ? plus_compact_find(table, key, hash) : -2;
}
