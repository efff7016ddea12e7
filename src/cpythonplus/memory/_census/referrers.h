/* The referrers of the objects of one class, counted in one walk over the heap: by attribute, global name or variable,
 * else by the class of the referring object.
 *
 * The GIL is held throughout.  No Python object is made before plus_referrers_rows(). */
#pragma once

#include "../../_base/compat.h"

/* A new list of (kind, owner, name, references), name a str or None; kinds:
 *     "attribute"  of instances of the class `owner`, without a dict
 *     "dict"       of instances of the class `owner`, in their dict
 *     "class"      in the namespace of the class `owner`
 *     "module"     in the namespace `owner` of a module
 *     "variable"   of an executing function whose code is `owner`
 *     "type"       from objects of the class `owner`, wherever in them
 * NULL with an exception. */
PyObject *
plus_referrers_rows(PyTypeObject *target);
