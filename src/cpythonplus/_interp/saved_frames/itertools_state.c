/* An object of itertools is a row of fields behind its head, and a class has one letter for each of them:
 *
 *     J  an iterator           n  a Py_ssize_t                     t  a tuple that does not change once it is made
 *     I  the same, or NULL     l  a long                           T  a tuple that was given out last, or NULL
 *     A  any object            i  an int                           z  a tuple of iterators, NULL for those that ended
 *     O  the same, or NULL     b  a char                           p  so many indexes as the first field has items
 *     L  a list                N  n, that does not change          r  so many indexes as the field N says
 *     d  a tee's data block    k  an int: number of values         v  the values that a tee has read
 *     G  the parent iterator   g  the group that is being read, borrowed            .  a pointer of the class's own
 *
 * The offsets follow from the letters as a compiler lays a structure out, and have to end where the class says that its
 * objects end.  Values are checked before they are written: an iterator is one, a list is a list, an index lies within;
 * the interpreter only asserts this.  Before 3.14 all but two classes have `__reduce__` and need no row; but that of
 * groupby forgets the group that is being read, and loses an element.
 *
 * Rejected: making an equal iterator by public calls. `chain` and `pairwise` would then be wrapped once more by each
 * pickle, and `product` be advanced by as many steps as it has done. */
#include "itertools_state.h"

#include "../facts/facts.h"
#include "../facts/probe_call.h"
#include "../facts/probes.h"

#include "../../_base/memory/own_memory.h"

enum { TEE_VALUES = 57, MOST_BYTES = 512 };

static const struct row {
    const char *name, *kinds;
} rows[] = {
#if PY_VERSION_HEX >= 0x030D0000
    {"itertools.batched", "Inb"},
    {"itertools.pairwise", "IO."},
#else
    {"itertools.batched", "In"},
    {"itertools.pairwise", "IO"},
#endif
#if PY_VERSION_HEX >= 0x030C0000
    {"itertools.groupby", "JAOOOg."},
#else
    {"itertools.groupby", "JAOOOg"},
#endif
    {"itertools._grouper", "GA"},
#if PY_VERSION_HEX >= 0x030E0000
    {"itertools.accumulate", "OJOA."},
    {"itertools.chain", "II"},
    {"itertools.combinations", "trTNi"},
    {"itertools.combinations_with_replacement", "trTNi"},
    {"itertools.compress", "JJ"},
    {"itertools.count", "nOA"},
    {"itertools.cycle", "ILn"},
    {"itertools.dropwhile", "AJl"},
    {"itertools.filterfalse", "AJ"},
    {"itertools.islice", "Innnn"},
    {"itertools.permutations", "tprTNi"},
    {"itertools.product", "tpTi"},
    {"itertools.repeat", "An"},
    {"itertools.starmap", "AJ"},
    {"itertools.takewhile", "AJl"},
    {"itertools._tee", "di.."},
    {"itertools._tee_dataobject", "JkiOv"},
    {"itertools.zip_longest", "NNz.A"},
#endif
};

/* ---- fields -------------------------------------------------------------------------------------- */

struct field {
    char kind;
    size_t offset;
};

struct walk {
    const char *kinds;
    size_t end; /* of the field before */
};

static bool
is_int(char kind)
{
    return kind == 'i' || kind == 'k';
}

static bool
next_field(struct walk *walk, struct field *field)
{
    field->kind = *walk->kinds++;
    size_t bytes = field->kind == 'b' ? 1 : is_int(field->kind) ? sizeof(int) : sizeof(void *);

    field->offset = (walk->end + bytes - 1) / bytes * bytes;
    walk->end = field->offset + (field->kind == 'v' ? TEE_VALUES : 1) * bytes;
    return field->kind != '\0';
}

static struct walk
fields_of(const struct row *row)
{
    return (struct walk){row->kinds, sizeof(PyObject)};
}

static bool
is_object(char kind)
{
    return strchr("JIAOLtTdG", kind) != NULL;
}

static bool
may_be_null(char kind)
{
    return strchr("IOT", kind) != NULL;
}

