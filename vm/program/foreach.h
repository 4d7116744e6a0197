// INGOT_FOR_EACH(m, (a, b), (c, d), ...): m(a, b), m(c, d), ... with commas between. INGOT_DECLARE_EACH is the same
// without commas. They expand the operand columns of the X-macro tables. At most 85 elements.
#pragma once

#define INGOT_PARENS ()
#define INGOT_EXPAND(...) INGOT_EXPAND3(INGOT_EXPAND3(INGOT_EXPAND3(INGOT_EXPAND3(__VA_ARGS__))))
#define INGOT_EXPAND3(...) INGOT_EXPAND2(INGOT_EXPAND2(INGOT_EXPAND2(INGOT_EXPAND2(__VA_ARGS__))))
#define INGOT_EXPAND2(...) INGOT_EXPAND1(INGOT_EXPAND1(INGOT_EXPAND1(INGOT_EXPAND1(__VA_ARGS__))))
#define INGOT_EXPAND1(...) __VA_ARGS__
#define INGOT_FOR_EACH(m, ...) __VA_OPT__(INGOT_EXPAND(INGOT_FOR_EACH_STEP(m, __VA_ARGS__)))
#define INGOT_FOR_EACH_STEP(m, element, ...) m element __VA_OPT__(, INGOT_FOR_EACH_AGAIN INGOT_PARENS(m, __VA_ARGS__))
#define INGOT_FOR_EACH_AGAIN() INGOT_FOR_EACH_STEP
#define INGOT_DECLARE_EACH(m, ...) __VA_OPT__(INGOT_EXPAND(INGOT_DECLARE_STEP(m, __VA_ARGS__)))
#define INGOT_DECLARE_STEP(m, element, ...) m element __VA_OPT__(INGOT_DECLARE_AGAIN INGOT_PARENS(m, __VA_ARGS__))
#define INGOT_DECLARE_AGAIN() INGOT_DECLARE_STEP
