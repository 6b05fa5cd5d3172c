//! What has been told in metrics, kept in the kernel so that no counter goes back when an agent stops, crashes or is
//! replaced by a newer one.
//!
//! A turn is one transaction. For each account that it changes, the balance that is not in force is written, under the
//! number of the turn; then the turn is booked, by one store ([`super::series::SeriesTable::clear`]), and all of these
//! balances are in force at once. Whoever is killed before that leaves the old ones in force, and what the turn was to
//! add is still where the kernel programs put it.

use std::collections::HashMap;

use pping_common::abi::{Account, Balance, LABEL_BYTES};

use super::memory::Elements;

/// All accounts.
pub struct Ledger {
    accounts: Elements<Account>,
    by_id: HashMap<u128, u32>,
    free: Vec<u32>,
    /// Accounts that there was no room for.
    refused: u64,
}

/// An account in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    index: u32,
    /// Which of the two balances is in force.
    current: bool,
}

impl Ledger {
    /// Finds the accounts that there are.
    pub(super) fn new(accounts: Elements<Account>) -> Self {
        let mut ledger = Self { accounts, by_id: HashMap::new(), free: Vec::new(), refused: 0 };
        // The last ones first, so that the first are taken first.
        for index in (0..ledger.accounts.len() as u32).rev() {
            match ledger.read(index).map_or(0, |account| join(account.id)) {
                0 => ledger.free.push(index),
                id => {
                    ledger.by_id.insert(id, index);
                }
            }
        }
        ledger
    }

    /// The account of this fingerprint, with its balance and whether its group has a label, if there is one. `booked` turns
    /// have been booked.
    pub fn find(&self, id: u128, booked: u32) -> Option<(Entry, Balance, bool)> {
        let &index = self.by_id.get(&id)?;
        let account = self.read(index)?;
        // Turns go round after some hundred years; no two balances are more than half that apart.
        let age = |balance: &Balance| booked.wrapping_sub(balance.turn) as i32;
        let [first, second] = account.balances.each_ref().map(age);
        let current = first < 0 || (second >= 0 && second < first);
        let balance = account.balances[usize::from(current)];
        Some((Entry { index, current }, balance, account.is_labelled != 0))
    }

    /// The labels of accounts.
    pub fn labels(&self) -> Vec<String> {
        let text = |account: Account| {
            let len = account.label.iter().position(|&byte| byte == 0).unwrap_or(LABEL_BYTES);
            String::from_utf8_lossy(&account.label[..len]).into_owned()
        };
        let mut labels: Vec<_> =
            self.by_id.values().filter_map(|&index| self.read(index)).map(text).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// Opens an account with nothing in it, of a group with this label; `None` when there is no room.
    pub fn open(&mut self, id: u128, label: &str, booked: u32) -> Option<Entry> {
        let Some(index) = self.free.pop() else {
            if self.refused == 0 {
                tracing::warn!(
                    "--pin: no room to keep all counters of groups; some will begin anew after a restart"
                );
            }
            self.refused += 1;
            return None;
        };
        let nothing = Balance { turn: booked, ..Balance::ZERO };
        self.write(index, |account| {
            account.balances = [nothing; 2];
            account.is_labelled = 0;
            account.label = [0; LABEL_BYTES];
            if label.len() <= LABEL_BYTES {
                account.label[..label.len()].copy_from_slice(label.as_bytes());
            }
        });
        // Nobody finds it before it is all there.
        self.write(index, |account| account.id = split(id));
        self.by_id.insert(id, index);
        Some(Entry { index, current: false })
    }

    /// Writes what an account has once `turn` is booked.
    pub fn put(&mut self, entry: &mut Entry, mut balance: Balance, turn: u32) {
        balance.turn = turn;
        entry.current = !entry.current;
        let place = usize::from(entry.current);
        self.write(entry.index, |account| account.balances[place] = balance);
    }

    /// Notes whether the group of an account has a label of its own.
    pub fn label(&mut self, entry: Entry, is_labelled: bool) {
        self.write(entry.index, |account| account.is_labelled = u64::from(is_labelled));
    }

    /// Gives up an account.
    pub fn close(&mut self, id: u128) {
        if let Some(index) = self.by_id.remove(&id) {
            self.write(index, |account| account.id = [0; 2]);
            self.free.push(index);
        }
    }

    fn read(&self, index: u32) -> Option<Account> {
        // SAFETY: inside the mapping; the agent that has the lock is the only one to write, and this is it.
        self.accounts.get(index as usize).map(|account| unsafe { account.read_volatile() })
    }

    fn write(&mut self, index: u32, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.accounts.get(index as usize) {
            // SAFETY: as above.
            change(unsafe { &mut *account });
            // In this order, for whoever finds it when this process is no more.
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        }
    }
}

fn join([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn split(id: u128) -> [u64; 2] {
    [(id >> 64) as u64, id as u64]
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ledger").field("accounts", &self.by_id.len()).finish_non_exhaustive()
    }
}

/// Accounts in memory of this process, for tests.
#[cfg(test)]
pub(crate) fn in_memory(accounts: usize) -> std::io::Result<Ledger> {
    Ok(Ledger::new(Elements::anonymous(accounts)?))
}