static const struct row *
row_named(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* The row of a class that has exactly the room for its fields, or NULL.  A class of the program may have any name, but
 * is not immutable. */
static const struct row *
row_of(PyTypeObject *type)
{
    const struct row *row =
        PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE) ? row_named(type->tp_name) : NULL;
    size_t end = 0;

    if (row != NULL) {
        struct walk walk = fields_of(row);
        struct field field;
        while (next_field(&walk, &field)) {
            end = walk.end;
        }
    }
    end = (end + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    return row != NULL && end == (size_t)type->tp_basicsize ? row : NULL;
}

/* The address that field offsets count from. */
static char *
base_of(PyObject *op)
{
    return PLUS_AT(PLUS_FACT_ITERTOOLS, (char *)op);
}

static PyObject *
object_at(const char *base, size_t offset)
{
    return *(PyObject *const *)(base + offset);
}

static Py_ssize_t
number_at(const char *base, struct field field)
{
    const char *at = base + field.offset;

    return field.kind == 'b'    ? *at
           : is_int(field.kind) ? *(const int *)at
                                : *(const Py_ssize_t *)at;
}

static Py_ssize_t
number_of(const struct row *row, const char *base, char kind)
{
    struct walk walk = fields_of(row);
    struct field field;

    while (next_field(&walk, &field)) {
        if (field.kind == kind) {
            return number_at(base, field);
        }
    }
    return 0;
}

/* The number of indexes in a field of kind p or r. */
static Py_ssize_t
indexes_of(const struct row *row, const char *base, char kind)
{
    return kind == 'r' ? number_of(row, base, 'N')
                       : PyTuple_GET_SIZE(object_at(base, sizeof(PyObject)));
}

#define MOST_FIELDS 16 /* fields of one iterator */

/* ---- capture ------------------------------------------------------------------------------------- */

static PyObject *
indexes(const Py_ssize_t *from, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);

    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromSsize_t(from[i]);
        if (number == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

static PyObject *
iterators(PyObject *from)
{
    Py_ssize_t count = PyTuple_GET_SIZE(from);
    PyObject *tuple = PyTuple_New(count);

    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(from, i);
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(item != NULL ? item : Py_None));
    }
    return tuple;
}

static PyObject *
list_of(PyObject *const *from, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyList_SET_ITEM(list, i, Py_NewRef(from[i]));
    }
    return list;
}

/* The groupby of an iterator over one group; None if the groupby is at another group. */
static PyObject *
groupby_of(PyObject *group, PyObject *parent)
{
    PyTypeObject *type = Py_TYPE(parent); /* groupby, or a subclass: its fields are behind */
    const struct row *row = row_named("itertools.groupby");
    struct walk walk = fields_of(row);
    struct field field;

    while (next_field(&walk, &field) && field.kind != 'g') {
    }
    bool reads =
        (size_t)type->tp_basicsize >= walk.end && object_at(base_of(parent), field.offset) == group;
    return Py_NewRef(reads ? parent : Py_None);
}

/* The object in a field, or NULL.  If the iterator has ended, the tuple that it gave out last may be unfilled. */
static PyObject *
object_in(const struct row *row, const char *base, struct field field)
{
    bool ended = field.kind == 'T' && number_of(row, base, 'i') != 0;

    return ended ? NULL : object_at(base, field.offset);
}

/* The field's value, new; NULL with an exception. */
static PyObject *
value_of(const struct row *row, PyObject *iterator, struct field field)
{
    const char *base = base_of(iterator);
    const char *at = base + field.offset;

    switch (field.kind) {
    case 'p':
    case 'r':
        return indexes(*(Py_ssize_t *const *)at, indexes_of(row, base, field.kind));
    case 'z':
        return iterators(object_at(base, field.offset));
    case 'v':
        return list_of((PyObject *const *)at, number_of(row, base, 'k'));
    case 'L': {
        PyObject *list = object_at(base, field.offset); /* it grows with use, so copy it */
        return PyList_GetSlice(list, 0, PyList_GET_SIZE(list));
    }
    case 'G':
        return groupby_of(iterator, object_at(base, field.offset));
    case 'g':
    case '.':
        return Py_NewRef(Py_None);
    default:
        if (is_object(field.kind)) {
            PyObject *op = object_in(row, base, field);
            return Py_NewRef(op != NULL ? op : Py_None);
        }
        return PyLong_FromSsize_t(number_at(base, field));
    }
}

