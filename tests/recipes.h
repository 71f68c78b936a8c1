/* A kind and an optimizer made by the recipes of doc/ARCHITECTURE.md. */
#ifndef TUTTI_TESTS_RECIPES_H
#define TUTTI_TESTS_RECIPES_H

#include "nn/kinds/kind.h"

extern const tutti_kind recipe_kind;
extern const tutti_optimizer recipe_optimizer;

#endif
