//! Proves that locks that only add keep data in order on arm64. Emulators cannot show it: the processors that they run
//! on reorder less.
//!
//! Two CPUs run the same program: take the lock, add 1 to the data, release the lock. [`outcomes`] tries every order in
//! which their steps may happen. The kernel programs are `add_only.rs` and `fence.rs` of pping-ebpf.
//!
//! The memory is arm64's: there is one, which all CPUs see alike (other-multi-copy atomic), and a step happens when it
//! reads or writes that memory. A CPU may take its own steps in any order, unless [`is_ordered`] forbids it. A read may
//! happen before a branch that decides if it is wanted, and may see what its own CPU has yet to write. Where the
//! architecture's text forbids more, the model allows more: then what never happens here never happens there.

use std::{collections::HashSet, vec, vec::Vec};

/// A word of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    /// The lock: how many CPUs want it.
    Busy,
    /// What the lock protects.
    Data,
}
use Word::{Busy, Data};

/// What a CPU does in one moment.
#[derive(Clone, Copy)]
enum Step {
    /// Reads the lock, to add to it. No other CPU writes it before the next step.
    AddRead,
    /// Writes the lock with this much added.
    AddWrite(i8),
    /// Reads the lock, and goes on if it is 1. Otherwise the last two steps follow, which take back what was added.
    IsOne,
    /// Reads the data.
    Read,
    /// Writes the data that were read, plus 1.
    Write,
    /// Takes a lock of the kernel that no other CPU wants: a read with acquire.
    Acquire,
    /// Releases that lock: a write with release.
    Release,
}
use Step::{Acquire, AddRead, AddWrite, IsOne, Read, Release, Write};

impl Step {
    fn word(self) -> Option<Word> {
        match self {
            AddRead | AddWrite(_) | IsOne => Some(Busy),
            Read | Write => Some(Data),
            Acquire | Release => None,
        }
    }

    fn writes(self) -> bool {
        matches!(self, AddWrite(_) | Write | Release)
    }
}

/// Whether a CPU takes a step only after another one that its program has earlier.
fn is_ordered(earlier: Step, later: Step) -> bool {
    match (earlier, later) {
        // Nothing passes an acquire upwards or a release downwards, so an acquire does not pass a release either.
        (Acquire, _) | (_, Release) | (Release, Acquire) => true,
        // A CPU reads what it has yet to write.
        (AddWrite(_), IsOne) => false,
        // A write waits for the branches before it; a read does not.
        (IsOne, later) if later.writes() => true,
        (earlier, later) => earlier.word().is_some() && earlier.word() == later.word(),
    }
}

/// How far a CPU is.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Cpu {
    /// The steps that it has taken.
    done: Vec<bool>,
    /// What it read of the lock, while an addition is under way.
    adding: Option<i8>,
    /// What it read of the data.
    read: i8,
    has_failed: bool,
}

/// The state of the machine.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    busy: i8,
    data: i8,
    cpus: [Cpu; 2],
}

impl State {
    /// Lets a CPU take a step; `None` if it may not yet.
    fn after(&self, cpu: usize, step: usize, program: &[Step]) -> Option<Self> {
        let is_done = |step: usize| self.cpus[cpu].done[step];
        if is_done(step)
            || (0..step).any(|other| !is_done(other) && is_ordered(program[other], program[step]))
        {
            return None;
        }
        let is_reserved = self.cpus[1 - cpu].adding.is_some();
        let mut state = self.clone();
        let this = &mut state.cpus[cpu];
        this.done[step] = true;
        match program[step] {
            AddRead if is_reserved => return None,
            AddRead => this.adding = Some(self.busy),
            AddWrite(more) => state.busy = this.adding.take()? + more,
            IsOne => {
                // Its own addition, if that is not in memory yet.
                let busy = this.adding.map_or(self.busy, |read| read + 1);
                if busy != 1 {
                    this.has_failed = true;
                    this.done[step..program.len() - 2].fill(true);
                }
            }
            Read => this.read = self.data,
            Write => state.data = this.read + 1,
            Acquire | Release => {}
        }
        Some(state)
    }
}

/// What may come out of it: how many of the two CPUs had the lock, and what the data are in the end.
fn outcomes(program: &[Step]) -> HashSet<(i8, i8)> {
    let cpu = || Cpu { done: vec![false; program.len()], ..Cpu::default() };
    let first = State { busy: 0, data: 0, cpus: [cpu(), cpu()] };
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    let mut outcomes = HashSet::new();
    while let Some(state) = open.pop() {
        if state.cpus.iter().all(|cpu| cpu.done.iter().all(|&done| done)) {
            assert_eq!(state.busy, 0, "the lock is free in the end");
            let holders = state.cpus.iter().filter(|cpu| !cpu.has_failed).count();
            outcomes.insert((holders as i8, state.data));
        }
        for cpu in 0..2 {
            for step in 0..program.len() {
                if let Some(next) = state.after(cpu, step, program)
                    && seen.insert(next.clone())
                {
                    open.push(next);
                }
            }
        }
    }
    outcomes
}

/// The program of a CPU, with a fence behind taking the lock and one before releasing it. The fences are pairs of
/// taking and releasing a lock of the kernel, as many as this.
fn program(taking: usize, releasing: usize) -> Vec<Step> {
    let pairs = |count: usize| [Acquire, Release].repeat(count);
    [vec![AddRead, AddWrite(1), IsOne], pairs(taking), vec![Read, Write], pairs(releasing)]
        .into_iter()
        .flatten()
        .chain([AddRead, AddWrite(-1)])
        .collect()
}

/// Whether an update is lost in some order: the data are less than the number of CPUs that had the lock.
fn loses_updates(taking: usize, releasing: usize) -> bool {
    let outcomes = outcomes(&program(taking, releasing));
    assert!(outcomes.contains(&(2, 2)) && outcomes.contains(&(1, 1)), "one after the other, or one gives up");
    outcomes.iter().any(|&(holders, data)| data < holders)
}

#[test]
fn without_a_fence_an_update_may_be_lost() {
    assert!(loses_updates(0, 0));
}

#[test]
fn one_pair_of_lock_and_unlock_is_no_fence() {
    assert!(loses_updates(1, 1));
}

#[test]
fn two_pairs_are_a_fence_that_taking_and_releasing_both_need() {
    assert!(!loses_updates(2, 2));
    assert!(loses_updates(0, 2) && loses_updates(2, 0));
}