PyObject *
plus_itertools_capture(PyObject *iterator)
{
    const struct row *row = row_of(Py_TYPE(iterator));

    if (row == NULL) {
        PyErr_Format(PyExc_TypeError, "the state of a '%.100s' object is not known",
                     Py_TYPE(iterator)->tp_name);
        return NULL;
    }
    const char *base = base_of(iterator);
    PyObject *list = PyList_New(1), *result = NULL;
    struct walk walk = fields_of(row);
    struct field field;
    unsigned nulls = 0, bit = 1;
    bool ok = list != NULL;
    int collects = PyGC_Disable(); /* 3.11 collects at any allocation, and finalisers run */

    for (; ok && next_field(&walk, &field); bit <<= 1) {
        PyObject *value = value_of(row, iterator, field);
        ok = value != NULL && PyList_Append(list, value) == 0;
        Py_XDECREF(value);
        if (is_object(field.kind) && object_in(row, base, field) == NULL) {
            nulls |= bit;
        }
    }
    PyObject *number = ok ? PyLong_FromUnsignedLong(nulls) : NULL;

    if (number != NULL) {
        PyList_SetItem(list, 0, number);
        result = PyList_AsTuple(list);
    }
    if (collects) {
        PyGC_Enable();
    }
    Py_XDECREF(list);
    return result;
}

/* ---- restore ------------------------------------------------------------------------------------- */

static int
bad(const char *why)
{
    PyErr_Format(PyExc_ValueError, "not the state of this iterator: %s", why);
    return -1;
}

static int
check_object(char kind, PyObject *value)
{
    switch (kind) {
    case 'J':
    case 'I':
        return PyIter_Check(value) ? 0 : bad("an iterator is missing");
    case 'L':
        return PyList_CheckExact(value) ? 0 : bad("a list is missing");
    case 'T':
        return PyTuple_CheckExact(value) ? 0 : bad("a tuple is missing");
    case 'd':
        return row_of(Py_TYPE(value)) == row_named("itertools._tee_dataobject")
                   ? 0
                   : bad("what a tee reads is missing");
    default:
        return 0;
    }
}

static int
check_number(PyObject *value, Py_ssize_t least, Py_ssize_t most)
{
    bool is_one = PyLong_CheckExact(value);
    Py_ssize_t number = is_one ? PyLong_AsSsize_t(value) : 0;

    if (!is_one || PyErr_Occurred() || number < least || number > most) {
        PyErr_Clear();
        return bad("a number is missing, or too large");
    }
    return 0;
}

static int
check_indexes(PyObject *value, Py_ssize_t count, Py_ssize_t most)
{
    if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != count) {
        return bad("indexes are missing");
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (check_number(PyTuple_GET_ITEM(value, i), 0, most) < 0) {
            return -1;
        }
    }
    return 0;
}

static Py_ssize_t
captured_number(PyObject *captured, Py_ssize_t index)
{
    return PyLong_AsSsize_t(PyTuple_GET_ITEM(captured, index));
}

/* For combinations, permutations and product: indexes must lie within the iterator's pool, and the tuple given out last
 * must have its size. */
