/* An object with more references than the walk over the heap can see is held by C code.  Many of them belong to the
 * interpreter, which got them by a call that a program makes:
 *
 *     threads       the context, functions of sys.settrace() and sys.setprofile(), the exception that is handled: in
 *                   each thread's state, if PLUS_FACT_THREAD_STATE is proven
 *     signals       signal.getsignal() answers without Python code
 *     lists         of os.register_at_fork(), codecs.register(), and from 3.14 on of atexit.register(): one more
 *                   function is registered, and the list that has grown is the one
 *     dicts         of codecs: by entries that are known to be in them
 *     the rest      audit hooks, sys.monitoring, and up to 3.13 atexit: by words of the interpreter's state
 *
 * A full list cannot grow, since in a copy the program's blocks cannot be reallocated.  So its last item is taken out
 * meanwhile.
 *
 * Rejected: sys.addaudithook() for finding the list of hooks, for it calls them. */
#include "keepers.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "../_base/memory/copy_memory.h"
#include "../_base/memory/own_memory.h"
#include "../_interp/facts/facts.h"
#include "../_interp/frames/pystate.h"
#include "../_interp/objects/interpreter_words.h"
#include "../_interp/objects/layouts.h"

#define AT_EXIT "atexit.register()"
#define MOST_HOOKS 256

/* A list that is held from outside the heap, and its state before the registration. */
struct held_list {
    PyListObject *list;
    Py_ssize_t count;
    PyObject *first, *last; /* last: taken out; NULL if there was room */
};

struct search {
    struct plus_heap_graph *graph;
    struct held_list *lists;
    size_t count;
    const char *by; /* the call that is being examined */
    int status;
};

static bool
is_held(const struct plus_heap_graph *graph, uint32_t node)
{
    return node != PLUS_NO_NODE && plus_heap_graph_is_held(graph, node);
}

/* Note the keeper of a held object; sets `status` to -ENOMEM if there is no memory. */
static void
name(struct search *search, PyObject *op, const char *by, unsigned long number)
{
    struct plus_record_table *keepers = &search->graph->keepers;

    if (op == NULL || search->status < 0 || plus_record_table_find(keepers, op) != NULL ||
        !is_held(search->graph, plus_heap_graph_node(search->graph, op))) {
        return;
    }
    struct plus_keeper *keeper = plus_record_table_add(keepers, op);

    if (keeper == NULL) {
        search->status = -ENOMEM;
        return;
    }
    bool many = number != 0 || (strcmp(by, AT_EXIT) == 0 && !PyList_CheckExact(op));

    *keeper = (struct plus_keeper){op, by, number, many};
}

/* A C function of a module, which runs no Python code; borrowed, or NULL. */
static PyObject *
built_in(const char *module_name, const char *function_name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = PyDict_CheckExact(modules) ? plus_dict_item(modules, module_name) : NULL;
    PyObject *function = module != NULL && PyModule_Check(module)
                             ? plus_dict_item(PyModule_GetDict(module), function_name)
                             : NULL;

    return function != NULL && PyCFunction_CheckExact(function) ? function : NULL;
}

/* ---- threads and signals ----------------------------------------------------------------------------- */

static void
name_threads(struct search *search)
{
    const char *refusal;

    if (plus_fact_state(PLUS_FACT_THREAD_STATE, &refusal) != PLUS_FACT_PROVEN) {
        return;
    }
    PyThreadState *tstate = PyInterpreterState_ThreadHead(PyInterpreterState_Get());

    for (; tstate != NULL; tstate = PyThreadState_Next(tstate)) {
        unsigned long ident = plus_pystate_ident(tstate);
        name(search, plus_pystate_context(tstate), "context of a thread", ident);
        name(search, plus_pystate_traceobj(tstate, false), "sys.settrace() of a thread", ident);
        name(search, plus_pystate_traceobj(tstate, true), "sys.setprofile() of a thread", ident);
        name(search, plus_pystate_asyncgen_hook(tstate, false),
             "sys.set_asyncgen_hooks() of a thread", ident);
        name(search, plus_pystate_asyncgen_hook(tstate, true),
             "sys.set_asyncgen_hooks() of a thread", ident);
        name(search, plus_pystate_exception(tstate), "exception handled by a thread", ident);
        name(search, plus_pystate_dict(tstate), "data of a thread", ident);
    }
}

static void
name_signals(struct search *search)
{
    PyObject *function = built_in("_signal", "getsignal");

    for (int number = 1; function != NULL && number < NSIG; number++) {
        PyObject *argument = PyLong_FromLong(number);
        PyObject *handler = argument == NULL ? NULL : PyObject_CallOneArg(function, argument);

        if (handler != NULL && PyCallable_Check(handler)) {
            name(search, handler, "signal.signal", (unsigned long)number);
        }
        Py_XDECREF(handler);
        Py_XDECREF(argument);
        PyErr_Clear();
    }
}

/* ---- lists ------------------------------------------------------------------------------------------- */

