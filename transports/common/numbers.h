// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Number types and fixed-point functions of the algorithms. They are the same in the kernel and in host programs, so
// that both run the same code.
#ifndef ROUNDABOUT_NUMBERS_H
#define ROUNDABOUT_NUMBERS_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef _Bool bool;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

// The number 1 in fixed point: fractions are stored in units of 2^-24.
#define ONE_Q24 (1u << 24)

#define US_PER_S 1000000

// Returns value * factor, rounded down. It multiplies in two parts, because the product of a rate and a factor may
// exceed 64 bits.
static __always_inline __u64 times_q24(__u64 value, __u32 factor_q24) {
  return (value >> 24) * factor_q24 + (((value & (ONE_Q24 - 1)) * factor_q24) >> 24);
}

// Returns part / whole as a fraction. `part` must not exceed `whole`, and must be below 2^40.
static __always_inline __u32 share_q24(__u64 part, __u64 whole) { return (__u32)((part << 24) / whole); }

#endif