static int
check_selection(const struct row *row, const char *base, PyObject *captured)
{
    bool one_pool = strcmp(row->name, "itertools.product") != 0;
    bool has_cycles = one_pool && row->kinds[1] == 'p';
    Py_ssize_t given = has_cycles ? 4 : 3; /* index of that field; the indexes are field 2 */
    PyObject *pool = object_at(base, sizeof(PyObject)), *where = PyTuple_GET_ITEM(captured, 2);
    Py_ssize_t size = indexes_of(row, base, one_pool ? 'r' : 'p');
    unsigned long nulls = PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(captured, 0));
    bool has_given = (nulls >> (given - 1) & 1) == 0;
    bool ended = captured_number(captured, PyTuple_GET_SIZE(captured) - 1) != 0;

    if (has_given && PyTuple_GET_SIZE(PyTuple_GET_ITEM(captured, given)) != size) {
        return bad("what was given out last has another size");
    }
    if (has_cycles &&
        check_indexes(PyTuple_GET_ITEM(captured, 3), size, PyTuple_GET_SIZE(pool)) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; !ended && i < PyTuple_GET_SIZE(where); i++) {
        Py_ssize_t count = PyTuple_GET_SIZE(one_pool ? pool : PyTuple_GET_ITEM(pool, i));
        /* A product that has not begun first checks whether a pool is empty. */
        Py_ssize_t most = count == 0 && !one_pool && !has_given ? 0 : count - 1;
        if (check_number(PyTuple_GET_ITEM(where, i), 0, most) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Check fields against each other; each is known to be of its kind, and the pool is the iterator's own. */
static int
check_together(const struct row *row, const char *base, PyObject *captured)
{
    const char *name = strchr(row->name, '.') + 1;
    unsigned long nulls = PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(captured, 0));

    if (strcmp(name, "cycle") == 0) {
        Py_ssize_t saved = PyList_GET_SIZE(PyTuple_GET_ITEM(captured, 2));
        Py_ssize_t least = (nulls & 1) != 0 && saved > 0 ? 0 : -1;
        return check_number(PyTuple_GET_ITEM(captured, 3), least, saved > 0 ? saved - 1 : 0);
    }
    if (strcmp(name, "count") == 0) {
        bool counts_objects = captured_number(captured, 1) == PY_SSIZE_T_MAX;
        return counts_objects && (nulls & 2) != 0 ? bad("the next number is missing") : 0;
    }
    if (strcmp(name, "groupby") == 0) {
        bool has_key = (nulls & 8) == 0, has_value = (nulls & 16) == 0;
        return has_key == has_value ? 0 : bad("a key and its value are missing");
    }
    if (strcmp(name, "islice") == 0) {
        return check_number(PyTuple_GET_ITEM(captured, 4), 1, PY_SSIZE_T_MAX);
    }
    if (strcmp(name, "batched") == 0) {
        bool ended = (nulls & 1) != 0, size_says_it = PY_VERSION_HEX >= 0x030E0000;
        return check_number(PyTuple_GET_ITEM(captured, 2), ended ? -1 : 1,
                            ended && size_says_it ? -1 : PY_SSIZE_T_MAX);
    }
    if (strcmp(name, "_tee") == 0) {
        PyObject *data = PyTuple_GET_ITEM(captured, 1);
        const struct row *of_data = row_of(Py_TYPE(data));
        return of_data == NULL ? bad("what a tee reads is missing")
                               : check_number(PyTuple_GET_ITEM(captured, 2), 0,
                                              number_of(of_data, base_of(data), 'k'));
    }
    return row->kinds[0] == 't' ? check_selection(row, base, captured) : 0;
}

static int
check_field(const struct row *row, const char *base, struct field field, PyObject *value,
            bool is_null)
{
    if (is_null) {
        return may_be_null(field.kind) ? 0 : bad("an object is missing");
    }
    switch (field.kind) {
    case 'n':
    case 'l':
        return check_number(value, PY_SSIZE_T_MIN, PY_SSIZE_T_MAX);
    case 'i':
        return check_number(value, 0, TEE_VALUES);
    case 'b':
        return check_number(value, 0, 1);
    case 'p':
    case 'r':
        return check_indexes(value, indexes_of(row, base, field.kind), PY_SSIZE_T_MAX);
    case 'z':
    case 'v':
    case 'G':
        return bad("it is made by its class alone");
    default:
        return check_object(field.kind, value);
    }
}

/* The old value, or NULL.  The caller drops it when all fields are written, as dropping it may ask the iterator for a
 * value. */
static PyObject *
write_field(char *base, struct field field, PyObject *value, bool is_null)
{
    char *at = base + field.offset;
    PyObject *old = NULL;

    if (strchr("JIAOLTd", field.kind) != NULL) {
        old = *(PyObject **)at;
        *(PyObject **)at = is_null ? NULL : Py_NewRef(value);
    }
    else if (field.kind == 'p' || field.kind == 'r') {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
            (*(Py_ssize_t **)at)[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(value, i));
        }
    }
    else if (field.kind == 'n' || field.kind == 'l') {
        *(Py_ssize_t *)at = PyLong_AsSsize_t(value);
    }
    else if (field.kind == 'i') {
        *(int *)at = (int)PyLong_AsLong(value);
    }
    else if (field.kind == 'b') {
        *at = (char)PyLong_AsLong(value);
    }
    return old;
}

