//! What single instructions calculate (RFC 9669). Those of newer versions than the compiler is asked for are errors.

use anyhow::{Result, bail, ensure};
use aya_obj::generated as isa;

/// The result of an arithmetic instruction with this code, offset and immediate.
pub(super) fn arithmetic(code: u32, offset: i16, immediate: i32, left: u64, right: u64) -> Result<u64> {
    ensure!(offset == 0, "an arithmetic instruction with an offset");
    let is_wide = code & 7 == isa::BPF_ALU64;
    if code & 0xf0 == isa::BPF_END {
        ensure!(!is_wide, "a byte swap without a byte order");
        return swap(code & isa::BPF_X == isa::BPF_TO_BE, immediate, left);
    }
    let result =
        if is_wide { wide(code, left, right)? } else { narrow(code, left as u32, right as u32)?.into() };
    Ok(result)
}

/// Converts the lowest bits of a number to a byte order.
fn swap(to_big_endian: bool, bits: i32, number: u64) -> Result<u64> {
    Ok(match (bits, to_big_endian) {
        (16, true) => (number as u16).to_be().into(),
        (32, true) => (number as u32).to_be().into(),
        (64, true) => number.to_be(),
        (16, false) => (number as u16).to_le().into(),
        (32, false) => (number as u32).to_le().into(),
        (64, false) => number.to_le(),
        _ => bail!("a byte swap of {bits} bits"),
    })
}

macro_rules! operations {
    ($name:ident, $unsigned:ty, $signed:ty) => {
        fn $name(code: u32, left: $unsigned, right: $unsigned) -> Result<$unsigned> {
            Ok(match code & 0xf0 {
                isa::BPF_ADD => left.wrapping_add(right),
                isa::BPF_SUB => left.wrapping_sub(right),
                isa::BPF_MUL => left.wrapping_mul(right),
                isa::BPF_DIV => left.checked_div(right).unwrap_or(0),
                isa::BPF_MOD => left.checked_rem(right).unwrap_or(left),
                isa::BPF_OR => left | right,
                isa::BPF_AND => left & right,
                isa::BPF_XOR => left ^ right,
                // The number of bits is taken modulo the width.
                isa::BPF_LSH => left.wrapping_shl(right as u32),
                isa::BPF_RSH => left.wrapping_shr(right as u32),
                isa::BPF_ARSH => (left as $signed).wrapping_shr(right as u32) as $unsigned,
                isa::BPF_NEG => left.wrapping_neg(),
                isa::BPF_MOV => right,
                _ => bail!("unknown arithmetic"),
            })
        }
    };
}

operations!(wide, u64, i64);
operations!(narrow, u32, i32);

/// Whether a jump with this code is taken.
pub(super) fn is_taken(code: u32, left: u64, right: u64) -> Result<bool> {
    let (left, right) = if code & 7 == isa::BPF_JMP32 {
        // With the same order, whether they are compared with or without signs.
        (i64::from(left as i32) as u64, i64::from(right as i32) as u64)
    } else {
        (left, right)
    };
    Ok(match code & 0xf0 {
        isa::BPF_JA if code & 7 == isa::BPF_JMP => true,
        isa::BPF_JEQ => left == right,
        isa::BPF_JNE => left != right,
        isa::BPF_JGT => left > right,
        isa::BPF_JGE => left >= right,
        isa::BPF_JLT => left < right,
        isa::BPF_JLE => left <= right,
        isa::BPF_JSET => left & right != 0,
        isa::BPF_JSGT => left as i64 > right as i64,
        isa::BPF_JSGE => left as i64 >= right as i64,
        isa::BPF_JSLT => (left as i64) < right as i64,
        isa::BPF_JSLE => left as i64 <= right as i64,
        _ => bail!("an unknown jump"),
    })
}

/// What an atomic instruction leaves in memory. `expected` is what a compare-and-exchange compares with.
pub(super) fn exchanged(operation: u32, old: u64, operand: u64, expected: u64) -> Result<u64> {
    Ok(match operation {
        isa::BPF_XCHG => operand,
        isa::BPF_CMPXCHG => {
            if old == expected {
                operand
            } else {
                old
            }
        }
        _ => match operation & !isa::BPF_FETCH {
            isa::BPF_ADD => old.wrapping_add(operand),
            isa::BPF_OR => old | operand,
            isa::BPF_AND => old & operand,
            isa::BPF_XOR => old ^ operand,
            _ => bail!("an unknown atomic operation"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_results_have_no_upper_half() {
        let of = |code, left, right| arithmetic(code, 0, 0, left, right).unwrap();
        assert_eq!(of(isa::BPF_ALU | isa::BPF_ADD, u64::MAX, 2), 1);
        assert_eq!(of(isa::BPF_ALU64 | isa::BPF_ADD, u64::MAX, 2), 1);
        assert_eq!(of(isa::BPF_ALU | isa::BPF_ARSH, 0x8000_0000, 4), 0xf800_0000);
        assert_eq!(of(isa::BPF_ALU | isa::BPF_LSH, 1, 33), 2);
        assert_eq!(of(isa::BPF_ALU64 | isa::BPF_MOD, 7, 0), 7);
        assert_eq!(
            arithmetic(isa::BPF_ALU | isa::BPF_END | isa::BPF_TO_BE, 0, 16, 0xa_1234, 0).unwrap(),
            0x3412
        );
    }

    #[test]
    fn narrow_jumps_compare_lower_halves() {
        let jump = |code, left, right| is_taken(code, left, right).unwrap();
        assert!(jump(isa::BPF_JMP32 | isa::BPF_JEQ, 1 << 32 | 5, 5));
        assert!(jump(isa::BPF_JMP32 | isa::BPF_JGT, 0x8000_0000, 1));
        assert!(jump(isa::BPF_JMP32 | isa::BPF_JSLT, 0x8000_0000, 1));
        assert!(!jump(isa::BPF_JMP | isa::BPF_JSLT, 0x8000_0000, 1));
    }

    #[test]
    fn unknown_instructions_are_errors() {
        assert!(arithmetic(isa::BPF_ALU64 | 0xe0, 0, 0, 1, 1).is_err());
        assert!(arithmetic(isa::BPF_ALU64 | isa::BPF_MOV, 8, 0, 1, 1).is_err(), "a move with sign extension");
        assert!(is_taken(isa::BPF_JMP | 0xf0, 1, 1).is_err());
        assert!(exchanged(isa::BPF_SUB, 1, 1, 1).is_err());
    }
}
