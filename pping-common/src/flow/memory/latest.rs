//! The latest packet of an endpoint, and the hook that it is bound to.

use crate::layout::layout;

/// The hook at which the packets of an endpoint count, and the class of service of the latest of them, in one byte.
///
/// Where an interface forwards to itself, as on a router with one arm or a trunk of VLANs, each packet passes both of its
/// hooks. So an endpoint is bound to the hook that its first packet passed, and its packets at the other hook are copies:
/// they change nothing. An endpoint may move to the other hook, as if a route changes: then its packets pass only that one
/// (see [`Latest::sweep`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Latest(pub u8);

layout!(Latest { 0 });

impl Latest {
    /// Nothing was sent yet.
    pub const NONE: Self = Self(0);

    const DIRECTION: u8 = 1;
    /// Set if packets passed the other hook, until a sweep finds that others count.
    const ELSEWHERE: u8 = 2;

    /// Creates it for a packet with this traffic class byte that passed in `direction`, the number of a [`Direction`].
    #[inline(always)]
    pub fn new(direction: u8, traffic_class: u8) -> Self {
        Self(traffic_class & !(Self::DIRECTION | Self::ELSEWHERE) | direction & Self::DIRECTION)
    }

    /// The number of the direction in which the packets that count pass.
    #[inline(always)]
    pub fn direction(self) -> u8 {
        self.0 & Self::DIRECTION
    }

    /// Returns what follows from a packet at the same hook: what is known of the other hook stays.
    #[inline(always)]
    pub(in crate::flow) fn followed_by(self, packet: Self) -> Self {
        Self(packet.0 | self.0 & Self::ELSEWHERE)
    }

    /// Returns what follows from a packet at the other hook.
    #[inline(always)]
    pub(in crate::flow) fn passed_elsewhere(self) -> Self {
        Self(self.0 | Self::ELSEWHERE)
    }

    /// Whether a packet passed the other hook.
    #[inline(always)]
    pub(in crate::flow) fn is_elsewhere(self, packet: Self) -> bool {
        (self.0 ^ packet.0) & Self::DIRECTION != 0
    }

    /// Returns what follows from a sweep for both endpoints of a flow, and whether any moves to the other hook. An endpoint
    /// leaves its hook if packets passed only the other one: `have_counted` says whose packets passed their own since the
    /// sweep before. But if the endpoints are at different hooks, they move only together. Else packets with a false
    /// source would move one that is idle. `have_sent` says whose packets ever counted.
    // Numbers instead of conditions: the verifier follows each branch.
    #[inline(always)]
    pub fn sweep(both: [Self; 2], have_counted: [bool; 2], have_sent: [bool; 2]) -> ([Self; 2], bool) {
        let [low, high] = both.map(|latest| latest.0);
        let leaves = |latest: u8, has_counted: bool| latest >> 1 & 1 & u8::from(!has_counted);
        let (low_leaves, high_leaves) = (leaves(low, have_counted[0]), leaves(high, have_counted[1]));
        let are_apart = (low ^ high) & u8::from(have_sent[0] & have_sent[1]);
        let waits = are_apart & (low_leaves ^ high_leaves);
        let after = |latest: u8, leaves: u8| {
            Self((latest & !Self::ELSEWHERE | (leaves & waits) << 1) ^ leaves & !waits)
        };
        let moves = (low_leaves | high_leaves) & !waits & 1 != 0;
        ([after(low, low_leaves), after(high, high_leaves)], moves)
    }

    /// The differentiated services codepoint (RFC 2474).
    #[inline(always)]
    pub fn dscp(self) -> u8 {
        self.0 >> 2
    }
}
