/* Finds the objects in given pieces of memory.  Memory does not tell its owner, so one walk over the heap asks every
 * object.
 *
 *     1. filter   one bit for each MiB with a given piece: it answers for nearly all addresses
 *     2. claim    each object claims the block that it lies in; and, with OF_OBJECT, the blocks that its own words
 *                 lead to: the table of a dict, the items of a list.  Also those in front of it: values and dict.
 *     3. add up   for each arena as many claims as it has blocks in use; the rest of its blocks are `unknown`
 *
 * A claim of an object for its own block replaces a claim with OF_OBJECT, never the other way round.  A word may be no
 * address at all, so it is compared with the pools' headers and not followed: the pool must be in use, and the offset
 * must have been carved.  By chance a word may lead to a free block, so an arena has no more claims than blocks in
 * use.
 *
 * Only the words that an object certainly has are read (tp_basicsize; strings and built-in classes have fewer).  An
 * object without references is being freed and claims nothing, because it could not be held as an example.
 *
 * The GIL is held from the walk to the end: objects are borrowed, and no block may change its owner.
 *
 * Rejected: reading a block and guessing its class by a pointer (freed memory still has the old one). */
#include "pins.h"

#include "../../_base/memory/address_table.h"
#include "../../_heap/heap_walk.h"
#include "../../_interp/objects/sizes.h"

#define TYPES_LIMIT 4096u

#define OF_OBJECT ((uintptr_t)1)

struct search {
    const struct plus_pinned *pinned;
    size_t count;
    /* By block: the object in it; with OF_OBJECT set, an object whose memory it is. */
    struct plus_address_table claims;
    PyObject **owners;
    struct plus_own_objects *own;
    /* Tells whether a MiB has a pinned piece, by the last bits of its number; nearly none has. */
    uint8_t filter[1 << 13];
};

/* ---- addresses ----------------------------------------------------------------------------------- */

static size_t
filter_bit(uintptr_t address)
{
    return (address >> 20) & (8 * sizeof((struct search *)0)->filter - 1);
}

static inline bool
may_be_pinned(const struct search *search, uintptr_t address)
{
    size_t bit = filter_bit(address);

    return (search->filter[bit / 8] & 1u << bit % 8) != 0;
}

static const struct plus_pinned *
pinned_at(const struct search *search, uintptr_t address)
{
    size_t low = 0, high = search->count;

    while (low < high) { /* find the first that ends behind the address */
        size_t middle = low + (high - low) / 2;
        if (search->pinned[middle].end <= address) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low < search->count && search->pinned[low].start <= address ? &search->pinned[low]
                                                                       : NULL;
}

/* Returns the block of the pool around the address; 0 if no such block can be in use. */
static uintptr_t
block_of(const struct plus_pinned *pinned, uintptr_t address)
{
    uintptr_t pool = plus_pool_of((void *)address);
    const struct plus_pool_header *header = (const struct plus_pool_header *)pool;
    size_t offset = address - pool;

    if (pool < pinned->start || pool + PLUS_POOL_BYTES > pinned->end || offset < sizeof *header ||
        !plus_pool_is_used(header) || offset >= header->next_offset) {
        return 0;
    }
    return address - (offset - sizeof *header) % plus_pool_block_bytes(header);
}

/* ---- claims -------------------------------------------------------------------------------------- */

/* Claims a block.  With flag 0 the object itself lies in it, which replaces any earlier claim.  0, or -ENOMEM. */
static int
claim_pinned(struct search *search, uintptr_t address, PyObject *op, uintptr_t flag)
{
    const struct plus_pinned *pinned = pinned_at(search, address);

    if (pinned == NULL) {
        return 0;
    }
    if (pinned->is_block) {
        PyObject **owner = &search->owners[pinned - search->pinned];
        *owner = *owner == NULL || flag == 0 ? op : *owner;
        return 0;
    }
    uintptr_t block = block_of(pinned, address);
    if (block == 0) {
        return 0;
    }
    struct plus_address_slot *slot = plus_address_table_get(&search->claims, (void *)block);
    if (slot != NULL && (slot->number == 0 || flag == 0)) {
        slot->number = (uintptr_t)op | flag;
    }
    return slot == NULL ? -ENOMEM : 0;
}

static inline int
claim(struct search *search, uintptr_t address, PyObject *op, uintptr_t flag)
{
    return may_be_pinned(search, address) ? claim_pinned(search, address, op, flag) : 0;
}

/* Returns the number of words that an object of this type has at least.  Strings and static types are shorter than
 * their tp_basicsize. */
static size_t
own_words(PyObject *op, PyTypeObject *type)
{
    size_t bytes = (size_t)type->tp_basicsize;

    if (PyUnicode_Check(op)) {
        bytes =
            PyUnicode_IS_COMPACT_ASCII(op) ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject);
    }
    else if (PyType_Check(op) && !PyType_HasFeature((PyTypeObject *)op, Py_TPFLAGS_HEAPTYPE)) {
        bytes = sizeof(PyTypeObject);
    }
    return bytes / sizeof(uintptr_t);
}

