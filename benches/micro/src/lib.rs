//! What is done for each packet and each record in user space, a case each: what `cargo bench` times, and of which `cargo xtask
//! instructions` counts the instructions.

#[cfg(feature = "agent")]
mod agent;
mod frames;
mod histogram;
mod matching;
mod parsing;

/// Something that is done over and over.
pub struct Case {
    /// What it is.
    pub name: &'static str,
    /// Does it once.
    pub run: Box<dyn FnMut()>,
}

impl Case {
    fn new(name: &'static str, run: impl FnMut() + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// What is counted: what replay and the kernel programs have in common. Nothing in these cases allocates or copies more than
/// some bytes: what the C library does depends on the processor, and then its instructions say nothing elsewhere.
pub fn counted() -> Vec<Case> {
    [parsing::cases(), matching::cases(), histogram::cases()].into_iter().flatten().collect()
}

/// What is timed: that, and what the agent does with samples.
pub fn timed() -> Vec<Case> {
    #[cfg(feature = "agent")]
    let more = agent::cases();
    #[cfg(not(feature = "agent"))]
    let more = Vec::new();
    counted().into_iter().chain(more).collect()
}
