//! A fingerprint of the memory layout of types, so that no agent continues with maps that another version left behind.
//!
//! It covers names, offsets and types of all fields, and names and numbers of an enum's variants. A [`layout`] that lacks
//! a field does not compile. It cannot notice a field whose meaning changes while its name stays: rename the field.

/// A type's layout in memory.
pub(crate) trait Layout {
    /// The fingerprint.
    const HASH: u64;
}

/// The start value of a hash (FNV-1a).
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Adds a number to a hash.
pub(crate) const fn number(hash: u64, number: u64) -> u64 {
    let bytes = number.to_le_bytes();
    let (mut hash, mut at) = (hash, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(PRIME);
        at += 1;
    }
    hash
}

/// Adds a name and its length to a hash. The length keeps two names in a row from matching another split of the same
/// letters.
pub(crate) const fn text(hash: u64, text: &str) -> u64 {
    let bytes = text.as_bytes();
    let (mut hash, mut at) = (number(hash, bytes.len() as u64), 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(PRIME);
        at += 1;
    }
    hash
}

/// The fingerprint of a field's type.
pub(crate) const fn of_field<S, T: Layout>(_field: fn(&S) -> &T) -> u64 {
    T::HASH
}

/// Defines a type's layout: `layout!(Type { fields })`, or `layout!(enum Type { variants })`. A field that took the place of a reserved
/// one, and to which 0 means what it meant there, is listed as `field as reserved`: it changes no fingerprint. If several fields took
/// the place of one, they are a type of their own, `layout!(Type as Reserved { fields })`.
macro_rules! layout {
    (enum $type:ident { $($variant:ident),+ $(,)? } $(later { $($later:ident),+ })?) => {
        impl $crate::layout::Layout for $type {
            const HASH: u64 = {
                const fn complete(value: &$type) {
                    match value { $($type::$variant => {})+ $($($type::$later => {})+)? }
                }
                let _ = complete;
                let hash = $crate::layout::text($crate::layout::START, stringify!($type));
                let hash = $crate::layout::number(hash, size_of::<$type>() as u64);
                $(
                    let hash = $crate::layout::text(hash, stringify!($variant));
                    let hash = $crate::layout::number(hash, $type::$variant as u64);
                )+
                hash
            };
        }
    };
    ($type:ident as $before:ty { $($field:ident),+ $(,)? }) => {
        impl $crate::layout::Layout for $type {
            const HASH: u64 = {
                let _ = |value: &Self| { let $type { $($field: _),+ } = value; };
                assert!(size_of::<Self>() == size_of::<$before>());
                <$before>::HASH
            };
        }
    };
    ($type:ident $(<$parameter:ident>)? { $($field:tt $(as $before:ident)?),+ $(,)? }) => {
        impl $(<$parameter: $crate::layout::Layout>)? $crate::layout::Layout for $type $(<$parameter>)? {
            const HASH: u64 = {
                let _ = |value: &Self| { let $type { $($field: _),+ } = value; };
                let hash = $crate::layout::text($crate::layout::START, stringify!($type));
                let hash = $crate::layout::number(hash, size_of::<Self>() as u64);
                $(
                    let hash = $crate::layout::text(hash, $crate::layout::name!($field $($before)?));
                    let hash = $crate::layout::number(hash, core::mem::offset_of!(Self, $field) as u64);
                    let hash = $crate::layout::number(
                        hash,
                        $crate::layout::of_field(|value: &Self| &value.$field),
                    );
                )+
                hash
            };
        }
    };
}
pub(crate) use layout;

/// The name of a field in its fingerprint.
macro_rules! name {
    ($field:tt) => {
        stringify!($field)
    };
    ($field:tt $before:ident) => {
        stringify!($before)
    };
}
pub(crate) use name;