static int
see(PyObject *op, PyObject *Py_UNUSED(parent), enum plus_heap_origin Py_UNUSED(origin), void *arg)
{
    struct search *search = arg;
    PyTypeObject *type = Py_TYPE(op);
    const uintptr_t *words = (const uintptr_t *)op;

    if (Py_REFCNT(op) == 0) { /* being freed: cannot be held as an example */
        return 0;
    }
    int status = claim(search, (uintptr_t)op, op, 0);
    if (plus_has_preheader(type)) { /* values and dict lie in front of the collector's two words */
        status |= claim(search, plus_preheader_of(op)[0] & ~OF_OBJECT, op, OF_OBJECT);
        status |= claim(search, plus_preheader_of(op)[1] & ~OF_OBJECT, op, OF_OBJECT);
    }
    for (size_t i = 2, count = own_words(op, type); i < count; i++) {
        status |= claim(search, words[i], op, OF_OBJECT);
    }
    return status;
}

static int
see_reference(PyObject *from, PyObject *to, void *arg)
{
    return plus_own_objects_see(((struct search *)arg)->own, from, to);
}

/* ---- adding up ----------------------------------------------------------------------------------- */

struct sums {
    struct plus_address_table types; /* by type: its index in `list` */
    struct plus_pin *list; /* two for each type: objects, memory; first those of other types */
    uint32_t count;        /* number of types */
    size_t *unclaimed;     /* blocks without a claim, for each pinned piece */
};

static struct plus_pin *
pin_of(struct sums *sums, PyTypeObject *type, bool is_object)
{
    const struct plus_address_slot *known = plus_address_table_find(&sums->types, type);
    size_t index = known == NULL ? 0 : known->number;

    if (known == NULL && sums->count < TYPES_LIMIT) {
        index = sums->count++;
        plus_address_table_get(&sums->types, type)->number = index;
        sums->list[2 * index].type = sums->list[2 * index + 1].type = type;
    }
    return &sums->list[2 * index + (is_object ? 0 : 1)];
}

static void
add_block(struct plus_pin *pin, const struct plus_pinned *pinned, size_t blocks, size_t bytes)
{
    pin->blocks += blocks;
    pin->bytes += bytes;
    if (pinned->taken > 0) {
        pin->held_bytes += pinned->free_bytes / pinned->taken * blocks;
    }
}

