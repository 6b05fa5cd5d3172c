//! VLAN tags.

use crate::{layout::layout, limits::MAX_VLAN_TAGS};

/// The VLAN tags of a frame. They are one number and no list, because the verifier follows computed indexes badly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Vlan(u64);

layout!(Vlan { 0 });

impl Vlan {
    /// No tags.
    pub const NONE: Self = Self(0);

    /// Set in each tag, so that the identifier 0 (a priority tag) differs from none.
    const PRESENT: u64 = 0x8000;

    /// Appends the identifier of a tag control word. The fifth and later ones push out the outermost.
    #[inline(always)]
    pub fn push(&mut self, tag_control: u16) {
        self.0 = self.0 << 16 | Self::PRESENT | u64::from(tag_control & 0x0fff);
    }

    /// The VLAN identifiers, outermost first.
    pub fn identifiers(self) -> impl Iterator<Item = u16> {
        (0..MAX_VLAN_TAGS)
            .rev()
            .map(move |position| self.0 >> (16 * position))
            .filter(|tag| tag & Self::PRESENT != 0)
            .map(|tag| tag as u16 & 0x0fff)
    }
}

const _: () = assert!(MAX_VLAN_TAGS * 16 == 64);
