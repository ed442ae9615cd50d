/* SPDX-License-Identifier: MIT
 *
 * What: the long names of 2010 and 2011 for calls of sxe-pool.h and sxe-pool-shared.h, as aliases,
 * so that old sources compile. docs/pool.md has them in a table.
 *
 * Place: included by sxe-pool.h, unless SXE_POOL_NO_2010 is defined. The shared library exports
 * only the modern names.
 */
#ifndef SXE_POOL_2010_H
#define SXE_POOL_2010_H

#define sxe_pool_set_indexed_element_state        sxe_pool_move
#define sxe_pool_try_to_set_indexed_element_state sxe_pool_try_move
#define sxe_pool_set_indexed_elements_state       sxe_pool_move_many
#define sxe_pool_set_oldest_element_state         sxe_pool_take
#define sxe_pool_set_exact_oldest_element_state   sxe_pool_take_exact
#define sxe_pool_set_oldest_elements_state        sxe_pool_take_many
#define sxe_pool_touch_indexed_element            sxe_pool_touch
#define sxe_pool_get_number_in_state              sxe_pool_get_count
#define sxe_pool_index_to_state                   sxe_pool_get_state
#define sxe_pool_get_oldest_element_index         sxe_pool_get_oldest
#define sxe_pool_get_youngest_element_index       sxe_pool_get_youngest
#define sxe_pool_get_oldest_element_time          sxe_pool_get_oldest_time
#define sxe_pool_get_element_time_by_index        sxe_pool_get_time

#endif