int
plus_itertools_restore(PyObject *iterator, PyObject *captured)
{
    const struct row *row = row_of(Py_TYPE(iterator));

    if (row == NULL || !PyTuple_CheckExact(captured) ||
        PyTuple_GET_SIZE(captured) != (Py_ssize_t)strlen(row->kinds) + 1 ||
        PyTuple_GET_SIZE(captured) > MOST_FIELDS ||
        !PyLong_CheckExact(PyTuple_GET_ITEM(captured, 0))) {
        return bad("there are fewer fields, or more");
    }
    char *base = base_of(iterator);
    unsigned long nulls = PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(captured, 0));
    struct walk walk = fields_of(row);
    struct field field;
    PyObject *old[MOST_FIELDS];
    Py_ssize_t count = 0;

    for (Py_ssize_t i = 0; next_field(&walk, &field); i++) {
        if (check_field(row, base, field, PyTuple_GET_ITEM(captured, i + 1), nulls >> i & 1) < 0) {
            return -1;
        }
    }
    if (check_together(row, base, captured) < 0) {
        return -1;
    }
    walk = fields_of(row);
    for (; next_field(&walk, &field); count++) {
        old[count] =
            write_field(base, field, PyTuple_GET_ITEM(captured, count + 1), nulls >> count & 1);
    }
    while (count > 0) {
        Py_XDECREF(old[--count]);
    }
    return 0;
}

/* ---- probe --------------------------------------------------------------------------------------- */

/* A list of (iterator, a fresh one or None, expected fields): `...` stands for NULL, NotImplemented for a value that is
 * unknown from outside.  Objects within reach of other code are immutable.  No power of constants, as the compiler
 * would fold it: a signal handler may run then, and its exception is dropped. */
#if PY_VERSION_HEX >= 0x030D0000 /* each of the two has one more field */
#define PAD "(NotImplemented,)"
#else
#define PAD "()"
#endif
#if PY_VERSION_HEX >= 0x030C0000
#define GROUPBY_PAD ", NotImplemented"
#else
#define GROUPBY_PAD ""
#endif
static const char source[] =
    "def probe():\n"
    "    import itertools as i\n"
    "    def on(it, steps):\n"
    "        for _ in range(steps): last.append(next(it))\n"
    "        return it\n"
    "    null, any, last, pad = ..., NotImplemented, [], " PAD "\n"
    "    a, b, t = iter([3, 4, 5, 6]), iter([1, 1, 1, 1]), (7, 8, 9)\n"
    "    d = iter(t)\n"
    "    yield on(i.pairwise(d), 1), i.pairwise(()), (d, 8) + pad\n"
    "    if hasattr(i, 'batched'):\n"
    "        flag = {'strict': True} if pad else {}\n"
    "        yield on(i.batched(b, 1, **flag), 1), i.batched((), 1), (b, 1, 1)[:2 + len(pad)]\n"
    "    e = iter(t)\n"
    "    groups = on(i.groupby(e, bool), 1)\n"
    "    group = last[-1][1]\n"
    "    yield groups, i.groupby(()), (e, bool, True, True, 7, group" GROUPBY_PAD ")\n"
    "    yield group, None, (groups, True)\n"
#if PY_VERSION_HEX >= 0x030E0000
    "    tee = on(i._tee(a), 2)\n"
    "    yield tee, i._tee(()), (any, 2, any, any)\n"
    "    data = [x for x in __import__('gc').get_referents(tee) if type(x) is i._tee_dataobject]\n"
    "    yield data[0], None, (a, 2, 0, null, any)\n"
    "    yield on(i.accumulate(b, max), 2), i.accumulate(()), (1, b, max, None, any)\n"
    "    yield i.accumulate(b, max, initial=t), i.accumulate(()), (null, b, max, t, any)\n"
    "    yield i.chain.from_iterable(a), i.chain(), (a, null)\n"
    "    yield on(i.combinations(t, 2), 2), i.combinations(t, 2), (t, (0, 2), last[-1], 2, 0)\n"
    "    yield (on(i.combinations_with_replacement(t, 2), 3),\n"
    "           i.combinations_with_replacement(t, 2), (t, (0, 2), last[-1], 2, 0))\n"
    "    yield i.compress(a, b), i.compress((), ()), (a, b)\n"
    "    yield on(i.count(5), 1), i.count(), (6, null, 1)\n"
    "    yield i.count(2.5, t[1]), i.count(), (9223372036854775807, any, t[1])\n"
    "    yield on(i.cycle(t), 4), i.cycle(()), (null, any, 1)\n"
    "    yield i.cycle(a), i.cycle(()), (a, any, -1)\n"
    "    yield i.dropwhile(max, b), i.dropwhile(max, ()), (max, b, 0)\n"
    "    yield on(i.dropwhile(bool, (0, 1)), 1), i.dropwhile(max, ()), (bool, any, 1)\n"
    "    yield i.filterfalse(max, a), i.filterfalse(max, ()), (max, a)\n"
    "    c = iter(t)\n"
    "    yield on(i.islice(c, 1, 90, 1), 1), i.islice((), 0), (c, 2, 90, 1, 2)\n"
    "    yield (on(i.permutations(t, 2), 2), i.permutations(t, 2),\n"
    "           (t, (0, 2, 1), (3, 1), last[-1], 2, 0))\n"
    "    yield on(i.product(t, t), 2), i.product(t, t), (any, (0, 1), last[-1], 0)\n"
    "    yield i.repeat(t, 3), i.repeat(0, 0), (t, 3)\n"
    "    yield i.starmap(max, a), i.starmap(max, ()), (max, a)\n"
    "    yield i.takewhile(max, a), i.takewhile(max, ()), (max, a, 0)\n"
    "    yield i.zip_longest(a, b, fillvalue=t), None, (2, 2, any, any, t)\n"
