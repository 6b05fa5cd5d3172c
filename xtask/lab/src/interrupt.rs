use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use signal_hook::{SigId, consts::SIGINT, flag, low_level};

use crate::{Result, error::Context};

/// Turns Ctrl-C into a flag: a process killed by SIGINT runs no guards, and would leave its namespaces behind.
#[derive(Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    registration: SigId,
}

impl Interrupt {
    /// Catches SIGINT from now on. Once dropped, SIGINT is ignored.
    ///
    /// # Errors
    /// If the kernel refuses the handler.
    pub fn catch() -> Result<Self> {
        let raised = Arc::default();
        let registration =
            flag::register(SIGINT, Arc::clone(&raised)).while_doing(|| "catch SIGINT".to_owned())?;
        Ok(Self { raised, registration })
    }

    /// True if Ctrl-C was pressed since.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Relaxed)
    }
}

/// Repeats a call that a signal interrupted. A receive with a time-out is interrupted even when this process is
/// stopped and continued (signal(7)).
///
/// # Errors
/// If the call fails for any other reason.
pub fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            ended => return ended,
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        low_level::unregister(self.registration);
    }
}
