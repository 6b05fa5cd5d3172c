//! A case for each thing done per packet and per record in user space: `cargo bench` times them, and `cargo xtask
//! instructions` counts their instructions.

#[cfg(feature = "agent")]
mod agent;
mod frames;
mod histogram;
mod matching;
mod parsing;

/// Work that is repeated.
pub struct Case {
    /// The name in tables.
    pub name: &'static str,
    /// Does the work once.
    pub run: Box<dyn FnMut()>,
}

impl Case {
    fn new(name: &'static str, run: impl FnMut() + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// The cases whose instructions are counted: what replay and the kernel programs share. They allocate and copy no
/// more than some bytes: how the C library does that depends on the processor, and the counts would not hold
/// elsewhere.
pub fn counted() -> Vec<Case> {
    [parsing::cases(), matching::cases(), histogram::cases()].into_iter().flatten().collect()
}

/// The cases that are timed: those counted, and what the agent does with samples.
pub fn timed() -> Vec<Case> {
    #[cfg(feature = "agent")]
    let more = agent::cases();
    #[cfg(not(feature = "agent"))]
    let more = Vec::new();
    counted().into_iter().chain(more).collect()
}