/// Defines an enum whose variants index something on both sides: its numbers, its layout, and the list of its variants. So a
/// variant cannot be left out of any of them. Variants after a `;` came after a release, at the end and where an array had room
/// for them: they change no fingerprint.
macro_rules! listed {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $type:ident {
            $($(#[$of_variant:meta])* $variant:ident $(= $number:literal)?),+ $(,)?
            $(; $($(#[$of_later:meta])* $later:ident),+ $(,)?)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        $visibility enum $type {
            $($(#[$of_variant])* $variant $(= $number)?,)+
            $($($(#[$of_later])* $later,)+)?
        }

        $crate::layout::layout!(enum $type { $($variant),+ } $(later { $($later),+ })?);

        impl $type {
            /// All variants, in the order of their numbers.
            pub const ALL: [Self; { [$(stringify!($variant),)+ $($(stringify!($later)),+)?].len() }] =
                [$(Self::$variant,)+ $($(Self::$later),+)?];
        }
    };
}
pub(crate) use listed;

/// Defines an enum that crosses the boundary as a number: like [`listed`], and the way back from the number.
macro_rules! numbered {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $type:ident {
            $($(#[$of_variant:meta])* $variant:ident $(= $number:literal)?),+ $(,)?
            $(; $($(#[$of_later:meta])* $later:ident),+ $(,)?)?
        }
    ) => {
        $crate::layout::listed! {
            $(#[$attribute])*
            $visibility enum $type {
                $($(#[$of_variant])* $variant $(= $number)?),+
                $(; $($(#[$of_later])* $later),+)?
            }
        }

        impl $type {
            /// The length of an array indexed by variant: a power of two, above the highest number.
            pub const COUNT: usize = (Self::ALL[Self::ALL.len() - 1] as usize + 1).next_power_of_two();

            /// Returns the variant with this number, if there is one.
            pub fn from_number(number: u8) -> Option<Self> {
                Self::ALL.into_iter().find(|&variant| variant as u8 == number)
            }
        }
    };
}
pub(crate) use numbered;

/// Defines a state: a number with names. It is no enum, because reading an enum from a few bits would cost the kernel
/// programs a comparison per value.
macro_rules! states {
    ($(#[$doc:meta])+ $visible:vis struct $type:ident { $($(#[$state_doc:meta])+ $state:ident = $number:literal,)+ }) => {
        $(#[$doc])+
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(transparent)]
        $visible struct $type(pub(crate) u8);

        impl $type {
            $($(#[$state_doc])+ $visible const $state: Self = Self($number);)+
        }

        impl core::fmt::Debug for $type {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                formatter.write_str(match self.0 {
                    $($number => stringify!($state),)+
                    _ => concat!(stringify!($type), " of no name"),
                })
            }
        }

        impl $crate::layout::Layout for $type {
            const HASH: u64 = {
                let hash = $crate::layout::text($crate::layout::START, stringify!($type));
                $(
                    let hash = $crate::layout::text(hash, stringify!($state));
                    let hash = $crate::layout::number(hash, $number);
                )+
                hash
            };
        }
    };
}
pub(crate) use states;

/// Gives primitive types a layout: their name.
macro_rules! numbers {
    ($($type:ident),+) => {$(
        impl Layout for $type {
            const HASH: u64 = text(START, stringify!($type));
        }
    )+};
}

numbers!(bool, u8, u16, u32, u64);

impl Layout for () {
    const HASH: u64 = START;
}

impl<A: Layout, B: Layout> Layout for (A, B) {
    const HASH: u64 = number(number(START, A::HASH), B::HASH);
}

impl<A: Layout, B: Layout, C: Layout> Layout for (A, B, C) {
    const HASH: u64 = number(<(A, B)>::HASH, C::HASH);
}

impl<T: Layout, const N: usize> Layout for [T; N] {
    const HASH: u64 = number(number(START, T::HASH), N as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fingerprint of a new type with these fields or variants.
    macro_rules! hash {
        (enum { $($variant:ident = $number:literal),+ }) => {{
            #[derive(Clone, Copy)]
            #[repr(u8)]
            enum It { $($variant = $number),+ }
            layout!(enum It { $($variant),+ });
            It::HASH
        }};
        ($($field:ident: $type:ty),+) => {{
            #[repr(C)]
            struct It { $($field: $type),+ }
            layout!(It { $($field),+ });
            It::HASH
        }};
    }

    #[test]
    fn every_change_of_a_type_changes_its_fingerprint() {
        let hashes = [
            hash!(a: u32, b: u32),
            hash!(b: u32, a: u32),
            hash!(a: u32, c: u32),
            hash!(a: u32, b: u16),
            hash!(a: u32, b: u16, c: u16),
            hash!(a: u32, b: [u16; 2]),
            hash!(a: u32, b: [u8; 4]),
            hash!(a: u32),
            hash!(a: u64),
            hash!(a: [u64; 2]),
            hash!(a: [u64; 3]),
            hash!(enum { A = 0, B = 1 }),
            hash!(enum { A = 1, B = 0 }),
            hash!(enum { A = 0, C = 1 }),
            hash!(enum { A = 0, B = 1, C = 2 }),
        ];
        for (number, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..number].contains(hash), "{number}");
        }
        assert_eq!(hash!(a: u32, b: u32), hashes[0]);
    }

    #[test]
    fn a_change_within_a_field_changes_the_whole() {
        assert_ne!(<[u16; 2]>::HASH, <[u32; 2]>::HASH);
        assert_ne!(<(u8, (u8, u16))>::HASH, <(u8, (u16, u8))>::HASH);
        assert_ne!(hash!(a: [[u8; 2]; 2]), hash!(a: [[u8; 4]; 1]));
    }
}