static int
collect_lists(struct search *search)
{
    const struct plus_heap_graph *graph = search->graph;

    for (int round = 0; round < 2; round++) { /* counts, then writes */
        search->count = 0;
        for (uint32_t node = graph->frames + 1; node < graph->edges.count; node++) {
            if (PyList_CheckExact(graph->objects[node]) && is_held(graph, node)) {
                if (search->lists != NULL) {
                    search->lists[search->count].list = (PyListObject *)graph->objects[node];
                }
                search->count++;
            }
        }
        if (round == 0) {
            search->lists = plus_calloc(search->count + 1, sizeof *search->lists);
            if (search->lists == NULL) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

static void
make_room(struct held_list *each)
{
    PyListObject *list = each->list;

    each->count = PyList_GET_SIZE(list);
    each->first = each->count > 0 ? list->ob_item[0] : NULL;
    each->last = NULL;
    if (each->count > 0 && list->allocated == each->count) {
        each->last = list->ob_item[each->count - 1];
        Py_SET_SIZE(list, each->count - 1);
    }
}

/* Restore the list.  True if it has grown, at the beginning or at the end. */
static bool
undo(struct held_list *each)
{
    PyListObject *list = each->list;
    Py_ssize_t before = each->count - (each->last != NULL), now = PyList_GET_SIZE(list);

    if (now == before + 1 && before > 0 && list->ob_item[0] != each->first) {
        memmove(&list->ob_item[0], &list->ob_item[1], (size_t)before * sizeof list->ob_item[0]);
    }
    if (each->last != NULL) {
        list->ob_item[before] = each->last;
    }
    Py_SET_SIZE(list, each->count);
    return now == before + 1;
}

/* Register one more function with `function`, or a codec if NULL, and name the list that has grown. */
static void
name_list(struct search *search, PyObject *function, const char *keyword, const char *by)
{
    PyObject *given =
        (PyObject *)&PyBaseObject_Type; /* any callable serves, and this one is never freed */
    PyObject *arguments = keyword == NULL ? PyTuple_Pack(1, given) : PyTuple_New(0);
    PyObject *keywords = keyword == NULL ? NULL : Py_BuildValue("{sO}", keyword, given);

    for (size_t i = 0; i < search->count; i++) {
        make_room(&search->lists[i]);
    }
    if (function == NULL) {
        (void)PyCodec_Register(given);
    }
    else if (arguments != NULL && (keyword == NULL || keywords != NULL)) {
        Py_XDECREF(PyObject_Call(function, arguments, keywords));
    }
    PyErr_Clear();
    for (size_t i = 0; i < search->count; i++) {
        if (undo(&search->lists[i])) {
            name(search, (PyObject *)search->lists[i].list, by, 0);
        }
    }
    Py_XDECREF(arguments);
    Py_XDECREF(keywords);
}

static void
name_lists(struct search *search)
{
    static const char *const at_fork[][2] = {
        {"before", "os.register_at_fork(before)"},
        {"after_in_parent", "os.register_at_fork(after_in_parent)"},
        {"after_in_child", "os.register_at_fork(after_in_child)"},
    };
    PyObject *function = built_in("posix", "register_at_fork");

    for (size_t i = 0; i < 3 && function != NULL; i++) {
        name_list(search, function, at_fork[i][0], at_fork[i][1]);
    }
    name_list(search, NULL, NULL, "codecs.register()");
#if PY_VERSION_HEX >= 0x030E0000
    if ((function = built_in("atexit", "register")) != NULL) {
        name_list(search, function, NULL, AT_EXIT);
    }
#endif
}

/* ---- dicts ------------------------------------------------------------------------------------------- */

static void
name_dicts(struct search *search)
{
    const struct plus_heap_graph *graph = search->graph;
    PyObject *strict = PyCodec_LookupError("strict");

    PyErr_Clear();
    name(search, PyInterpreterState_GetDict(PyInterpreterState_Get()), "data of the interpreter",
         0);
    for (uint32_t node = graph->frames + 1; node < graph->edges.count; node++) {
        PyObject *dict = graph->objects[node];
        if (!PyDict_CheckExact(dict) || !is_held(graph, node)) {
            continue;
        }
        if (strict != NULL && plus_dict_item(dict, "strict") == strict) {
            name(search, dict, "codecs.register_error()", 0);
        }
        PyObject *codec = plus_dict_item(dict, "utf-8");
        if (codec != NULL && strcmp(Py_TYPE(codec)->tp_name, "CodecInfo") == 0) {
            name(search, dict, "codecs.lookup()", 0);
        }
    }
    Py_XDECREF(strict);
}

/* ---- words of the interpreter's state ---------------------------------------------------------------- */

static bool
name_word(uintptr_t word, void *arg)
{
    struct search *search = arg;

    if (is_held(search->graph, plus_heap_graph_node(search->graph, (PyObject *)word))) {
        name(search, (PyObject *)word, search->by, 0);
    }
    return false;
}

/* The list of audit hooks is hidden from the collector, so it is not among the objects that were found; its items
 * are. */
static bool
name_hooks(uintptr_t word, void *arg)
{
    struct search *search = arg;
    const struct plus_heap_graph *graph = search->graph;
    PyListObject list;
    PyObject *hooks[MOST_HOOKS];

    if (word % sizeof word != 0 || plus_heap_graph_node(graph, (PyObject *)word) != PLUS_NO_NODE ||
        !plus_read_memory(word, &list, sizeof list) || Py_TYPE(&list) != &PyList_Type ||
        Py_SIZE(&list) <= 0 || Py_SIZE(&list) > MOST_HOOKS ||
        !plus_read_memory((uintptr_t)list.ob_item, hooks, (size_t)Py_SIZE(&list) * sizeof *hooks)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < Py_SIZE(&list); i++) {
        if (!is_held(graph, plus_heap_graph_node(graph, hooks[i])) || !PyCallable_Check(hooks[i])) {
            return false;
        }
    }
    for (Py_ssize_t i = 0; i < Py_SIZE(&list); i++) {
        name(search, hooks[i], "sys.addaudithook()", 0);
    }
    return false;
}

static void
name_exit_callbacks(struct search *search, const struct plus_interpreter_words *state)
{
    PyObject *function = built_in("atexit", "_ncallbacks");
    PyObject *number = function == NULL ? NULL : PyObject_CallNoArgs(function);
    long callbacks = number == NULL ? 0 : PyLong_AsLong(number);

    PyErr_Clear();
    Py_XDECREF(number);
    if (callbacks > 0 && callbacks < INT32_MAX) {
        search->by = AT_EXIT;
        plus_exit_callbacks_ask(state, (unsigned)callbacks, name_word, search);
    }
}

#if PY_VERSION_HEX >= 0x030C0000
static void
name_monitoring(struct search *search, const struct plus_interpreter_words *state)
{
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
    PyObject *function = monitoring != NULL && PyModule_Check(monitoring)
                             ? plus_dict_item(PyModule_GetDict(monitoring), "get_tool")
                             : NULL;
    PyObject *names[6] = {NULL};
    bool any = false;

    for (long tool = 0; tool < 6 && function != NULL && PyCFunction_CheckExact(function); tool++) {
        PyObject *number = PyLong_FromLong(tool);
        PyObject *found = number == NULL ? NULL : PyObject_CallOneArg(function, number);

        /* The leaked reference does not matter in a copy. */
        names[tool] = found == Py_None ? NULL : found;
        any = any || names[tool] != NULL;
        Py_XDECREF(number);
        PyErr_Clear();
    }
    if (any) {
        search->by = "sys.monitoring.register_callback()";
        plus_monitoring_callbacks_ask(state, names, name_word, search);
    }
}
#endif

static void
name_words(struct search *search)
{
    struct plus_interpreter_words state;

    if (plus_interpreter_words_read(&state) < 0) {
        search->status = -ENOMEM;
        return;
    }
    plus_interpreter_words_ask(&state, name_hooks, search);
#if PY_VERSION_HEX >= 0x030C0000
    name_monitoring(search, &state);
#endif
#if PY_VERSION_HEX < 0x030E0000
    name_exit_callbacks(search, &state);
#endif
    plus_free(state.words);
}

/* ---- entry point ------------------------------------------------------------------------------------- */

int
plus_keepers_find(struct plus_heap_graph *graph)
{
    struct search search = {.graph = graph};

    if (collect_lists(&search) < 0) {
        return -ENOMEM;
    }
    name_threads(&search);
    name_signals(&search);
    name_lists(&search);
    name_dicts(&search);
    name_words(&search);
    plus_free(search.lists);
    return search.status;
}

/* ---- subclasses -------------------------------------------------------------------------------------- */

/* True for a dict from numbers to weak references; only classes have such a dict. */
static bool
is_of_subclasses(uintptr_t word, void *arg)
{
    const struct plus_heap_graph *graph = arg;
    PyObject *dict = (PyObject *)word, *key, *value;
    Py_ssize_t position = 0;

    return plus_heap_graph_node(graph, dict) != PLUS_NO_NODE && PyDict_CheckExact(dict) &&
           PyDict_Next(dict, &position, &key, &value) && PyLong_CheckExact(key) &&
           PyWeakref_CheckRefExact(value);
}

int
plus_keepers_connect_subclasses(struct plus_heap_graph *graph)
{
    struct plus_interpreter_words state = {NULL, 0};
    int status = 0;

#if PY_VERSION_HEX >= 0x030C0000
    status = plus_interpreter_words_read(&state);
#endif
    for (uint32_t node = graph->frames + 1; node < graph->edges.count && status == 0; node++) {
        PyTypeObject *type = (PyTypeObject *)graph->objects[node];
        if (!PyType_Check((PyObject *)type)) {
            continue;
        }
        uintptr_t word =
            (uintptr_t)type->tp_subclasses; /* from 3.12 on a number for a built-in class */
        if (!is_of_subclasses(word, graph)) {
            word = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)
                       ? 0
                       : plus_static_type_word(&state, type, is_of_subclasses, graph);
        }
        if (word != 0) {
            status = plus_heap_graph_add_edge(graph, node,
                                              plus_heap_graph_node(graph, (PyObject *)word));
        }
    }
    plus_free(state.words);
    return status;
}
