//! What holds for any flow during its life.

use proptest::{collection::vec, prelude::*};

use crate::{
    flow::{Endpoint, Lifecycle},
    testing::{ACK, Conversation, FIN, RST, SYN, segment},
};

proptest! {
    /// Openings and closings of a flow must balance, so that a count of them is right. There are no SYNs: a SYN on used
    /// ports ends the earlier connection without a closing.
    #[test]
    fn flow_opens_as_often_as_it_closes_until_it_is_open(
        packets in vec((any::<bool>(), prop_oneof![
            6 => Just(ACK),
            1 => Just(SYN | ACK),
            2 => Just(FIN | ACK),
            1 => Just(RST),
        ]), 1..20),
    ) {
        let mut talk = Conversation::new();
        let mut flows = 0_i32;
        let mut directions = 0_i32;
        for (position, (is_low, flags)) in packets.into_iter().enumerate() {
            let from = if is_low { Endpoint::Low } else { Endpoint::High };
            let changes = talk.packet(from, position as u64 + 1, &segment(flags, 0, 1, 1)).changes;
            flows += i32::from(changes.opened_first) - i32::from(changes.closed_last);
            directions += i32::from(changes.opened);
            directions -= i32::from(changes.closed_forward) + i32::from(changes.closed_reverse);
            let open = [Endpoint::Low, Endpoint::High]
                .into_iter()
                .filter(|&endpoint| talk.flow.hot.state(endpoint).lifecycle() == Lifecycle::OPEN)
                .count();
            prop_assert_eq!(directions, open as i32);
            prop_assert_eq!(flows, i32::from(open > 0));
        }
    }
}
