/* All facts, for plus_facts_register(). */
#ifndef PLUS_INTERP_FACTS_TABLE_H
#define PLUS_INTERP_FACTS_TABLE_H

#include "facts/facts.h"

extern const struct plus_fact_entry plus_fact_table[PLUS_FACTS];

#endif