#endif
    ;

/* Compare one field in a copy of the object's bytes; pointers are not followed, but for indexes, through the kernel. */
static bool
is_so(const char *copy, struct field field, PyObject *expected)
{
    const char *at = copy + field.offset;

    if (expected == Py_NotImplemented) {
        return true;
    }
    if (expected == Py_Ellipsis) {
        return object_at(copy, field.offset) == NULL;
    }
    if (field.kind == 'p' || field.kind == 'r') {
        Py_ssize_t found[8] = {0}, count = PyTuple_GET_SIZE(expected);
        bool same = plus_read_memory(*(const uintptr_t *)at, found, (size_t)count * sizeof *found);
        for (Py_ssize_t i = 0; same && i < count; i++) {
            same = found[i] == PyLong_AsSsize_t(PyTuple_GET_ITEM(expected, i));
        }
        return same;
    }
    if (is_object(field.kind) || field.kind == 'g') {
        return object_at(copy, field.offset) == expected;
    }
    return number_at(copy, field) == PyLong_AsSsize_t(expected);
}

static bool
has_fields(PyObject *iterator, PyObject *expected)
{
    const struct row *row = row_of(Py_TYPE(iterator));
    char copy[MOST_BYTES];
    struct field field;

    if (row == NULL || Py_TYPE(iterator)->tp_basicsize > MOST_BYTES ||
        !plus_read_memory((uintptr_t)base_of(iterator), copy,
                          (size_t)Py_TYPE(iterator)->tp_basicsize)) {
        return false;
    }
    struct walk walk = fields_of(row);
    Py_ssize_t i = 0;

    while (next_field(&walk, &field)) {
        if (i == PyTuple_GET_SIZE(expected) ||
            !is_so(copy, field, PyTuple_GET_ITEM(expected, i++))) {
            return false;
        }
    }
    return i == PyTuple_GET_SIZE(expected);
}

/* True if the captured state gives another iterator the same fields. */
static bool
is_restored(PyObject *iterator, PyObject *fresh, PyObject *expected)
{
    if (fresh == Py_None) {
        return true;
    }
    PyObject *captured = plus_itertools_capture(iterator);
    bool same = captured != NULL && plus_itertools_restore(fresh, captured) == 0;

    if (same && strcmp(Py_TYPE(fresh)->tp_name, "itertools.groupby") != 0) {
        same = has_fields(fresh, expected); /* the fresh one has its own group */
    }
    Py_XDECREF(captured);
    return same;
}

const char *
plus_probe_itertools(void)
{
    PyObject *function = plus_probe_function(source), *one;
    PyObject *all = function == NULL ? NULL : PyObject_CallNoArgs(function);
    bool fits = all != NULL;

    while (fits && (one = PyIter_Next(all)) != NULL) {
        PyObject *iterator = PyTuple_GET_ITEM(one, 0), *expected = PyTuple_GET_ITEM(one, 2);
        fits = has_fields(iterator, expected) &&
               is_restored(iterator, PyTuple_GET_ITEM(one, 1), expected);
        Py_DECREF(one);
    }
    fits = fits && !PyErr_Occurred();
    Py_XDECREF(all);
    Py_XDECREF(function);
    return fits ? NULL : "iterators of itertools do not say where expected how far they are";
}
