/* All facts, for plus_facts_register(). */
#pragma once

#include "facts/facts.h"

extern const struct plus_fact_entry plus_fact_table[PLUS_FACTS];
