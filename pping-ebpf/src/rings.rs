//! Places in the rings of [`pping_common::rings`]. All CPUs share them, so each ring has its order and its size whatever CPU
//! the packets come to.

use pping_common::{
    arm::Arm,
    parse::Frame,
    rings::{self, AHEAD},
};

use crate::{
    config,
    maps::{self, Flows, Newcomers, Ring},
    shared::prelude::*,
    sync,
};

/// The ring for what the source of a packet begins. Places are numbered through all rings of a family.
#[derive(Clone, Copy)]
pub(crate) struct SourceRing {
    ring: Shared<Ring>,
    first: u32,
    places: u32,
}

impl SourceRing {
    #[inline(always)]
    pub(crate) fn of<A: Flows>(newcomers: Newcomers, frame: &Frame, arm: Arm) -> Option<Self> {
        let number = rings::of(A::of(frame.source), arm, config::table_keys());
        let places = match newcomers {
            Newcomers::Flows => config::unproved_places(),
            Newcomers::Queries => config::query_places(),
        };
        Some(Self { ring: maps::ring(newcomers, A::FAMILY, number)?, first: number * places, places })
    }

    /// Takes the place of the oldest. `None` if other CPUs hold the lock.
    #[inline(always)]
    pub(crate) fn take(self) -> Option<u32> {
        self.take_ahead(1)
    }

    /// Takes the place that is this many ahead, and leaves out those before it.
    #[inline(always)]
    pub(crate) fn take_ahead(self, ahead: u32) -> Option<u32> {
        let next = sync::claim(self.ring.at(field!(Ring, next)), self.ring.at(field!(Ring, busy)), ahead)?;
        self.place(next.wrapping_add(ahead).wrapping_sub(1))
    }

    /// How many places ahead the first free one is; 0 if none of the next few after `taken` is.
    #[inline(always)]
    pub(crate) fn ahead_of(self, taken: u32, is_free: impl Fn(u32) -> bool) -> u32 {
        let next = self.ring.at(field!(Ring, next)).read();
        for ahead in 0..AHEAD {
            let Some(place) = self.place(next.wrapping_add(ahead)).filter(|&place| place != taken) else {
                break;
            };
            if is_free(place) {
                return ahead + 1;
            }
        }
        0
    }

    #[inline(always)]
    fn place(self, number: u32) -> Option<u32> {
        Some(self.first + number.checked_rem(self.places)?)
    }
}
