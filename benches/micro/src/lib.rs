//! What is done for each packet and each record in user space, a case each: what `cargo bench` times, and of which `cargo xtask
//! instructions` counts the instructions.

#[cfg(feature = "agent")]
mod agent;
mod frames;
mod histogram;
mod matching;
mod parsing;

#[cfg(feature = "agent")]
pub use agent::cases as of_agent;

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

/// What replay and the kernel programs have in common. Nothing in these cases allocates or copies more than some octets: what
/// the C library does depends on the processor, and then its instructions say nothing elsewhere.
pub fn cases() -> Vec<Case> {
    [parsing::cases(), matching::cases(), histogram::cases()].into_iter().flatten().collect()
}
