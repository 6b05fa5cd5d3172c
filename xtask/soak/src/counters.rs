//! The kernel's counters of an interface.

use std::{fs, ops::AddAssign, ops::Sub};

use anyhow::{Context as _, Result};
use pping_lab::Namespace;

/// Packets of an interface, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) received: u64,
    /// Includes packets that the other end had no room for: they were sent, and lost on the cable.
    pub(super) sent: u64,
}

impl Counters {
    /// Reads the counters of an interface in a namespace.
    pub(super) fn read(namespace: &Namespace, interface: &str) -> Result<Self> {
        // Not from sysfs, which shows the interfaces of the namespace that mounted it.
        let text = namespace.enter(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        let text = text.context("could not read /proc/thread-self/net/dev")?;
        find(&text, interface).with_context(|| format!("there is no interface {interface}"))
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
    }
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            received: self.received.wrapping_sub(other.received),
            sent: self.sent.wrapping_sub(other.sent),
        }
    }
}

fn find(text: &str, interface: &str) -> Option<Counters> {
    let numbers =
        text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    // Received: bytes packets errs drop fifo frame compressed multicast; sent: bytes packets errs drop and so on.
    Some(Counters { received: *numbers.get(1)?, sent: numbers.get(9)? + numbers.get(11)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_the_interface_and_of_no_other() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets\n\
                    dial11: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n  dial1: 500 7 0 0 0 0 0 0 600 8 0 1 0 0 0 0\n";
        assert_eq!(find(text, "dial1"), Some(Counters { received: 7, sent: 9 }));
        assert_eq!(find(text, "dial"), None);
    }
}
