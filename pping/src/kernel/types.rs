//! The types of the running kernel (BTF): the offsets of fields, and the tracepoints.
//!
//! aya relocates fields for programs in C, whose compiler leaves notes for that; Rust's does not. So pping looks up the
//! few fields that its programs read, and gives them the offsets as numbers. The format is in the kernel's
//! Documentation/bpf/btf.rst.

use std::{
    fs,
    io::{self, ErrorKind},
};

/// Where the kernel has its types.
const PATH: &str = "/sys/kernel/btf/vmlinux";

/// The first two bytes.
const MAGIC: u16 = 0xeb9f;

/// The depth to which a field is searched for in nested structures.
const MAX_DEPTH: u32 = 8;

/// Kinds of types.
const INT: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const LAST_WITHOUT_MORE: u32 = 18;
const ENUM64: u32 = 19;

/// The types of a kernel.
pub(super) struct Types {
    bytes: Vec<u8>,
    /// Where names begin.
    names: usize,
    /// Where each type begins; the first one has the number 1.
    starts: Vec<usize>,
}

/// A type: its name, kind, number of parts, and whether members have bit fields.
struct Header {
    name: u32,
    kind: u32,
    parts: usize,
    has_bit_fields: bool,
}

impl Types {
    /// Reads the types of the running kernel.
    ///
    /// # Errors
    /// If there are none, or if their format is unknown.
    pub(super) fn read() -> io::Result<Self> {
        Self::of(fs::read(PATH)?)
    }

    fn of(bytes: Vec<u8>) -> io::Result<Self> {
        Self::parse(bytes).ok_or_else(|| {
            io::Error::new(ErrorKind::InvalidData, format!("{PATH} is in a format that pping does not know"))
        })
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        if bytes.get(..2)? != MAGIC.to_ne_bytes() {
            return None;
        }
        let field = |number: usize| number_at(&bytes, 4 * number).map(|it| it as usize);
        let (header, types_at, types_len, names_at) = (field(1)?, field(2)?, field(3)?, field(4)?);
        let names = header.checked_add(names_at)?;
        let mut at = header.checked_add(types_at)?;
        let end = at.checked_add(types_len)?;
        let mut this = Self { bytes, names, starts: Vec::new() };
        while at < end {
            let Header { kind, parts, .. } = this.header(at)?;
            this.starts.push(at);
            let more = match kind {
                INT | VAR | DECL_TAG => 4,
                ARRAY => 12,
                STRUCT | UNION | DATASEC | ENUM64 => 12 * parts,
                ENUM | FUNC_PROTO => 8 * parts,
                1..=LAST_WITHOUT_MORE => 0,
                _ => return None,
            };
            at += 12 + more;
        }
        Some(this)
    }

    /// Whether the kernel has this tracepoint.
    pub(super) fn has_tracepoint(&self, name: &str) -> bool {
        self.find(TYPEDEF, &format!("btf_trace_{name}")).is_some()
    }

    /// Returns the offset of a field in bytes. Looks into nested structures and unions without a name, too.
    pub(super) fn offset(&self, structure: &str, field: &str) -> Option<u32> {
        let bits = self.offset_in(self.find(STRUCT, structure)?, field, MAX_DEPTH)?;
        (bits % 8 == 0).then_some(bits / 8)
    }

    fn offset_in(&self, at: usize, field: &str, depth: u32) -> Option<u32> {
        let header = self.header(at)?;
        if depth == 0 || !matches!(header.kind, STRUCT | UNION) {
            return None;
        }
        (0..header.parts).find_map(|part| {
            let member = at + 12 + 12 * part;
            let word = |number: usize| number_at(&self.bytes, member + 4 * number);
            let (name, of, offset) = (word(0)?, word(1)?, word(2)?);
            // With bit fields, the highest byte is the size of one.
            let offset = if header.has_bit_fields { offset & 0x00ff_ffff } else { offset };
            if self.is_name(name, field) {
                return Some(offset);
            }
            if !self.is_name(name, "") {
                return None;
            }
            let inner = *self.starts.get((of as usize).checked_sub(1)?)?;
            Some(offset + self.offset_in(inner, field, depth - 1)?)
        })
    }

    fn find(&self, kind: u32, name: &str) -> Option<usize> {
        self.starts.iter().copied().find(|&at| {
            self.header(at).is_some_and(|header| header.kind == kind && self.is_name(header.name, name))
        })
    }

    fn header(&self, at: usize) -> Option<Header> {
        let (name, info) = (number_at(&self.bytes, at)?, number_at(&self.bytes, at + 4)?);
        Some(Header {
            name,
            kind: info >> 24 & 0x1f,
            parts: (info & 0xffff) as usize,
            has_bit_fields: info >> 31 != 0,
        })
    }

    fn is_name(&self, at: u32, name: &str) -> bool {
        let start = self.names.saturating_add(at as usize);
        let found = self.bytes.get(start..start.saturating_add(name.len() + 1));
        found.is_some_and(|found| found.strip_suffix(&[0]) == Some(name.as_bytes()))
    }
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct outer { u8 a; union { u32 b; struct { u32 c; u32 d : 1; }; }; }`, and the tracepoint `some`.
    fn example() -> Vec<u8> {
        let names = b"\0outer\0a\0b\0c\0d\0btf_trace_some\0";
        let name = |text: &str| {
            let text = [&[0], text.as_bytes(), &[0]].concat();
            names.windows(text.len()).position(|it| it == text).unwrap() as u32 + 1
        };
        let info = |kind: u32, parts: u32, bits: u32| bits << 31 | kind << 24 | parts;
        let types: Vec<u32> = [
            // 1: int
            vec![0, info(INT, 0, 0), 4, 32],
            // 2: the innermost
            vec![0, info(STRUCT, 2, 1), 8, name("c"), 1, 32 << 24, name("d"), 1, 1 << 24 | 0x21],
            // 3: the union
            vec![0, info(UNION, 2, 0), 8, name("b"), 1, 0, 0, 2, 0],
            // 4: the outer one
            vec![name("outer"), info(STRUCT, 2, 0), 12, name("a"), 1, 0, 0, 3, 32],
            // 5: the tracepoint
            vec![name("btf_trace_some"), info(TYPEDEF, 0, 0), 1],
        ]
        .concat();
        let types_len = 4 * types.len() as u32;
        let header = [u32::from(MAGIC) | 1 << 16, 24, 0, types_len, types_len, names.len() as u32];
        let words = header.into_iter().chain(types).flat_map(u32::to_ne_bytes);
        words.chain(*names).collect()
    }

    #[test]
    fn fields_are_found_inside_of_what_has_no_name() {
        let types = Types::of(example()).unwrap();
        assert_eq!(types.offset("outer", "a"), Some(0));
        assert_eq!(types.offset("outer", "b"), Some(4));
        assert_eq!(types.offset("outer", "c"), Some(4));
        assert_eq!(types.offset("outer", "d"), None, "a bit is not where a byte begins");
        assert_eq!((types.offset("outer", "e"), types.offset("inner", "a")), (None, None));
        assert!(types.has_tracepoint("some") && !types.has_tracepoint("so"));
    }

    #[test]
    fn malformed_types_never_panic() {
        let whole = example();
        for len in 0..whole.len() {
            if let Ok(types) = Types::of(whole[..len].to_vec()) {
                types.offset("outer", "c");
            }
        }
        for at in 0..whole.len() {
            let mut strange = whole.clone();
            strange[at] ^= 0xff;
            if let Ok(types) = Types::of(strange) {
                types.offset("outer", "c");
            }
        }
    }
}