static void
add_claims(struct sums *sums, const struct search *search, struct plus_pin *own)
{
    const struct plus_address_slot *each;

    for (size_t at = 0; (each = plus_address_table_next(&search->claims, &at)) != NULL;) {
        PyObject *op = (PyObject *)(each->number & ~OF_OBJECT);
        const struct plus_pinned *pinned = pinned_at(search, (uintptr_t)each->key);
        size_t *unclaimed = &sums->unclaimed[pinned - search->pinned];

        if (*unclaimed == 0) {
            continue; /* some word led to a free block */
        }
        --*unclaimed;
        size_t share = pinned->free_bytes / pinned->taken;
        size_t bytes =
            plus_pool_block_bytes((const struct plus_pool_header *)plus_pool_of((void *)each->key));
        if (plus_own_objects_has(search->own, op)) {
            add_block(own, pinned, 1, bytes);
            continue;
        }
        struct plus_pin *pin = pin_of(sums, Py_TYPE(op), (each->number & OF_OBJECT) == 0);
        if (pin->type != NULL && (pin->example == NULL || share > pin->most_bytes)) {
            pin->example = op;
            pin->most_bytes = share;
        }
        pin->is_object = (each->number & OF_OBJECT) == 0;
        add_block(pin, pinned, 1, bytes);
    }
}

static int
by_held_bytes(const void *left, const void *right)
{
    const struct plus_pin *a = left, *b = right;

    if (a->held_bytes != b->held_bytes) {
        return a->held_bytes < b->held_bytes ? 1 : -1;
    }
    return a->blocks < b->blocks ? 1 : a->blocks > b->blocks ? -1 : 0;
}

static int
add_up(struct plus_pins *pins, const struct search *search)
{
    struct sums sums = {.count = 1};
    int status = plus_address_table_reserve(&sums.types, TYPES_LIMIT);

    sums.list = calloc(2 * TYPES_LIMIT, sizeof *sums.list);
    sums.unclaimed = calloc(search->count + 1, sizeof *sums.unclaimed);
    if (status < 0 || sums.list == NULL || sums.unclaimed == NULL) {
        free(sums.list);
        status = -ENOMEM;
    }
    else {
        for (size_t i = 0; i < search->count; i++) {
            sums.unclaimed[i] = search->pinned[i].taken;
        }
        add_claims(&sums, search, &pins->own);
        for (size_t i = 0; i < search->count; i++) {
            add_block(&pins->unknown, &search->pinned[i], sums.unclaimed[i], 0);
        }
        qsort(sums.list, 2 * sums.count, sizeof *sums.list, by_held_bytes);
        while (pins->count < 2 * sums.count && sums.list[pins->count].blocks > 0) {
            pins->count++;
        }
        pins->list = sums.list;
    }
    free(sums.unclaimed);
    plus_address_table_clear(&sums.types);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static int
begin(struct search *search, const struct plus_pinned *pinned, size_t count)
{
    size_t blocks = 0;

    *search = (struct search){.pinned = pinned, .count = count};
    for (size_t i = 0; i < count; i++) {
        blocks += pinned[i].taken;
    }
    search->owners = calloc(count + 1, sizeof *search->owners);
    if (plus_address_table_reserve(&search->claims, blocks) < 0 || search->owners == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < search->count; i++) {
        for (uintptr_t at = search->pinned[i].start >> 20; at <= (search->pinned[i].end - 1) >> 20;
             at++) {
            size_t bit = filter_bit(at << 20);
            search->filter[bit / 8] |= (uint8_t)(1u << bit % 8);
        }
    }
    return 0;
}

int
plus_pins_find(struct plus_pins *pins, const struct plus_pinned *pinned, size_t count,
               struct plus_own_objects *own)
{
    struct search search;
    struct plus_heap_visitor visitor = {.object = see, .arg = &search};

    visitor.reference = own->count > 0 ? see_reference : NULL;

    *pins = (struct plus_pins){0};
    if (count == 0) {
        return 0;
    }
    if (plus_heap_walk_refusal() != NULL) {
        return -ENOTSUP;
    }
    int status = begin(&search, pinned, count);
    search.own = own;
    if (status == 0) {
        status = plus_heap_walk(&visitor, NULL);
    }
    if (status == 0) {
        status = add_up(pins, &search);
    }
    plus_address_table_clear(&search.claims);
    pins->owners = search.owners;
    if (status < 0) {
        plus_pins_free(pins);
    }
    return status;
}

void
plus_pins_free(struct plus_pins *pins)
{
    free(pins->list);
    free(pins->owners);
    *pins = (struct plus_pins){0};
}
